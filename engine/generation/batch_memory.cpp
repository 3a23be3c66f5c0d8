// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The memory of a batch: its pool's pages, and what becomes of requests and steps that do not fit.

#include <algorithm>

#include "base/error.h"
#include "engine/generation/batch_row.h"

namespace vitrine::engine {
namespace {

/// Steps that fit before larger ones are tried again.
constexpr std::int64_t kCalmSteps = 1000;

} // namespace

/// All of the pool's memory before the first step. Where there is less than was counted on, in whole units of the
/// device, the pool is smaller.
void BatchEngine::mapWholePool() {
    for (const bool rings : {true, false}) {
        for (std::size_t group = 0; group < cache_->groups().size(); ++group) {
            const auto number = static_cast<int>(group);
            const KvGroup& kind = cache_->groups()[group];
            const std::int64_t pages = kvPoolPages(kind, cache_->options());
            if (kind.ring() != rings || cache_->backAhead(number, pages)) {
                continue;
            }
            const std::int64_t backed = cache_->backedPages(number);
            if (rings || backed <= options_.scheduler.otherPages) {
                cache_->requireBacked(number, pages);
            }
            options_.cache.poolPages = backed;
            cache_.reset(); // its memory first
            cache_ = std::make_unique<KvCache>(model_.context(), model_.config(), options_.cache);
            for (std::size_t other = 0; other < cache_->groups().size(); ++other) {
                cache_->requireBacked(static_cast<int>(other), kvPoolPages(cache_->groups()[other], cache_->options()));
            }
            return;
        }
    }
}

/// Memory for the pages that the next step may take, while the one under way goes on. Where the budget has none left
/// the pool stays as it is for a while: requests then make room for each other, and those that can never fit end.
void BatchEngine::mapPagesOfNextStep() {
    if (refusedAt_ >= 0 && counts_.steps - refusedAt_ >= kCalmSteps) {
        liftPoolLimits();
    }
    PageBook& book = *cache_->book();
    for (int group = 0; group < static_cast<int>(book.groups().size()); ++group) {
        const std::int64_t more = scheduler_->mostPagesOfStep(group) - book.openedFree(group);
        const std::int64_t most = book.groups()[static_cast<std::size_t>(group)].pages;
        const std::int64_t wanted = std::min(book.opened(group) + std::max<std::int64_t>(more, 0), most);
        // A static batch has been promised its pages: it fails where they are missing.
        if (!cache_->backAhead(group, wanted) && options_.scheduler.mode == BatchMode::Continuous) {
            book.limit(group, cache_->backedPages(group));
            refusedAt_ = counts_.steps;
            endRequestsThatCannotFit(group, wanted);
        }
    }
}

void BatchEngine::endRequestsThatCannotFit(int group, std::int64_t pages) {
    const std::vector<std::int32_t> ending = scheduler_->requestsThatCannotFit();
    if (ending.empty()) {
        return;
    }
    try {
        cache_->requireBacked(group, pages);
    } catch (const base::OutOfMemory& error) {
        if (!options_.survivesOutOfMemory) {
            throw;
        }
        lastOutOfMemory_ = error.message();
    }
    ++counts_.outOfMemorySteps;
    for (const std::int32_t request : ending) {
        ++counts_.failedRequests;
        Row& row = rowOf(request);
        row.out.failure = lastOutOfMemory_;
        pagesMoved_ = true;
        scheduler_->cancel(request);
        endRow(row, FinishReason::OutOfMemory, now(), finishReasonName(FinishReason::OutOfMemory));
    }
}

/// Memory that the pool did not find may be there again.
void BatchEngine::liftPoolLimits() {
    for (std::size_t group = 0; refusedAt_ >= 0 && group < cache_->groups().size(); ++group) {
        cache_->book()->limit(static_cast<int>(group), kvPoolPages(cache_->groups()[group], cache_->options()));
    }
    refusedAt_ = -1;
}

/// A step did not fit memory. The next one is smaller; a request that was alone in it with one token ends.
void BatchEngine::retrySmaller(const PendingStep& pending, const base::OutOfMemory& error) {
    scheduler_->undo(pending.schedule);
    dropGraphs();
    ++counts_.outOfMemorySteps;
    lastOutOfMemory_ = error.message();
    fitting_ = 0;
    std::int64_t tokens = 0;
    Row* only = nullptr;
    for (const ScheduledRow& scheduled : pending.schedule.rows) {
        if (Row* const row = unendedRow(scheduled.request); row != nullptr) {
            tokens += scheduled.tokens;
            only = row;
        }
    }
    if (tokens > 1) {
        scheduler_->limitTokens(tokens / 2);
        return;
    }
    scheduler_->limitTokens(options_.scheduler.tokenBudget);
    if (only == nullptr) {
        return;
    }
    ++counts_.failedRequests;
    only->out.failure = error.message();
    scheduler_->cancel(only->request.number());
    endRow(*only, FinishReason::OutOfMemory, now(), finishReasonName(FinishReason::OutOfMemory));
}

/// Memory that was short may be there again.
void BatchEngine::raiseTokenLimit() {
    const std::int64_t limit = scheduler_->options().tokenBudget;
    if (limit < options_.scheduler.tokenBudget && ++fitting_ >= kCalmSteps) {
        fitting_ = 0;
        scheduler_->limitTokens(std::min(2 * limit, options_.scheduler.tokenBudget));
    }
}

} // namespace vitrine::engine
