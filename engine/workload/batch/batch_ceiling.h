// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What serving a trace of requests cannot be faster than, by arithmetic: how many steps its answers take in so many
// slots, and how many bytes and FLOPs each of them needs.

#include <cstdint>
#include <vector>

#include "engine/model/model.h"
#include "engine/workload/batch/request_trace.h"

namespace vitrine::engine {

/// Requests that get a token in each step when a free slot is filled at once, in the order of the trace, and every
/// request steps until its answer is long enough: its size is the number of steps. Arrivals are taken as 0.
std::vector<std::int32_t> rowsOfSteps(const std::vector<TraceRow>& trace, std::int32_t slots);

/// What a device can do.
struct DeviceRates {
    double bytes = 0; ///< per second, read
    double flops = 0; ///< per second, of dense products
};

struct BatchCeiling {
    double fullSlots = 0; ///< tokens/s of a decode step with a request in every slot, of the trace's mean context
    double trace = 0;     ///< tokens/s of rowsOfSteps with these rates, and of the prompts' FLOPs; at most fullSlots
    std::int64_t steps = 0;
};
/// A step takes the larger of the time of its bytes (weights once, experts as equally likely ones are hit, keys and
/// values of `kvType`) and that of its FLOPs; nothing else costs.
BatchCeiling batchCeiling(const Model& model, const std::vector<TraceRow>& trace, std::int32_t slots,
                          kernels::DType kvType, const DeviceRates& rates);

} // namespace vitrine::engine
