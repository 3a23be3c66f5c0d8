// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A build without CUPTI's headers says so.

#include "profiler/gpu/device_work.h"
#include "profiler/gpu/pm_sampling.h"
#include "profiler/gpu/readiness.h"

namespace vitrine::profiler {

namespace {
constexpr const char* kReason = "this program was built without CUPTI's headers";
} // namespace

std::unique_ptr<WorkSource> openCupti(std::string& why) {
    why = kReason;
    return nullptr;
}

std::unique_ptr<CounterSampler> openCounterSampler(int, base::TimeNs, std::string& why) {
    why = kReason;
    return nullptr;
}

std::string whyNoCupti(bool) {
    return kReason;
}

} // namespace vitrine::profiler
