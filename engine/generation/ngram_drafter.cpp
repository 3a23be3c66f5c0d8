// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/ngram_drafter.h"

#include <algorithm>

namespace vitrine::engine {

std::vector<std::int32_t> ngramDraft(std::span<const std::int32_t> history, const NgramSizes& sizes,
                                     std::int64_t tokens) {
    const auto end = static_cast<std::int64_t>(history.size());
    const auto at = [&](std::int64_t index) { return history[static_cast<std::size_t>(index)]; };
    std::int64_t best = 0;
    std::int64_t place = -1; // behind the tokens that stand there once more
    for (std::int64_t behind = end - 1; behind >= sizes.shortest && best < sizes.longest; --behind) {
        std::int64_t equal = 0;
        while (equal < std::min(sizes.longest, behind) && at(behind - 1 - equal) == at(end - 1 - equal)) {
            ++equal;
        }
        if (equal >= sizes.shortest && equal > best) {
            best = equal;
            place = behind;
        }
    }
    std::vector<std::int32_t> draft;
    for (std::int64_t from = place; place >= 0 && from < place + tokens; ++from) {
        draft.push_back(from < end ? at(from) : draft[static_cast<std::size_t>(from - end)]);
    }
    return draft;
}

void NgramDrafter::draft(std::span<const DraftJob> jobs) {
    for (const DraftJob& job : jobs) {
        for (const std::int32_t id : ngramDraft(job.request->history(), sizes_, job.tokens)) {
            job.request->addToDraft(id);
        }
    }
}

void PlannedDrafter::draft(std::span<const DraftJob> jobs) {
    for (const DraftJob& job : jobs) {
        const std::int32_t last = job.request->history().back();
        for (std::int64_t i = 0; i < job.tokens; ++i) {
            job.request->addToDraft(last);
        }
    }
}

} // namespace vitrine::engine
