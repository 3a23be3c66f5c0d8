// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The upper limit of the speed at which a request trace can be served, by arithmetic: how many steps the answers take
// in a number of slots, and how many bytes and FLOPs each step needs.

#include <cstdint>
#include <vector>

#include "engine/model/model.h"
#include "engine/workload/batch/request_trace.h"

namespace vitrine::engine {

/// The number of requests that get a token, for each step; the size of the list is the number of steps. Free slots are
/// filled at once in the order of the trace, all requests are there at time 0, and each request runs until its answer
/// has its full length.
std::vector<std::int32_t> rowsOfSteps(const std::vector<TraceRow>& trace, std::int32_t slots);

/// The speed of a device.
struct DeviceRates {
    double bytes = 0; ///< bytes that it reads per second
    double flops = 0; ///< FLOPs of dense products per second
};

struct BatchCeiling {
    /// Tokens/s of decode steps with a request in every slot, each with the mean context length of the trace.
    double fullSlots = 0;
    /// Tokens/s of the steps of rowsOfSteps and the FLOPs of the prompts at these rates; at most fullSlots.
    double trace = 0;
    std::int64_t steps = 0;
};
/// A step takes the time of its bytes or the time of its FLOPs, whichever is larger. Its bytes are the weights, each
/// read once, and the keys and values in `kvType`. Of the experts it counts as many as are hit on average when all are
/// equally likely. Nothing else takes time.
BatchCeiling batchCeiling(const Model& model, const std::vector<TraceRow>& trace, std::int32_t slots,
                          kernels::DType kvType, const DeviceRates& rates);

} // namespace vitrine::engine
