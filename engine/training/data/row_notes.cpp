// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/row_notes.h"

#include <fmt/format.h>
#include <utility>

#include "base/log.h"
#include "engine/checkpoint/unused_keys.h"

namespace vitrine::engine {

void RowNotes::unused(std::string key) {
    constexpr std::size_t kMostKeys = 1000;
    if (unused_.size() < kMostKeys) {
        unused_.insert(std::move(key));
    }
}

void RowNotes::withoutContent(const std::string& place) {
    if (empty_++ == 0) {
        firstEmpty_ = place;
    }
}

void RowNotes::say(const std::string& file) const {
    warnOfUnusedKeys(file, {unused_.begin(), unused_.end()}, "rows are trained without them");
    if (empty_ > 0) {
        base::logWarning(
            fmt::format("{}: an answer of the assistant has no content and no calls; the {} such answers of "
                        "the file are not trained",
                        firstEmpty_, empty_));
    }
}

} // namespace vitrine::engine
