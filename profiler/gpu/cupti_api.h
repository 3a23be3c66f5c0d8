// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// CUPTI, opened at run time. Only files that are compiled with CUPTI's headers may include this one.

#include <cupti.h>
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <string>

namespace vitrine::profiler {

#define VITRINE_CUPTI_FUNCTIONS(F)                                                                                     \
    F(cuptiGetVersion)                                                                                                 \
    F(cuptiGetErrorMessage)                                                                                            \
    F(cuptiSubscribe_v2)                                                                                               \
    F(cuptiUnsubscribe)                                                                                                \
    F(cuptiEnableCallback)                                                                                             \
    F(cuptiActivityRegisterCallbacks)                                                                                  \
    F(cuptiActivityRegisterTimestampCallback)                                                                          \
    F(cuptiActivityEnable)                                                                                             \
    F(cuptiActivityDisable)                                                                                            \
    F(cuptiActivityFlushAll)                                                                                           \
    F(cuptiActivityGetNextRecord)                                                                                      \
    F(cuptiActivityGetNumDroppedRecords)                                                                               \
    F(cuptiActivityEnableAllSyncRecords)                                                                               \
    F(cuptiGetGraphNodeId)                                                                                             \
    F(cuptiGetTimestamp)

#define VITRINE_CUPTI_SAMPLING_FUNCTIONS(F)                                                                            \
    F(cuptiProfilerInitialize)                                                                                         \
    F(cuptiDeviceGetChipName)                                                                                          \
    F(cuptiProfilerHostInitialize)                                                                                     \
    F(cuptiProfilerHostDeinitialize)                                                                                   \
    F(cuptiProfilerHostConfigAddMetrics)                                                                               \
    F(cuptiProfilerHostGetConfigImageSize)                                                                             \
    F(cuptiProfilerHostGetConfigImage)                                                                                 \
    F(cuptiProfilerHostGetNumOfPasses)                                                                                 \
    F(cuptiProfilerHostEvaluateToGpuValues)                                                                            \
    F(cuptiPmSamplingGetCounterAvailability)                                                                           \
    F(cuptiPmSamplingEnable)                                                                                           \
    F(cuptiPmSamplingDisable)                                                                                          \
    F(cuptiPmSamplingSetConfig)                                                                                        \
    F(cuptiPmSamplingStart)                                                                                            \
    F(cuptiPmSamplingStop)                                                                                             \
    F(cuptiPmSamplingDecodeData)                                                                                       \
    F(cuptiPmSamplingGetCounterDataSize)                                                                               \
    F(cuptiPmSamplingCounterDataImageInitialize)                                                                       \
    F(cuptiPmSamplingGetCounterDataInfo)                                                                               \
    F(cuptiPmSamplingCounterDataGetSampleInfo)

struct CuptiApi {
// CUPTI's own names, as members.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define VITRINE_MEMBER(name) decltype(&::name) name = nullptr;
    // NOLINTBEGIN(readability-identifier-naming)
    VITRINE_CUPTI_FUNCTIONS(VITRINE_MEMBER)
    VITRINE_CUPTI_SAMPLING_FUNCTIONS(VITRINE_MEMBER)
    // NOLINTEND(readability-identifier-naming)
#undef VITRINE_MEMBER
    std::uint32_t version = 0; ///< 130001 is the first of CUDA 13.0's
    std::string path;
    bool samples = false; ///< has everything for sampling hardware counters

    /// The CUPTI of this machine, or null. Thread-safe.
    static const CuptiApi* find();
    /// One sentence: why find() is null.
    static const std::string& whyMissing();

    /// One sentence for a refusal, with what to do about it.
    std::string describe(CUptiResult code) const;
};

} // namespace vitrine::profiler
