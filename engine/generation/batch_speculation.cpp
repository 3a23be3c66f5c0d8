// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Speculation in a batch: what the requests offer the scheduler, and what comes back out of the cache.

#include "base/error.h"
#include "engine/generation/batch_row.h"

namespace vitrine::engine {

std::vector<ActiveRequest*> BatchEngine::draftingRequests() {
    std::vector<ActiveRequest*> requests;
    for (const std::int32_t number : scheduler_->decoding()) {
        requests.push_back(&rowOf(number).request);
    }
    return requests;
}

/// Before each schedule: what every decoding request may check in its next row.
void BatchEngine::offerDrafts() {
    if (!speculation_.on()) {
        return;
    }
    std::vector<ActiveRequest*> requests = draftingRequests();
    if (underWay() != nullptr && !allRest(requests)) {
        landLast();
        requests = draftingRequests();
    }
    try {
        draft(requests);
    } catch (const base::OutOfMemory& error) {
        if (!options_.survivesOutOfMemory) {
            throw;
        }
        // A draft is never needed: the step goes without.
        lastOutOfMemory_ = error.message();
        ++counts_.outOfMemorySteps;
        speculation_.drafter->forgetAll();
        dropGraphs();
        for (ActiveRequest* const request : requests) {
            request->dropDraft();
        }
    }
    for (const ActiveRequest* const request : requests) {
        scheduler_->offerDraft(request->number(), static_cast<std::int64_t>(request->draft().size()));
    }
}

/// Both models have their steps in one arena, and each drops its own graphs only where it finds no memory for it.
void BatchEngine::dropGraphs() {
    if (speculation_.on()) {
        model_.dropGraphs();
        speculation_.drafter->dropGraphs();
    }
}

void BatchEngine::forgetDrafts(std::int32_t request) {
    if (speculation_.on()) {
        speculation_.drafter->forget(request);
    }
}

void BatchEngine::rollBack(ActiveRequest& request, std::int64_t rejected) {
    const int sequence = scheduler_->sequence(request.number());
    scheduler_->reject(request.number(), rejected);
    cache_->trim(sequence, cache_->length(sequence) - rejected);
    pagesMoved_ = true;
}

} // namespace vitrine::engine
