// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a session keeps of the answers of a run: of which steps, and what their tokens stand for.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/rl/rollout/rollout_group.h"
#include "kernels/core/tracer.h"

namespace vitrine::engine {

class Tokenizer;

/// Which steps of a run a session keeps answers of, so that it stays small however long the run is.
class KeptSteps {
public:
    /// Steps whose tokens are kept, at most, with the newest one.
    static constexpr std::int64_t kMost = 64;

    /// `evalEvery` 0: none is evaluated. `answers`: of a step.
    KeptSteps(std::int64_t steps, std::int64_t evalEvery, std::int64_t answers);
    /// Whether the tokens of a step's rollouts are kept: all of a short run, of a long one those of the first three
    /// steps, of steps with an evaluation, and evenly of others.
    bool tokens(std::int64_t number) const;
    /// Whether rewards, lengths and times of its answers are kept.
    bool answers(std::int64_t number) const;

private:
    std::int64_t steps_, evalEvery_, every_, everyEvaluation_, everyAnswers_;
};

/// Rollouts of a step as a session has them. Values.
struct RolloutRecords {
    struct Token {
        base::RolloutTokenEvent event;
        std::string text; ///< empty: not known, or written by a chat template
    };
    std::vector<base::RolloutEvent> rows;
    std::vector<Token> tokens;

    /// With the time that it is now.
    void report(kernels::Tracer& tracer) const;
};

/// How many rows the first groups have that together have no more than `most` tokens: whole groups, but for a first one
/// that is larger. `places` are those of the rows, see TrainedAnswers.
std::int64_t rowsOfWholeGroups(const Rollouts& rollouts, std::span<const std::pair<std::size_t, std::size_t>> places,
                               std::int64_t most);

/// What a problem asks, without the chat format around it.
std::string askedText(const Problem& problem);
/// What the tokens of a prompt stand for, where they are a part of what was asked: empty for what a chat template puts
/// around it. Where the template writes it in another way, only special tokens are empty.
std::vector<std::string> questionTexts(const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                                       std::string_view question);

} // namespace vitrine::engine
