// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Sets of result fields that are reported together. A row of the table of workloads names its sets.

#include <array>

#include "engine/workload/experiment/results.h"

namespace vitrine::engine::result {

inline constexpr std::array<const ResultField*, 11> kRunSet{&kModel,    &kWeights, &kDtype,         &kBackend,
                                                            &kTimeBase, &kDevice,  &kDeviceProfile, &kThreads,
                                                            &kSimd,     &kAdapter, &kWeightsKept};
inline constexpr std::array<const ResultField*, 15> kMemorySet{&kPeakBytes,
                                                               &kPlannedPeakBytes,
                                                               &kPeakByCategory,
                                                               &kMaxByCategory,
                                                               &kPeakReservedBytes,
                                                               &kHostPeakBytes,
                                                               &kBudgetBytes,
                                                               &kShortByBytes,
                                                               &kPeakAt,
                                                               &kOutOfMemory,
                                                               &kRanks,
                                                               &kRank,
                                                               &kTimeShare,
                                                               &kCommunicationSeconds,
                                                               &kCommunicationShare};
inline constexpr std::array<const ResultField*, 3> kLoadingSet{&kLoadSeconds, &kBytesRead, &kResidentBytes};
inline constexpr std::array<const ResultField*, 18> kKernelSet{&kKernelCompileSeconds,
                                                               &kKernelsCompiled,
                                                               &kKernelCompilerSeconds,
                                                               &kKernels,
                                                               &kFamily,
                                                               &kVariant,
                                                               &kPack,
                                                               &kArch,
                                                               &kSpecialization,
                                                               &kReason,
                                                               &kOrigin,
                                                               &kCompileSeconds,
                                                               &kCalls,
                                                               &kRegisters,
                                                               &kSpillBytes,
                                                               &kSharedBytes,
                                                               &kCubinBytes,
                                                               &kEntries};
inline constexpr std::array<const ResultField*, 15> kPlanSet{&kFits,
                                                             &kDevices,
                                                             &kDevicesText,
                                                             &kParameters,
                                                             &kActiveParameters,
                                                             &kStepSecondsEstimate,
                                                             &kTimesFrom,
                                                             &kExtrapolatedShare,
                                                             &kExtrapolatedOps,
                                                             &kDataSheetShare,
                                                             &kDataSheetOps,
                                                             &kMaxContext,
                                                             &kMaxContextLimitedBy,
                                                             &kMaxBatch,
                                                             &kMaxBatchLimitedBy};
inline constexpr std::array<const ResultField*, 16> kAnswerSet{&kPromptTokens,
                                                               &kPrefilledTokens,
                                                               &kIds,
                                                               &kText,
                                                               &kFinishReason,
                                                               &kFinishReasons,
                                                               &kLogprobs,
                                                               &kTopLogprobs,
                                                               &kRequests,
                                                               &kMaxNewTokens,
                                                               &kGeneratedTokens,
                                                               &kDecodeSteps,
                                                               &kPrefillSeconds,
                                                               &kPrefillCompileSeconds,
                                                               &kDecodeSeconds,
                                                               &kDecodeTokensPerSecond};
inline constexpr std::array<const ResultField*, 13> kSpeculationSet{
    &kSpeculate,        &kDraftModel,       &kDraftModelBytes, &kDraftedTokens, &kAcceptedTokens,
    &kAcceptanceRate,   &kTokensPerStep,    &kDraftSeconds,    &kCheckSteps,    &kStepsSaved,
    &kCheckStepSeconds, &kPlainStepSeconds, &kSpeculationGain};
inline constexpr std::array<const ResultField*, 13> kKvSet{
    &kKvBytes,     &kKvPageBytes,    &kKvPageBytesByGroup,  &kKvCache,       &kKvCacheDtype,
    &kKvCacheKind, &kKvCacheHeadDim, &kKvCacheContextLimit, &kKvCacheGroups, &kLayers,
    &kWindow,      &kBytesPerToken,  &kPageTokens};
inline constexpr std::array<const ResultField*, 11> kRooflineSet{
    &kRooflineRatio,         &kRooflineBytesPerToken,        &kRooflineBandwidth,       &kRooflineBandwidthSource,
    &kRooflineParts,         &kRooflineFloorSecondsPerToken, &kRooflineSecondsPerToken, &kRooflineSequences,
    &kRooflineContextTokens, &kRooflineExpertsHit,           &kRooflineExpertsCounted};
inline constexpr std::array<const ResultField*, 16> kLoadSet{&kVariants,
                                                             &kDiskBytes,
                                                             &kSteadyBytes,
                                                             &kAfterLoad,
                                                             &kAfterLoadContextTokens,
                                                             &kAfterLoadDecodeTokensPerSecond,
                                                             &kAfterLoadDecodeTokensPerSecondBatch16,
                                                             &kAfterLoadPrefillSeconds,
                                                             &kAfterLoadPrefillTokensPerSecond,
                                                             &kAfterLoadPromptTokens,
                                                             &kAgreementTokens,
                                                             &kAgreementTokensEqual,
                                                             &kAgreementFirstDifference,
                                                             &kAgreementLogitPositions,
                                                             &kAgreementLargestLogitDifference,
                                                             &kAgreementLogitSpread};
inline constexpr std::array<const ResultField*, 32> kBatchSet{&kMode,
                                                              &kSlots,
                                                              &kFinishedRequests,
                                                              &kRefusedRequests,
                                                              &kCancelledRequests,
                                                              &kFailedRequests,
                                                              &kTtft,
                                                              &kTpot,
                                                              &kE2e,
                                                              &kStepTokens,
                                                              &kStepsLaunchedAhead,
                                                              &kSlotUtilization,
                                                              &kPrefillTokens,
                                                              &kRecomputedTokens,
                                                              &kPaddingTokens,
                                                              &kPreemptions,
                                                              &kSwaps,
                                                              &kSwapBytes,
                                                              &kSwapMostPages,
                                                              &kSwapHostBytes,
                                                              &kLostSwaps,
                                                              &kOutOfMemorySteps,
                                                              &kLastOutOfMemory,
                                                              &kKvPoolBytes,
                                                              &kKvPoolPages,
                                                              &kKvPoolLimitPages,
                                                              &kKvMostPages,
                                                              &kKvFragmentation,
                                                              &kKvEvictions,
                                                              &kSharedPrefixTokens,
                                                              &kSharedPrefixRequests,
                                                              &kKvKeptRings};
inline constexpr std::array<const ResultField*, 44> kTrainingSet{
    &kSequences,         &kDataTokens,       &kPredictedTokens,  &kValidationRows,
    &kCutRows,           &kCutTokens,        &kCutLines,         &kRowsWithoutTargets,
    &kUnreadableRows,    &kDuplicateRows,    &kSkippedRows,      &kLeftOutLines,
    &kTrainedParameters, &kTrainedShare,     &kBatchTokens,      &kLosses,
    &kCodesChanged,      &kQuantizedWeights, &kQuantizedUpdates, &kGradNorms,
    &kLearningRates,     &kAuxLosses,        &kEvalLosses,       &kEvalSteps,
    &kAnswers,           &kStepSeconds,      &kTokens,           &kCheckpointsOnDevice,
    &kResumedFromStep,   &kEvalCutAtStep,    &kTrainedLoss,      &kSavedLoss,
    &kUnquantizedLoss,   &kAdapterLoss,      &kBaseLoss,         &kMergedLoss,
    &kMergeLossKept,     &kMerged,           &kTechniques,       &kName,
    &kCheckpoint,        &kLossChunks,       &kTiledMlp,         &kHostBytes};
inline constexpr std::array<const ResultField*, 6> kScoreSet{&kRows,       &kScoredTokens, &kMeanLogprob,
                                                             &kPerplexity, &kMeanEntropy,  &kOutput};
inline constexpr std::array<const ResultField*, 7> kPolicySet{
    &kDivergence, &kClipShare, &kEntropy, &kMeanRatio, &kLogprobAbsDiff, &kMismatchK3, &kTruncatedShare};
inline constexpr std::array<const ResultField*, 28> kRolloutSet{
    &kGroupRewards,    &kLongestAnswer,      &kLongestAnswerLimitedBy,
    &kReplayedShare,   &kExpertDisagreement, &kRewards,
    &kRewardsLow,      &kRewardsHigh,        &kEvalRewards,
    &kRlEvalSteps,     &kAnswerTokens,       &kCutShare,
    &kLogprobMaxDiff,  &kEffectiveShare,     &kLeftOutGroups,
    &kJudgeErrors,     &kAskedProblems,      &kMixedVersions,
    &kDraftAcceptance, &kPhaseSeconds,       &kRolloutRates,
    &kPeakByRole,      &kAfterSleep,         &kAfterSleepOwners,
    &kRolloutWeights,  &kRewardSource,       &kSampledAnswers,
    &kKvCache};
inline constexpr std::array<const ResultField*, 21> kAttentionSet{&kHeads,          &kKvHeads,
                                                                  &kQLen,           &kKvLen,
                                                                  &kHeadDim,        &kForwardFlops,
                                                                  &kForwardMs,      &kForwardTflops,
                                                                  &kFullForwardMs,  &kPredictedForwardMs,
                                                                  &kBackwardMs,     &kBackwardTflops,
                                                                  &kFullBackwardMs, &kPredictedBackwardMs,
                                                                  &kBlockSize,      &kBlockSparsity,
                                                                  &kFullShare,      &kMetadataBytes,
                                                                  &kBuildSeconds,   &kBlockMaskCached,
                                                                  &kNotes};
inline constexpr std::array<const ResultField*, 7> kFileSet{&kShape, &kOutput,  &kBytes,         &kFiles,
                                                            &kRows,  &kDecoded, &kDecodeContexts};
inline constexpr std::array<const ResultField*, 14> kConversionSet{
    &kTensors,       &kRoles,    &kName,         &kRole,       &kFormatBefore,
    &kFormat,        &kElements, &kBytesBefore,  &kBytesAfter, &kMeanSquaredError,
    &kSignalToNoise, &kCosine,   &kLargestError, &kBytesRead};
inline constexpr std::array<const ResultField*, 23> kPrecisionSet{
    &kFormats,     &kName,       &kTitle,      &kBitsPerWeight, &kModelBytes,         &kPackedWeights, &kSignalToNoise,
    &kDivergence,  &kTopOne,     &kPerplexity, &kPlannedRate,   &kPlannedPrefillRate, &kKeep,          &kFormat,
    &kRole,        &kFirstLayer, &kLastLayer,  &kBytesAdded,    &kDivergenceSaved,    &kScoredTokens,  &kNotScored,
    &kModelFolder, &kPrecision};
inline constexpr std::array<const ResultField*, 17> kBenchSet{
    &kValue,          &kUnit,           &kCeiling,        &kRatio,          &kWhat,           &kTtftP50Seconds,
    &kTtftP90Seconds, &kTtftP95Seconds, &kTtftP99Seconds, &kTpotP50Seconds, &kTpotP90Seconds, &kTpotP95Seconds,
    &kTpotP99Seconds, &kE2eP50Seconds,  &kE2eP90Seconds,  &kE2eP95Seconds,  &kE2eP99Seconds};
inline constexpr std::array<const ResultField*, 7> kProgramSet{
    &kSmClockHz, &kError, &kLostRecords, &kNextRun, &kProfilerNotes, &kDroppedParts, &kDroppedBytes};
inline constexpr std::array<const ResultField*, 6> kRateSet{&kSeconds, &kRepeats,         &kGbPerSecond,
                                                            &kSteps,   &kTokensPerSecond, &kBatch};

} // namespace vitrine::engine::result
