// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/planning/priced_work.h"

#include "kernels/context/context.h"

namespace vitrine::engine {

PricedWork priceWork(kernels::Context& context, const std::function<void(kernels::Context&)>& work) {
    PricedWork out;
    const base::TimeNs begin = context.clock().now();
    try {
        work(context);
    } catch (const base::OutOfMemory& error) {
        out.outOfMemory = error;
    }
    out.memory = context.memory().statistics();
    out.hostPeak = context.memory().hostStatistics().peak;
    out.seconds = static_cast<double>(context.clock().now() - begin) * 1e-9;
    return out;
}

} // namespace vitrine::engine
