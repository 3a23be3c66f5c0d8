// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rollout/prompt_experts.h"

#include <algorithm>

namespace vitrine::engine {

namespace {

/// Whether these are the rows at the beginning of the answer's own, which then need not be held twice.
bool beginsWith(const ReadExperts& experts, const ExpertChoices& rows) {
    return experts.firstKnown == 0 && experts.choices.rows() >= rows.rows() &&
           std::ranges::equal(experts.choices.rowsFrom(0, rows.rows()), rows.bytes);
}

} // namespace

void PromptExperts::note(GenerateRequest& request, std::size_t first, bool sharesPages) {
    const std::size_t place = firsts_.size();
    if (!request.returnsExperts || !sharesPages) {
        firsts_.emplace_back();
        return;
    }
    firsts_.emplace_back(first);
    request.readsWholePrompt = request.readsWholePrompt || place == first;
    Group& group = groups_[first];
    ++group.left;
    group.shared = group.left > 1;
}

void PromptExperts::read(std::size_t place, const GenerateResult& result) {
    const auto found = groups_.find(place);
    const ReadExperts& experts = result.experts;
    const bool whole = experts.firstKnown == 0 && experts.choices.layers > 0 && experts.tokens() >= result.promptTokens;
    if (found == groups_.end() || !found->second.shared || found->second.ofPrompt != nullptr || !whole) {
        return;
    }
    const std::span<const std::uint8_t> rows = experts.choices.rowsFrom(0, result.promptTokens);
    auto copy = std::make_shared<ExpertChoices>();
    copy->layers = experts.choices.layers;
    copy->k = experts.choices.k;
    copy->idBytes = experts.choices.idBytes;
    copy->bytes.assign(rows.begin(), rows.end());
    found->second.ofPrompt = std::move(copy);
}

void PromptExperts::complete(std::size_t place, GenerateResult& result) {
    if (!firsts_[place]) {
        return;
    }
    const auto found = groups_.find(*firsts_[place]);
    Group& group = found->second;
    ReadExperts& experts = result.experts;
    if (group.ofPrompt != nullptr && beginsWith(experts, *group.ofPrompt)) {
        std::vector<std::uint8_t>& own = experts.choices.bytes;
        own = std::vector<std::uint8_t>(own.begin() + static_cast<std::ptrdiff_t>(group.ofPrompt->bytes.size()),
                                        own.end());
        experts.firstKnown = group.ofPrompt->rows();
    }
    if (group.ofPrompt != nullptr && experts.firstKnown > 0 && experts.firstKnown <= group.ofPrompt->rows()) {
        experts.before = group.ofPrompt;
    }
    if (--group.left == 0) {
        groups_.erase(found);
    }
}

} // namespace vitrine::engine
