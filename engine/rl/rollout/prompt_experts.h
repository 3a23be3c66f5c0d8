// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experts of prompts that several answers share. The first answer of a group reads the whole prompt; answers that
// find its keys in known pages get the experts of these tokens from it. All of them hold one copy.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/generation/generator.h"

namespace vitrine::engine {

/// Requests are named by their places in one call of RolloutEngine::sample().
class PromptExperts {
public:
    /// For each request in order; `first` is the place of the first one of its group. Where pages are shared, the first
    /// one is asked to read its whole prompt.
    void note(GenerateRequest& request, std::size_t first, bool sharesPages);
    /// The request has its first token, or has ended; its result so far. Only of the first of a group it is looked at.
    void read(std::size_t place, const GenerateResult& result);
    /// The request has ended: its result gets what it lacks. Where the group's first answer has not read the prompt, it
    /// stays as it is.
    void complete(std::size_t place, GenerateResult& result);

private:
    struct Group {
        std::int64_t left = 0;                         ///< answers that have not ended
        bool shared = false;                           ///< there is more than one
        std::shared_ptr<const ExpertChoices> ofPrompt; ///< null: not read yet
    };

    std::vector<std::optional<std::size_t>> firsts_; ///< by place; of those whose group is in groups_
    std::map<std::size_t, Group> groups_; ///< by the place of the first; those that want experts and share pages
};

} // namespace vitrine::engine
