// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The price of work before anybody does it: any code that runs ops on a context runs on Meta, which computes nothing
// but allocates as the device of its traits would and lets the time pass that the device would take.

#include <cstdint>
#include <functional>
#include <optional>

#include "base/error.h"
#include "kernels/memory/memory.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

struct PricedWork {
    /// Why the work does not fit the context's budget; the other numbers are those until then.
    std::optional<base::OutOfMemory> outOfMemory;
    kernels::MemoryStatistics memory; ///< of the context: peaks by category and their place, bytes reserved
    std::uint64_t hostPeak = 0;       ///< bytes of host memory
    double seconds = 0;               ///< on the context's clock

    bool fits() const { return !outOfMemory.has_value(); }
};

/// Runs the work once. `context` is new, so that its statistics are those of the work. Throws what the work throws but
/// OutOfMemory.
PricedWork priceWork(kernels::Context& context, const std::function<void(kernels::Context&)>& work);

} // namespace vitrine::engine
