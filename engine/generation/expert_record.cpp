// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/expert_record.h"

#include <algorithm>

namespace vitrine::engine {

std::span<const std::uint8_t> ReadExperts::row(std::int64_t token) const {
    if (token >= firstKnown) {
        return choices.rowsFrom(token - firstKnown);
    }
    return before == nullptr ? std::span<const std::uint8_t>{} : before->rowsFrom(token);
}

std::int32_t ReadExperts::id(std::int64_t token, std::int64_t layer, std::int64_t place) const {
    return token >= firstKnown ? choices.id(token - firstKnown, layer, place) : before->id(token, layer, place);
}

void ExpertRecord::note(std::int64_t position, std::int64_t tokens, const ExpertChoices& step, std::int64_t row) {
    if (step.layers == 0 || finished_) {
        return;
    }
    ExpertChoices& own = out_->choices;
    if (known_.empty()) {
        own.layers = step.layers;
        own.k = step.k;
        own.idBytes = step.idBytes;
        out_->firstKnown = position;
    }
    fit(position, position + tokens);
    const auto from = static_cast<std::ptrdiff_t>(position - out_->firstKnown);
    const auto bytes = static_cast<std::ptrdiff_t>(own.rowBytes());
    std::ranges::copy(step.rowsFrom(row, tokens), own.bytes.begin() + from * bytes);
    std::fill_n(known_.begin() + from, tokens, true);
}

/// Makes rows for the tokens from `begin` to `end`.
void ExpertRecord::fit(std::int64_t begin, std::int64_t end) {
    ExpertChoices& own = out_->choices;
    if (begin < out_->firstKnown) {
        // It shared pages when it came in first, but not when it came back.
        const auto rows = static_cast<std::size_t>(out_->firstKnown - begin);
        own.bytes.insert(own.bytes.begin(), rows * own.rowBytes(), 0);
        known_.insert(known_.begin(), rows, false);
        out_->firstKnown = begin;
    }
    const std::size_t rows = std::max(static_cast<std::size_t>(end - out_->firstKnown), known_.size());
    known_.resize(rows, false);
    own.bytes.resize(rows * own.rowBytes());
}

void ExpertRecord::skipTo(std::int64_t tokens) {
    if (!known_.empty() && tokens > out_->tokens()) {
        fit(out_->firstKnown, tokens);
        known_.assign(known_.size(), true);
    }
}

void ExpertRecord::finish(std::int64_t tokens) {
    if (finished_) {
        return;
    }
    finished_ = true;
    ExpertChoices& own = out_->choices;
    const auto most = static_cast<std::size_t>(std::max<std::int64_t>(tokens - out_->firstKnown, 0));
    const std::size_t rows = std::min(most, known_.size());
    // Where it came back with more shared tokens than it had read before, nothing is known of some.
    std::size_t gone = rows;
    while (gone > 0 && known_[gone - 1]) {
        --gone;
    }
    const auto rowBytes = static_cast<std::ptrdiff_t>(own.rowBytes());
    own.bytes = std::vector<std::uint8_t>(own.bytes.begin() + static_cast<std::ptrdiff_t>(gone) * rowBytes,
                                          own.bytes.begin() + static_cast<std::ptrdiff_t>(rows) * rowBytes);
    out_->firstKnown += static_cast<std::int64_t>(gone);
    known_ = {};
}

} // namespace vitrine::engine
