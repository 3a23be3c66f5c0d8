// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Steps of a plan that need not run, because they are like the one before them.

#include <algorithm>
#include <limits>

#include "engine/generation/batch_pool.h"
#include "engine/generation/batch_row.h"
#include "kernels/context/equal_work.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {

/// After a step that was like those that follow, the middle one of them runs. The time of a step grows evenly with the
/// cache, so the others take as long as the middle one so many times.
bool BatchEngine::step() {
    kernels::Context& context = model_.context();
    context.throwIfStopped();
    const base::TimeNs begin = now(), once = context.onceTime();
    const bool ran = runStep();
    lastTook_ = std::max<base::TimeNs>(0, now() - begin - (context.onceTime() - once));
    const std::int64_t half = (stepsToJump() - 1) / 2;
    if (half <= 0) {
        return ran;
    }
    std::int64_t skipped = skipSteps(half);
    const bool whole = skipped == half;
    if (whole) {
        const base::TimeNs middle = now();
        runStep();
        lastTook_ = now() - middle;
        skipped += skipSteps(half);
    }
    const double seconds = static_cast<double>(lastTook_) * 1e-9 * static_cast<double>(skipped);
    context.passTime(seconds);
    context.joinStreams();
    landedAt_ = now();
    counts_.decodeSeconds += seconds;
    return ran;
}

/// How many of the next steps have the rows and shapes of the last one. What is shared, swapped, limited or searched
/// for texts may change from step to step.
std::int64_t BatchEngine::stepsToJump() const {
    kernels::Context& context = model_.context();
    const bool calm = swap_ == nullptr && refusedAt_ < 0 && underWay() == nullptr &&
                      scheduler_->options().tokenBudget == options_.scheduler.tokenBudget;
    if (!options_.jumpEqualSteps || speculation_.on() || lastDecodes_ == 0 || lastDecodes_ != scheduler_->running() ||
        !kernels::jumpsEqualWork(context) || !calm || cache_->book()->sharesPrefixes()) {
        return 0;
    }
    std::int64_t steps = scheduler_->equalSteps();
    if (jumpUntil_ != std::numeric_limits<base::TimeNs>::max()) {
        // Steps get slower as the cache grows: those that may be gone over take less than twice as long.
        steps = std::min(steps, (jumpUntil_ - now()) / std::max<base::TimeNs>(2 * lastTook_, 1));
    }
    for (const std::int32_t number : scheduler_->runningRequests()) {
        const ActiveRequest* const request = unended(number);
        if (request == nullptr || !request->request().stopTexts.empty() || !request->request().stopTokens.empty() ||
            kernels::needsHistory(request->sampling())) {
            return 0;
        }
        steps = std::min(steps, cache_->length(scheduler_->sequence(number)));
    }
    while (steps > 0 && !staysAlike(steps)) {
        steps /= 2;
    }
    return steps;
}

/// Whether the pool has the pages of so many steps, and block tables stay as wide as they are.
bool BatchEngine::staysAlike(std::int64_t steps) const {
    const PageBook& book = *cache_->book();
    const std::vector<KvAppend> before = appendsOfRunning(0);
    const std::vector<KvAppend> after = appendsOfRunning(steps);
    for (int group = 0; group < static_cast<int>(book.groups().size()); ++group) {
        std::int64_t pages = 0;
        for (const KvAppend& append : after) {
            pages += book.missing(append.sequence, group, steps);
        }
        if (pages > book.available(group) ||
            cache_->tableColumns(group, before) != cache_->tableColumns(group, after)) {
            return false;
        }
    }
    return true;
}

std::vector<KvAppend> BatchEngine::appendsOfRunning(std::int64_t tokens) const {
    std::vector<KvAppend> out;
    for (const std::int32_t number : scheduler_->runningRequests()) {
        out.push_back({scheduler_->sequence(number), tokens});
    }
    return out;
}

/// Goes over steps like the last one, and takes their pages one step after the other: how a pool grows depends on when
/// it is asked. Returns how many steps it came to; fewer where the device has no memory for the pool.
std::int64_t BatchEngine::skipSteps(std::int64_t steps) {
    const std::vector<std::int32_t> running = scheduler_->runningRequests();
    std::vector<int> sequences;
    sequences.reserve(running.size());
    for (const std::int32_t number : running) {
        sequences.push_back(scheduler_->sequence(number));
    }
    std::int64_t done = 0;
    while (done < steps) {
        model_.context().throwIfStopped();
        mapPagesOfNextStep();
        if (refusedAt_ >= 0) {
            break;
        }
        std::int64_t count = std::min(steps - done, cache_->roomBeforeGrowth(sequences));
        if (count == 0) {
            for (const int sequence : sequences) {
                cache_->book()->grow(sequence, 1);
            }
            cache_->backPages();
            count = 1;
        }
        cache_->commit(appendsOfRunning(count));
        model_.context().memory().repeatStep(model_.lastStepMemory());
        noteCache();
        done += count;
    }
    const auto rows = static_cast<std::int32_t>(running.size());
    for (const std::int32_t number : running) {
        Row& row = rowOf(number);
        if (!row.done()) {
            row.request.skip(done);
            row.computed += done;
        }
    }
    counts_.steps += done;
    counts_.samplingSteps += done;
    counts_.generated += done * rows;
    counts_.paddingTokens += buckets_ ? done * (bucketRows(rows, mostDecodes()) - rows) : 0;
    scheduler_->skipEqual(done);
    return done;
}

} // namespace vitrine::engine
