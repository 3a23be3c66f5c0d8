// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What limits a step of reinforcement learning, and the nearest option that would change it with what that saves. Made
// of the step's own records. Pure functions; any thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>

#include "ui/models/rl/rl_phases.h"

namespace vitrine::ui {

enum class RlLimitKind : std::uint8_t { LastAnswers, Rollout, Judging, LogProbs, Train, Weights };

struct RlLimit {
    RlLimitKind kind = RlLimitKind::Rollout;
    double seconds = 0, stepSeconds = 0;
    std::int64_t answers = 0, of = 0; ///< LastAnswers: so many of so many are waited for
    std::int64_t tokens = 0;          ///< LastAnswers: of an answer when the waiting begins

    double share() const { return stepSeconds > 0 ? seconds / stepSeconds : 0; }
};

/// The end of a rollout in which only the last answers are sampled; `most` counts them.
struct RlTail {
    double seconds = 0;
    std::int64_t answers = 0; ///< that are sampled when it begins
    std::int64_t steps = 0;   ///< of the sampler before it
};
std::optional<RlTail> rolloutTail(const profiler::RunTimeline& timeline, TimeRange rollout, std::int64_t most);

/// Nothing where the parts of the step are not known. `memory` may be null: waiting is not known then.
std::optional<RlLimit> rlLimit(const RlRun& run, std::size_t index, const RlStepMemory* memory);

/// "Rollouts wait for <b>3 of 1,024 answers</b>: <b>41.0 %</b> of the step." Rich text.
QString limitSentence(const RlLimit& limit);
/// An option that would change it, what it saves in words, and the experiment with it.
struct RlChange {
    std::string key;
    QString words;
    std::string experimentJson;
};
/// `metricsJson`: what the run has said so far, which names what it chose by itself.
std::optional<RlChange> limitChange(const RlLimit& limit, const std::string& specJson, const std::string& metricsJson);

} // namespace vitrine::ui
