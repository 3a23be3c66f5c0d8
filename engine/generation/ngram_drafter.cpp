// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/ngram_drafter.h"

namespace vitrine::engine {

void NgramDrafter::draft(std::span<const DraftJob> jobs) {
    for (const DraftJob& job : jobs) {
        NgramIndex& text = texts_.try_emplace(job.request->number(), sizes_).first->second;
        for (const std::int32_t id : text.draft(job.request->history(), job.tokens)) {
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
