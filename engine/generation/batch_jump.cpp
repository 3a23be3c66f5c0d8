// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Steps of a plan that need not run, because they are like the one before them.

#include <algorithm>
#include <limits>

#include "engine/generation/batch_pool.h"
#include "engine/generation/batch_row.h"
#include "kernels/context/equal_work.h"

namespace vitrine::engine {

/// Of a stretch of equal steps the middle one runs. The time of a step grows evenly with the cache, so all of them take
/// as long as the middle one so many times.
bool BatchEngine::step() {
    kernels::Context& context = model_.context();
    context.throwIfStopped();
    const std::int64_t others = stepsToJump();
    const std::int64_t before = others / 2;
    skipSteps(before);
    const base::TimeNs begin = now();
    const bool ran = runStep();
    lastTook_ = now() - begin;
    if (others > 0) {
        skipSteps(others - before);
        const double seconds = static_cast<double>(lastTook_) * 1e-9 * static_cast<double>(others);
        context.passTime(seconds);
        context.joinStreams();
        landedAt_ = now();
        counts_.decodeSeconds += seconds;
    }
    return ran;
}

/// How many steps may be left out beside the next one. What is shared, swapped, limited or searched for texts may
/// change from step to step.
std::int64_t BatchEngine::stepsToJump() const {
    kernels::Context& context = model_.context();
    const bool calm = swap_ == nullptr && refusedAt_ < 0 && underWay() == nullptr &&
                      scheduler_->options().tokenBudget == options_.scheduler.tokenBudget;
    if (jumpUntil_ == 0 || !kernels::jumpsEqualWork(context) || !calm || cache_->book()->sharesPrefixes()) {
        return 0;
    }
    std::int64_t steps = scheduler_->equalSteps();
    if (steps < 2) {
        return 0;
    }
    std::vector<int> sequences;
    for (const std::int32_t number : scheduler_->runningRequests()) {
        const ActiveRequest* const request = unended(number);
        if (request == nullptr || !request->request().stopTexts.empty() || kernels::needsHistory(request->sampling())) {
            return 0;
        }
        sequences.push_back(scheduler_->sequence(number));
    }
    steps = std::min(steps, cache_->roomBeforeGrowth(sequences));
    if (jumpUntil_ != std::numeric_limits<base::TimeNs>::max()) {
        // Steps get slower as the cache grows, by less than a quarter before a page is full.
        const base::TimeNs longest = std::max<base::TimeNs>(lastTook_, 1) * 5 / 4;
        steps = std::min(steps, (jumpUntil_ - now()) / longest);
    }
    return std::max<std::int64_t>(steps - 1, 0);
}

void BatchEngine::skipSteps(std::int64_t steps) {
    if (steps <= 0) {
        return;
    }
    std::vector<KvAppend> appends;
    for (const std::int32_t number : scheduler_->runningRequests()) {
        appends.push_back({scheduler_->sequence(number), steps});
        Row& row = rowOf(number);
        row.request.skip(steps);
        row.computed += steps;
    }
    const auto rows = static_cast<std::int32_t>(appends.size());
    counts_.steps += steps;
    counts_.samplingSteps += steps;
    counts_.generated += steps * rows;
    counts_.paddingTokens += buckets_ ? steps * (bucketRows(rows, mostDecodes()) - rows) : 0;
    scheduler_->skipEqual(steps);
    cache_->commit(appends);
    noteCache();
}

} // namespace vitrine::engine
