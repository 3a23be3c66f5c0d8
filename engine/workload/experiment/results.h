// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Every field of a result, once. The constants are named after the keys: result::kPeakBytes is "peak_bytes".

#include "engine/workload/experiment/result_fields.h"

namespace vitrine::engine::result {

// The run: what ran where
inline constexpr ResultField kModel{"model", ResultUnit::Text, "model"};
inline constexpr ResultField kWeights{"weights", ResultUnit::Text, "weights"};
inline constexpr ResultField kDtype{"dtype", ResultUnit::Text, "compute type"};
inline constexpr ResultField kBackend{"backend", ResultUnit::Text, "backend"};
inline constexpr ResultField kTimeBase{"time_base", ResultUnit::Text, "clock"};
inline constexpr ResultField kDevice{"device", ResultUnit::Text, "device"};
inline constexpr ResultField kDeviceProfile{"device_profile", ResultUnit::Text, "device profile"};
inline constexpr ResultField kThreads{"threads", ResultUnit::Count, "threads"};
inline constexpr ResultField kSimd{"simd", ResultUnit::Text, "vector instructions"};
inline constexpr ResultField kAdapter{"adapter", ResultUnit::Text, "adapter"};
inline constexpr ResultField kWeightsKept{"weights_kept", ResultUnit::Flag, "weights kept from the run before"};

// Memory
inline constexpr ResultField kPeakBytes{"peak_bytes", ResultUnit::Bytes, "peak memory", Better::Less};
inline constexpr ResultField kPlannedPeakBytes{"planned_peak_bytes", ResultUnit::Bytes, "peak memory, planned"};
inline constexpr ResultField kPeakByCategory{"peak_by_category", ResultUnit::Bytes, "at the peak", Better::Less, true};
inline constexpr ResultField kMaxByCategory{"max_by_category", ResultUnit::Bytes, "own maximum", Better::Less, true};
inline constexpr ResultField kPeakReservedBytes{"peak_reserved_bytes", ResultUnit::Bytes, "peak reserved",
                                                Better::Less};
inline constexpr ResultField kHostPeakBytes{"host_peak_bytes", ResultUnit::Bytes, "host memory, peak", Better::Less};
inline constexpr ResultField kBudgetBytes{"budget_bytes", ResultUnit::Bytes, "budget"};
inline constexpr ResultField kShortByBytes{"short_by_bytes", ResultUnit::Bytes, "short by", Better::Less};
inline constexpr ResultField kPeakAt{"peak_at", ResultUnit::Text, "where the peak is"};
inline constexpr ResultField kOutOfMemory{"out_of_memory", ResultUnit::Data, "out of memory"};

// Loading
inline constexpr ResultField kLoadSeconds{"load_seconds", ResultUnit::Seconds, "load time", Better::Less};
inline constexpr ResultField kBytesRead{"bytes_read", ResultUnit::Bytes, "read from files", Better::Less};
inline constexpr ResultField kResidentBytes{"resident_bytes", ResultUnit::Bytes, "weights resident", Better::Less};

// Kernels of a GPU
inline constexpr ResultField kKernelCompileSeconds{"kernel_compile_seconds", ResultUnit::Seconds,
                                                   "waited for kernels to compile", Better::Less};
/// The part of prefill_seconds in which the run waited; CUDA only.
inline constexpr ResultField kPrefillCompileSeconds{"prefill_compile_seconds", ResultUnit::Seconds,
                                                    "prefill, waited for kernels to compile", Better::Less};
inline constexpr ResultField kKernelsCompiled{"kernels_compiled", ResultUnit::Count, "kernels compiled"};
inline constexpr ResultField kKernelCompilerSeconds{"kernel_compiler_seconds", ResultUnit::Seconds,
                                                    "compiling of kernels", Better::Less};
inline constexpr ResultField kKernels{"kernels", ResultUnit::Data, "kernels"};

// A row of kernels
inline constexpr ResultField kFamily{"family", ResultUnit::Text, "family"};
inline constexpr ResultField kVariant{"variant", ResultUnit::Text, "variant"};
inline constexpr ResultField kPack{"pack", ResultUnit::Text, "pack"};
inline constexpr ResultField kArch{"arch", ResultUnit::Text, "architecture"};
inline constexpr ResultField kSpecialization{"specialization", ResultUnit::Text, "specialisation"};
inline constexpr ResultField kReason{"reason", ResultUnit::Text, "reason"};
inline constexpr ResultField kOrigin{"origin", ResultUnit::Text, "origin"};
inline constexpr ResultField kCompileSeconds{"compile_seconds", ResultUnit::Seconds, "compile time", Better::Less};
inline constexpr ResultField kCalls{"calls", ResultUnit::Count, "calls"};
inline constexpr ResultField kRegisters{"registers", ResultUnit::Count, "registers"};
inline constexpr ResultField kSpillBytes{"spill_bytes", ResultUnit::Bytes, "spilled", Better::Less};
inline constexpr ResultField kSharedBytes{"shared_bytes", ResultUnit::Bytes, "shared memory"};
inline constexpr ResultField kCubinBytes{"cubin_bytes", ResultUnit::Bytes, "size of the binary"};
inline constexpr ResultField kEntries{"entries", ResultUnit::List, "entries"};

// Plans
inline constexpr ResultField kFits{"fits", ResultUnit::Flag, "fits"};
inline constexpr ResultField kTimesFrom{"times_from", ResultUnit::Text, "times are from"};
/// Shares of the time of the ops that the plan ran, with the ops whose time it knows less well; absent below 1 %.
inline constexpr ResultField kExtrapolatedShare{"extrapolated_share", ResultUnit::Share,
                                                "of it extrapolated from other calls"};
inline constexpr ResultField kExtrapolatedOps{"extrapolated_ops", ResultUnit::Text, "extrapolated ops"};
inline constexpr ResultField kDataSheetShare{"data_sheet_share", ResultUnit::Share, "of it from the data sheet"};
inline constexpr ResultField kDataSheetOps{"data_sheet_ops", ResultUnit::Text, "ops from the data sheet"};
/// Devices of the plan's kind that hold the model and its cache together; absent where no number of them does.
inline constexpr ResultField kDevices{"devices", ResultUnit::Count, "devices that hold it", Better::Less};
inline constexpr ResultField kDevicesText{"devices_text", ResultUnit::Text, "what the devices hold"};
inline constexpr ResultField kParameters{"parameters", ResultUnit::Count, "parameters"};
inline constexpr ResultField kActiveParameters{"active_parameters", ResultUnit::Count,
                                               "parameters that a token passes"};
inline constexpr ResultField kStepSecondsEstimate{"step_seconds_estimate", ResultUnit::Seconds, "a step, predicted",
                                                  Better::Less};
inline constexpr ResultField kMaxContext{"max_context", ResultUnit::Count, "longest context that fits", Better::More};
inline constexpr ResultField kMaxContextLimitedBy{"max_context_limited_by", ResultUnit::Text,
                                                  "longest context is limited by"};
inline constexpr ResultField kLongestAnswer{"longest_answer", ResultUnit::Count, "longest answer that fits",
                                            Better::More};
inline constexpr ResultField kLongestAnswerLimitedBy{"longest_answer_limited_by", ResultUnit::Text,
                                                     "what limits the answer"};
inline constexpr ResultField kMaxBatch{"max_batch", ResultUnit::Count, "largest batch that fits", Better::More};
inline constexpr ResultField kMaxBatchLimitedBy{"max_batch_limited_by", ResultUnit::Text,
                                                "largest batch is limited by"};

// Answers
inline constexpr ResultField kPromptTokens{"prompt_tokens", ResultUnit::Count, "prompt tokens"};
inline constexpr ResultField kIds{"ids", ResultUnit::List, "token ids"};
inline constexpr ResultField kText{"text", ResultUnit::Text, "text"};
inline constexpr ResultField kFinishReason{"finish_reason", ResultUnit::Text, "why it ended"};
/// Of several requests: how many ended for each reason.
inline constexpr ResultField kFinishReasons{"finish_reasons", ResultUnit::Count, "answers by why they ended",
                                            Better::Neither, true};
inline constexpr ResultField kLogprobs{"logprobs", ResultUnit::List, "log-probabilities"};
inline constexpr ResultField kTopLogprobs{"top_logprobs", ResultUnit::List, "likely tokens"};
/// Only where the run ended before all prompts were read.
inline constexpr ResultField kPrefilledTokens{"prefilled_tokens", ResultUnit::Count, "prompt tokens read"};
/// A number; of a run of several prompts the list of their answers.
inline constexpr ResultField kRequests{"requests", ResultUnit::Count, "requests"};
inline constexpr ResultField kBatch{"batch", ResultUnit::Count, "sequences"};
inline constexpr ResultField kMaxNewTokens{"max_new_tokens", ResultUnit::Count, "most new tokens"};
inline constexpr ResultField kGeneratedTokens{"generated_tokens", ResultUnit::Count, "generated tokens"};
inline constexpr ResultField kDecodeSteps{"decode_steps", ResultUnit::Count, "decode steps"};
inline constexpr ResultField kPrefillSeconds{"prefill_seconds", ResultUnit::Seconds, "prefill time", Better::Less};
inline constexpr ResultField kDecodeSeconds{"decode_seconds", ResultUnit::Seconds, "decode time", Better::Less};
inline constexpr ResultField kDecodeTokensPerSecond{"decode_tokens_per_second", ResultUnit::TokensPerSecond,
                                                    "decode rate", Better::More};

// Speculative decoding
inline constexpr ResultField kSpeculate{"speculate", ResultUnit::Text, "speculation"};
inline constexpr ResultField kDraftModel{"draft_model", ResultUnit::Text, "draft model"};
inline constexpr ResultField kDraftModelBytes{"draft_model_bytes", ResultUnit::Bytes, "weights of the draft model"};
inline constexpr ResultField kDraftedTokens{"drafted_tokens", ResultUnit::Count, "drafted tokens"};
inline constexpr ResultField kAcceptedTokens{"accepted_tokens", ResultUnit::Count, "accepted tokens"};
inline constexpr ResultField kAcceptanceRate{"acceptance_rate", ResultUnit::Share, "acceptance", Better::More};
inline constexpr ResultField kTokensPerStep{"tokens_per_step", ResultUnit::Number, "tokens of a request in a step",
                                            Better::More};
inline constexpr ResultField kDraftSeconds{"draft_seconds", ResultUnit::Seconds, "time of drafting", Better::Less};
inline constexpr ResultField kCheckSteps{"check_steps", ResultUnit::Count, "steps that checked drafts"};
inline constexpr ResultField kStepsSaved{"steps_saved", ResultUnit::Number, "decode steps saved", Better::More};
inline constexpr ResultField kCheckStepSeconds{"check_step_seconds", ResultUnit::Seconds,
                                               "usual time of a step that checks drafts", Better::Less};
inline constexpr ResultField kPlainStepSeconds{"plain_step_seconds", ResultUnit::Seconds,
                                               "usual time of a decode step without drafts", Better::Less};
inline constexpr ResultField kSpeculationGain{"speculation_gain", ResultUnit::Number,
                                              "decoding faster by speculation, estimated", Better::More};

// KV cache
inline constexpr ResultField kKvBytes{"kv_bytes", ResultUnit::Bytes, "KV cache, tokens kept", Better::Less};
inline constexpr ResultField kKvPageBytes{"kv_page_bytes", ResultUnit::Bytes, "KV cache, pages held", Better::Less};
inline constexpr ResultField kKvPageBytesByGroup{"kv_page_bytes_by_group", ResultUnit::Bytes, "KV cache pages",
                                                 Better::Less, true};
inline constexpr ResultField kKvCache{"kv_cache", ResultUnit::Data, "layout of the KV cache"};
inline constexpr ResultField kKvCacheDtype{"kv_cache.dtype", ResultUnit::Text, "type of the KV cache"};
inline constexpr ResultField kKvCacheKind{"kv_cache.kind", ResultUnit::Text, "kind of KV cache"};
inline constexpr ResultField kKvCacheHeadDim{"kv_cache.head_dim", ResultUnit::Count, "head size of the KV cache"};
inline constexpr ResultField kKvCacheContextLimit{"kv_cache.context_limit", ResultUnit::Count, "the model's context"};
inline constexpr ResultField kKvCacheGroups{"kv_cache.groups", ResultUnit::Data, "layers of the KV cache"};

// A group of layers of the KV cache
inline constexpr ResultField kLayers{"layers", ResultUnit::List, "layers"};
inline constexpr ResultField kWindow{"window", ResultUnit::Count, "window"};
inline constexpr ResultField kBytesPerToken{"bytes_per_token", ResultUnit::Bytes, "bytes of a token"};
inline constexpr ResultField kPageTokens{"page_tokens", ResultUnit::Count, "tokens of a page"};

// Roofline of decoding
inline constexpr ResultField kRooflineRatio{"roofline.ratio", ResultUnit::Share, "decode, part of the roofline",
                                            Better::More};
inline constexpr ResultField kRooflineBytesPerToken{"roofline.bytes_per_token", ResultUnit::Bytes,
                                                    "bytes that a token reads", Better::Less};
inline constexpr ResultField kRooflineBandwidth{"roofline.bandwidth", ResultUnit::BytesPerSecond,
                                                "bandwidth of the roofline"};
inline constexpr ResultField kRooflineBandwidthSource{"roofline.bandwidth_source", ResultUnit::Text,
                                                      "how the bandwidth is known"};
inline constexpr ResultField kRooflineParts{"roofline.parts", ResultUnit::Bytes, "a token reads", Better::Less, true};
inline constexpr ResultField kRooflineFloorSecondsPerToken{"roofline.floor_seconds_per_token", ResultUnit::Seconds,
                                                           "a token, at the roofline", Better::Less};
inline constexpr ResultField kRooflineSecondsPerToken{"roofline.seconds_per_token", ResultUnit::Seconds, "a token",
                                                      Better::Less};
inline constexpr ResultField kRooflineSequences{"roofline.sequences", ResultUnit::Number,
                                                "sequences that share the weights"};
inline constexpr ResultField kRooflineContextTokens{"roofline.context_tokens", ResultUnit::Number, "mean context"};
inline constexpr ResultField kRooflineExpertsHit{"roofline.experts_hit", ResultUnit::Number, "experts hit by a token"};
inline constexpr ResultField kRooflineExpertsCounted{"roofline.experts_counted", ResultUnit::Flag,
                                                     "experts hit were counted"};

// Loads
inline constexpr ResultField kRanks{"ranks", ResultUnit::Rows, "ranks"};
inline constexpr ResultField kRank{"rank", ResultUnit::Count, "rank"};
inline constexpr ResultField kTimeShare{"time_share", ResultUnit::Share, "share of the time"};
inline constexpr ResultField kCommunicationSeconds{"communication_seconds", ResultUnit::Seconds, "communication",
                                                   Better::Less};
inline constexpr ResultField kCommunicationShare{"communication_share", ResultUnit::Share,
                                                 "share of the time for communication", Better::Less};
inline constexpr ResultField kVariants{"variants", ResultUnit::Rows, "loads"};
inline constexpr ResultField kDiskBytes{"disk_bytes", ResultUnit::Bytes, "files", Better::Less};
inline constexpr ResultField kSeconds{"seconds", ResultUnit::Seconds, "time", Better::Less};
/// Of a run that measures several times: the single values of a result by its path, {"prefill_seconds": [1.1, 1.2]}.
inline constexpr ResultField kRepeats{"repeats", ResultUnit::Data, "values of repeats"};
inline constexpr ResultField kGbPerSecond{"gb_per_second", ResultUnit::GigabytesPerSecond, "rate", Better::More};
inline constexpr ResultField kSteadyBytes{"steady_bytes", ResultUnit::Bytes, "held after the load", Better::Less};
inline constexpr ResultField kAfterLoad{"after_load", ResultUnit::Data, "after the load"};
inline constexpr ResultField kAfterLoadContextTokens{"after_load.context_tokens", ResultUnit::Count,
                                                     "after the load: context"};
inline constexpr ResultField kAfterLoadDecodeTokensPerSecond{
    "after_load.decode_tokens_per_second", ResultUnit::TokensPerSecond, "after the load: decode rate", Better::More};
inline constexpr ResultField kAfterLoadDecodeTokensPerSecondBatch16{
    "after_load.decode_tokens_per_second_batch_16", ResultUnit::TokensPerSecond,
    "after the load: decode rate of 16 sequences", Better::More};
inline constexpr ResultField kAfterLoadPrefillSeconds{"after_load.prefill_seconds", ResultUnit::Seconds,
                                                      "after the load: prefill time", Better::Less};
inline constexpr ResultField kAfterLoadPrefillTokensPerSecond{
    "after_load.prefill_tokens_per_second", ResultUnit::TokensPerSecond, "after the load: prefill rate", Better::More};
inline constexpr ResultField kAfterLoadPromptTokens{"after_load.prompt_tokens", ResultUnit::Count,
                                                    "after the load: prompt tokens"};
inline constexpr ResultField kAgreementTokens{"agreement.tokens", ResultUnit::Count, "greedy tokens compared"};
inline constexpr ResultField kAgreementTokensEqual{"agreement.tokens_equal", ResultUnit::Count,
                                                   "greedy tokens that are the same", Better::More};
inline constexpr ResultField kAgreementFirstDifference{"agreement.first_difference", ResultUnit::Count,
                                                       "first other token"};
inline constexpr ResultField kAgreementLogitPositions{"agreement.logit_positions", ResultUnit::Count,
                                                      "positions whose logits were compared"};
inline constexpr ResultField kAgreementLargestLogitDifference{"agreement.largest_logit_difference", ResultUnit::Number,
                                                              "largest difference of logits", Better::Less};
inline constexpr ResultField kAgreementLogitSpread{"agreement.logit_spread", ResultUnit::Number, "span of the logits"};

// Batches
inline constexpr ResultField kMode{"mode", ResultUnit::Text, "batching"};
inline constexpr ResultField kSlots{"slots", ResultUnit::Count, "slots"};
inline constexpr ResultField kFinishedRequests{"finished_requests", ResultUnit::Count, "requests finished",
                                               Better::More};
inline constexpr ResultField kRefusedRequests{"refused_requests", ResultUnit::Count, "requests refused", Better::Less};
inline constexpr ResultField kCancelledRequests{"cancelled_requests", ResultUnit::Count, "requests cancelled"};
inline constexpr ResultField kFailedRequests{"failed_requests", ResultUnit::Count, "requests ended by want of memory",
                                             Better::Less};
inline constexpr ResultField kTokensPerSecond{"tokens_per_second", ResultUnit::TokensPerSecond, "throughput",
                                              Better::More};
inline constexpr ResultField kTtft{"ttft", ResultUnit::Seconds, "time to first token", Better::Less, true};
inline constexpr ResultField kTpot{"tpot", ResultUnit::Seconds, "time per output token", Better::Less, true};
inline constexpr ResultField kE2e{"e2e", ResultUnit::Seconds, "time of a whole request", Better::Less, true};
inline constexpr ResultField kSteps{"steps", ResultUnit::Count, "steps"};
inline constexpr ResultField kStepTokens{"step_tokens", ResultUnit::Count, "token budget of a step"};
inline constexpr ResultField kStepsLaunchedAhead{"steps_launched_ahead", ResultUnit::Count, "steps launched ahead",
                                                 Better::More};
inline constexpr ResultField kSlotUtilization{"slot_utilization", ResultUnit::Share, "slot utilization", Better::More};
inline constexpr ResultField kPrefillTokens{"prefill_tokens", ResultUnit::Count, "prefill tokens"};
inline constexpr ResultField kRecomputedTokens{"recomputed_tokens", ResultUnit::Count, "tokens computed again",
                                               Better::Less};
inline constexpr ResultField kPaddingTokens{"padding_tokens", ResultUnit::Count, "padding tokens", Better::Less};
inline constexpr ResultField kPreemptions{"preemptions", ResultUnit::Count, "preemptions", Better::Less};
inline constexpr ResultField kSwaps{"swaps", ResultUnit::Count, "swaps", Better::Less};
inline constexpr ResultField kSwapBytes{"swap_bytes", ResultUnit::Bytes, "swapped", Better::Less};
inline constexpr ResultField kSwapMostPages{"swap_most_pages", ResultUnit::Count, "most pages in swap", Better::Less};
inline constexpr ResultField kSwapHostBytes{"swap_host_bytes", ResultUnit::Bytes, "host memory for swap", Better::Less};
inline constexpr ResultField kLostSwaps{"lost_swaps", ResultUnit::Count, "swaps lost", Better::Less};
inline constexpr ResultField kOutOfMemorySteps{"out_of_memory_steps", ResultUnit::Count,
                                               "steps that did not fit memory", Better::Less};
inline constexpr ResultField kLastOutOfMemory{"last_out_of_memory", ResultUnit::Text, "last step that did not fit"};
inline constexpr ResultField kKvPoolBytes{"kv_pool_bytes", ResultUnit::Bytes, "KV pool", Better::Less};
inline constexpr ResultField kKvPoolPages{"kv_pool_pages", ResultUnit::Count, "pages of the KV pool"};
inline constexpr ResultField kKvPoolLimitPages{"kv_pool_limit_pages", ResultUnit::Count, "most pages of the KV pool"};
inline constexpr ResultField kKvMostPages{"kv_most_pages", ResultUnit::Count, "most pages used", Better::Less};
inline constexpr ResultField kKvFragmentation{"kv_fragmentation", ResultUnit::Share, "unused part of the pages",
                                              Better::Less};
inline constexpr ResultField kKvEvictions{"kv_evictions", ResultUnit::Count, "pages evicted", Better::Less};
inline constexpr ResultField kSharedPrefixTokens{"shared_prefix_tokens", ResultUnit::Count, "tokens shared by prefixes",
                                                 Better::More};
inline constexpr ResultField kSharedPrefixRequests{"shared_prefix_requests", ResultUnit::Count,
                                                   "requests that shared a prefix"};
inline constexpr ResultField kKvKeptRings{"kv_kept_rings", ResultUnit::Count, "kept rings of sliding layers"};

// Fine-tuning
inline constexpr ResultField kSequences{"sequences", ResultUnit::Count, "sequences in the data"};
inline constexpr ResultField kDataTokens{"data_tokens", ResultUnit::Count, "tokens in the data"};
inline constexpr ResultField kPredictedTokens{"predicted_tokens", ResultUnit::Count, "tokens trained on"};
inline constexpr ResultField kValidationRows{"validation_rows", ResultUnit::Count, "validation rows"};
inline constexpr ResultField kCutRows{"cut_rows", ResultUnit::Count, "rows cut"};
inline constexpr ResultField kCutTokens{"cut_tokens", ResultUnit::Count, "tokens cut off"};
inline constexpr ResultField kCutLines{"cut_lines", ResultUnit::List, "lines of cut rows"};
inline constexpr ResultField kRowsWithoutTargets{"rows_without_targets", ResultUnit::Count, "rows without targets"};
inline constexpr ResultField kUnreadableRows{"unreadable_rows", ResultUnit::Count, "unreadable rows left out"};
inline constexpr ResultField kDuplicateRows{"duplicate_rows", ResultUnit::Count, "duplicates left out"};
inline constexpr ResultField kSkippedRows{"skipped_rows", ResultUnit::Count, "long rows left out"};
inline constexpr ResultField kLeftOutLines{"left_out_lines", ResultUnit::List, "lines of rows left out"};
inline constexpr ResultField kTrainedParameters{"trained_parameters", ResultUnit::Count, "trained parameters"};
inline constexpr ResultField kTrainedShare{"trained_share", ResultUnit::Share, "part that is trained"};
inline constexpr ResultField kBatchTokens{"batch_tokens", ResultUnit::Count, "tokens of a step"};
inline constexpr ResultField kLosses{"losses", ResultUnit::List, "losses"};
inline constexpr ResultField kCodesChanged{"codes_changed", ResultUnit::List, "shares of codes that steps changed"};
inline constexpr ResultField kQuantizedWeights{"quantized_weights", ResultUnit::Count,
                                               "weights that each update packed"};
inline constexpr ResultField kQuantizedUpdates{"quantized_updates", ResultUnit::Count,
                                               "times that all of them were packed"};
inline constexpr ResultField kGradNorms{"grad_norms", ResultUnit::List, "gradient norms"};
inline constexpr ResultField kLearningRates{"learning_rates", ResultUnit::List, "learning rates"};
inline constexpr ResultField kAuxLosses{"aux_losses", ResultUnit::List, "load-balancing losses"};
inline constexpr ResultField kEvalLosses{"eval_losses", ResultUnit::List, "validation losses"};
inline constexpr ResultField kEvalSteps{"eval_steps", ResultUnit::List, "steps of validation"};
inline constexpr ResultField kAnswers{"answers", ResultUnit::Data, "answers to fixed prompts"};
inline constexpr ResultField kStepSeconds{"step_seconds", ResultUnit::List, "times of steps"};
inline constexpr ResultField kTokens{"tokens", ResultUnit::Count, "tokens trained on in this run"};
inline constexpr ResultField kCheckpointsOnDevice{"checkpoints_on_device", ResultUnit::Count,
                                                  "layer inputs without room on the host", Better::Less};
inline constexpr ResultField kResumedFromStep{"resumed_from_step", ResultUnit::Count, "resumed from step"};
inline constexpr ResultField kEvalCutAtStep{"eval_cut_at_step", ResultUnit::Count, "evaluation cut after step"};
inline constexpr ResultField kTrainedLoss{"trained_loss", ResultUnit::Number, "loss of the trained model",
                                          Better::Less};
inline constexpr ResultField kSavedLoss{"saved_loss", ResultUnit::Number, "loss of the saved model", Better::Less};
inline constexpr ResultField kUnquantizedLoss{"unquantized_loss", ResultUnit::Number, "loss without quantization",
                                              Better::Less};
inline constexpr ResultField kAdapterLoss{"adapter_loss", ResultUnit::Number, "loss of the adapter", Better::Less};
inline constexpr ResultField kBaseLoss{"base_loss", ResultUnit::Number, "loss without the adapter"};
inline constexpr ResultField kMergedLoss{"merged_loss", ResultUnit::Number, "loss of the merged model", Better::Less};
inline constexpr ResultField kMergeLossKept{"merge_loss_kept", ResultUnit::Share, "gain that merging keeps",
                                            Better::More};
inline constexpr ResultField kMerged{"merged", ResultUnit::Text, "merged model"};
// Updates of a policy: lists have a number for each update, taken before it
inline constexpr ResultField kClipShare{"clip_share", ResultUnit::List, "shares of clipped tokens"};
inline constexpr ResultField kEntropy{"entropy", ResultUnit::List, "entropies"};
inline constexpr ResultField kMeanRatio{"mean_ratio", ResultUnit::List, "mean ratios to the old policy"};
inline constexpr ResultField kLogprobAbsDiff{"logprob_abs_diff", ResultUnit::Number,
                                             "difference of the sampler's log-probabilities", Better::Less};
inline constexpr ResultField kMismatchK3{"mismatch_k3", ResultUnit::Number, "KL divergence of the sampler",
                                         Better::Less};
inline constexpr ResultField kTruncatedShare{"truncated_share", ResultUnit::Share,
                                             "tokens whose importance weight is capped", Better::Less};
// Reinforcement learning: lists have a number for each step
inline constexpr ResultField kRewards{"rewards", ResultUnit::List, "mean rewards", Better::More};
inline constexpr ResultField kRewardsLow{"rewards_low", ResultUnit::List,
                                         "mean rewards of groups, lower end of the middle half"};
inline constexpr ResultField kRewardsHigh{"rewards_high", ResultUnit::List,
                                          "mean rewards of groups, upper end of the middle half"};
inline constexpr ResultField kGroupRewards{"group_rewards", ResultUnit::Data, "mean rewards of each step's groups"};
inline constexpr ResultField kEvalRewards{"eval_rewards", ResultUnit::List, "rewards of evaluations", Better::More};
inline constexpr ResultField kRlEvalSteps{"eval_reward_steps", ResultUnit::List, "steps of evaluations"};
inline constexpr ResultField kAnswerTokens{"answer_tokens", ResultUnit::List, "mean lengths of answers"};
inline constexpr ResultField kCutShare{"cut_share", ResultUnit::List, "shares of answers that were too long"};
inline constexpr ResultField kLogprobMaxDiff{"logprob_max_diff", ResultUnit::List,
                                             "largest differences of the sampler's log-probabilities"};
inline constexpr ResultField kEffectiveShare{"effective_sample_share", ResultUnit::List,
                                             "effective sample sizes over tokens"};
inline constexpr ResultField kReplayedShare{"replayed_share", ResultUnit::List,
                                            "shares of tokens whose experts were replayed"};
inline constexpr ResultField kExpertDisagreement{"expert_disagreement", ResultUnit::List,
                                                 "shares of experts that the trainer would not have chosen"};
inline constexpr ResultField kLeftOutGroups{"left_out_groups", ResultUnit::List, "groups that taught nothing"};
inline constexpr ResultField kJudgeErrors{"judge_errors", ResultUnit::List, "answers without a reward"};
inline constexpr ResultField kAskedProblems{"asked_problems", ResultUnit::List, "problems asked"};
inline constexpr ResultField kMixedVersions{"mixed_version_share", ResultUnit::List,
                                            "shares of answers of several versions"};
inline constexpr ResultField kDraftAcceptance{"draft_acceptance", ResultUnit::List, "shares of drafts that were right"};
inline constexpr ResultField kPhaseSeconds{"phase_seconds", ResultUnit::Data, "seconds of phases"};
inline constexpr ResultField kRolloutRates{"rollout_tokens_per_second", ResultUnit::List, "sampled tokens per second"};
inline constexpr ResultField kPeakByRole{"peak_by_role", ResultUnit::Data, "peak memory by role"};
inline constexpr ResultField kAfterSleep{"after_sleep_bytes", ResultUnit::List, "memory that stays after sleep"};
inline constexpr ResultField kAfterSleepOwners{"after_sleep_by_category", ResultUnit::Data,
                                               "memory that stays after sleep, by category"};
inline constexpr ResultField kRolloutWeights{"rollout_weights", ResultUnit::Text, "weights of rollouts"};
inline constexpr ResultField kRewardSource{"reward_source", ResultUnit::Text, "answers are judged by"};
inline constexpr ResultField kSampledAnswers{"sampled_answers", ResultUnit::Data, "answers of some groups"};
inline constexpr ResultField kTechniques{"techniques", ResultUnit::Rows, "techniques"};
inline constexpr ResultField kName{"name", ResultUnit::Text, "name"};
inline constexpr ResultField kCheckpoint{"checkpoint", ResultUnit::Text, "checkpointing"};
inline constexpr ResultField kLossChunks{"loss_chunks", ResultUnit::Text, "chunks of the loss"};
inline constexpr ResultField kTiledMlp{"tiled_mlp", ResultUnit::Text, "tiled MLP"};
inline constexpr ResultField kHostBytes{"host_bytes", ResultUnit::Bytes, "host memory", Better::Less};

// Attention programs
inline constexpr ResultField kHeads{"heads", ResultUnit::Count, "heads"};
inline constexpr ResultField kKvHeads{"kv_heads", ResultUnit::Count, "KV heads"};
inline constexpr ResultField kQLen{"q_len", ResultUnit::Count, "query tokens"};
inline constexpr ResultField kKvLen{"kv_len", ResultUnit::Count, "key tokens"};
inline constexpr ResultField kHeadDim{"head_dim", ResultUnit::Count, "head size"};
inline constexpr ResultField kForwardFlops{"forward_flops", ResultUnit::Number, "FLOPs forward"};
inline constexpr ResultField kForwardMs{"forward_ms", ResultUnit::Milliseconds, "forward", Better::Less};
inline constexpr ResultField kForwardTflops{"forward_tflops", ResultUnit::TeraflopsPerSecond, "forward rate",
                                            Better::More};
inline constexpr ResultField kFullForwardMs{"full_forward_ms", ResultUnit::Milliseconds, "forward without the mask",
                                            Better::Less};
inline constexpr ResultField kPredictedForwardMs{"predicted_forward_ms", ResultUnit::Milliseconds,
                                                 "forward, predicted"};
inline constexpr ResultField kBackwardMs{"backward_ms", ResultUnit::Milliseconds, "backward", Better::Less};
inline constexpr ResultField kBackwardTflops{"backward_tflops", ResultUnit::TeraflopsPerSecond, "backward rate",
                                             Better::More};
inline constexpr ResultField kFullBackwardMs{"full_backward_ms", ResultUnit::Milliseconds, "backward without the mask",
                                             Better::Less};
inline constexpr ResultField kPredictedBackwardMs{"predicted_backward_ms", ResultUnit::Milliseconds,
                                                  "backward, predicted"};
inline constexpr ResultField kBlockSize{"block_size", ResultUnit::Count, "block size"};
inline constexpr ResultField kBlockSparsity{"block_sparsity", ResultUnit::Share, "block sparsity"};
inline constexpr ResultField kFullShare{"full_share", ResultUnit::Share, "full blocks"};
inline constexpr ResultField kMetadataBytes{"metadata_bytes", ResultUnit::Bytes, "block mask", Better::Less};
inline constexpr ResultField kBuildSeconds{"build_seconds", ResultUnit::Seconds, "making of the block mask",
                                           Better::Less};
inline constexpr ResultField kBlockMaskCached{"block_mask_cached", ResultUnit::Flag, "block mask kept from before"};
inline constexpr ResultField kNotes{"notes", ResultUnit::List, "notes"};

// Logits, files and tables
inline constexpr ResultField kShape{"shape", ResultUnit::List, "shape"};
inline constexpr ResultField kOutput{"output", ResultUnit::Text, "written to"};
inline constexpr ResultField kBytes{"bytes", ResultUnit::Bytes, "written"};
inline constexpr ResultField kFiles{"files", ResultUnit::Count, "files"};
inline constexpr ResultField kRows{"rows", ResultUnit::Data, "rows"};
inline constexpr ResultField kDecoded{"decoded", ResultUnit::Text, "text again"};
inline constexpr ResultField kDecodeContexts{"decode_contexts", ResultUnit::Text, "contexts of decoding"};

// Converted models: a row for each weight, and for each role of weights in the model
inline constexpr ResultField kTensors{"tensors", ResultUnit::Data, "weights"};
inline constexpr ResultField kRoles{"roles", ResultUnit::Rows, "weights by role"};
inline constexpr ResultField kRole{"role", ResultUnit::Text, "role"};
inline constexpr ResultField kFormatBefore{"format_before", ResultUnit::Text, "format before"};
inline constexpr ResultField kFormat{"format", ResultUnit::Text, "format"};
inline constexpr ResultField kElements{"elements", ResultUnit::Count, "elements"};
inline constexpr ResultField kBytesBefore{"bytes_before", ResultUnit::Bytes, "before", Better::Less};
inline constexpr ResultField kBytesAfter{"bytes_after", ResultUnit::Bytes, "after", Better::Less};
inline constexpr ResultField kMeanSquaredError{"mse", ResultUnit::Number, "mean squared error", Better::Less};
inline constexpr ResultField kSignalToNoise{"snr_db", ResultUnit::Number, "signal to noise (dB)", Better::More};
inline constexpr ResultField kCosine{"cosine", ResultUnit::Number, "cosine", Better::More};
inline constexpr ResultField kLargestError{"largest_error", ResultUnit::Number, "largest error", Better::Less};

// The Precision lab: a row for each format, a row for each part that could stay dense, and the rest as columns
// (engine/workload/precision/precision_result.cpp)
inline constexpr ResultField kFormats{"formats", ResultUnit::Rows, "formats"};
inline constexpr ResultField kTitle{"title", ResultUnit::Text, "title"};
inline constexpr ResultField kBitsPerWeight{"bits_per_weight", ResultUnit::Number, "bits per weight", Better::Less};
inline constexpr ResultField kModelBytes{"model_bytes", ResultUnit::Bytes, "model", Better::Less};
inline constexpr ResultField kPackedWeights{"packed_weights", ResultUnit::Count, "packed weights"};
/// Of formats a number; of updates of a policy a list of those from the reference.
inline constexpr ResultField kDivergence{"kl", ResultUnit::Number, "KL divergence (nats)", Better::Less};
inline constexpr ResultField kTopOne{"top_1", ResultUnit::Share, "same most likely token", Better::More};
inline constexpr ResultField kPerplexity{"perplexity", ResultUnit::Number, "perplexity", Better::Less};
inline constexpr ResultField kPlannedRate{"planned_tokens_per_second", ResultUnit::TokensPerSecond,
                                          "planned decode rate", Better::More};
inline constexpr ResultField kPlannedPrefillRate{"planned_prefill_tokens_per_second", ResultUnit::TokensPerSecond,
                                                 "planned prefill rate of BF16", Better::More};
inline constexpr ResultField kKeep{"keep", ResultUnit::Data, "weights that could stay dense"};
inline constexpr ResultField kFirstLayer{"first_layer", ResultUnit::Count, "first layer"};
inline constexpr ResultField kLastLayer{"last_layer", ResultUnit::Count, "last layer"};
inline constexpr ResultField kBytesAdded{"bytes_added", ResultUnit::Bytes, "added", Better::Less};
inline constexpr ResultField kDivergenceSaved{"kl_saved", ResultUnit::Number, "KL divergence saved", Better::More};
inline constexpr ResultField kMeanLogprob{"mean_logprob", ResultUnit::Number, "mean log-probability", Better::More};
inline constexpr ResultField kMeanEntropy{"mean_entropy", ResultUnit::Number, "mean entropy"};
inline constexpr ResultField kScoredTokens{"scored_tokens", ResultUnit::Count, "scored tokens"};
inline constexpr ResultField kNotScored{"not_scored", ResultUnit::Text, "no text was scored"};
inline constexpr ResultField kModelFolder{"model_folder", ResultUnit::Text, "model's folder"};
inline constexpr ResultField kPrecision{"precision", ResultUnit::Data, "weights and tokens"};

// A row of a benchmark
inline constexpr ResultField kValue{"value", ResultUnit::Number, "value"};
inline constexpr ResultField kUnit{"unit", ResultUnit::Text, "unit"};
inline constexpr ResultField kCeiling{"ceiling", ResultUnit::Number, "ceiling"};
inline constexpr ResultField kRatio{"ratio", ResultUnit::Share, "part of the ceiling", Better::More};
inline constexpr ResultField kWhat{"what", ResultUnit::Text, "what"};
inline constexpr ResultField kTtftP50Seconds{"ttft_p50_seconds", ResultUnit::Seconds, "time to first token, p50",
                                             Better::Less};
inline constexpr ResultField kTtftP90Seconds{"ttft_p90_seconds", ResultUnit::Seconds, "time to first token, p90",
                                             Better::Less};
inline constexpr ResultField kTtftP95Seconds{"ttft_p95_seconds", ResultUnit::Seconds, "time to first token, p95",
                                             Better::Less};
inline constexpr ResultField kTtftP99Seconds{"ttft_p99_seconds", ResultUnit::Seconds, "time to first token, p99",
                                             Better::Less};
inline constexpr ResultField kTpotP50Seconds{"tpot_p50_seconds", ResultUnit::Seconds, "time per output token, p50",
                                             Better::Less};
inline constexpr ResultField kTpotP90Seconds{"tpot_p90_seconds", ResultUnit::Seconds, "time per output token, p90",
                                             Better::Less};
inline constexpr ResultField kTpotP95Seconds{"tpot_p95_seconds", ResultUnit::Seconds, "time per output token, p95",
                                             Better::Less};
inline constexpr ResultField kTpotP99Seconds{"tpot_p99_seconds", ResultUnit::Seconds, "time per output token, p99",
                                             Better::Less};
inline constexpr ResultField kE2eP50Seconds{"e2e_p50_seconds", ResultUnit::Seconds, "time of a whole request, p50",
                                            Better::Less};
inline constexpr ResultField kE2eP90Seconds{"e2e_p90_seconds", ResultUnit::Seconds, "time of a whole request, p90",
                                            Better::Less};
inline constexpr ResultField kE2eP95Seconds{"e2e_p95_seconds", ResultUnit::Seconds, "time of a whole request, p95",
                                            Better::Less};
inline constexpr ResultField kE2eP99Seconds{"e2e_p99_seconds", ResultUnit::Seconds, "time of a whole request, p99",
                                            Better::Less};

// Whatever ran: the program's own
inline constexpr ResultField kSmClockHz{"sm_clock_hz", ResultUnit::Data, "clock of the GPU at the end"};
inline constexpr ResultField kError{"error", ResultUnit::Data, "error"};
inline constexpr ResultField kLostRecords{"lost_records", ResultUnit::Count, "records lost", Better::Less};
inline constexpr ResultField kNextRun{"next_run", ResultUnit::Count, "next part"};
inline constexpr ResultField kProfilerNotes{"profiler_notes", ResultUnit::List, "notes of the profiler"};
inline constexpr ResultField kDroppedParts{"dropped_parts", ResultUnit::Count, "older parts deleted"};
inline constexpr ResultField kDroppedBytes{"dropped_bytes", ResultUnit::Bytes, "deleted with older parts"};

} // namespace vitrine::engine::result
