// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Who says what an answer is worth. Answers are handed in as they end and judged while others are still sampled.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/rl/problems/problem.h"

namespace vitrine::engine {

/// An answer to judge. The texts are those that a user would see.
struct Attempt {
    std::int64_t id = 0;   ///< the caller's
    std::int64_t turn = 0; ///< answers of this conversation before this one
    std::shared_ptr<const Problem> problem;
    std::vector<ChatMessage> messages; ///< the conversation until this answer, without it; empty for plain prompts
    std::string answer;
    bool cut = false; ///< it ended because it was too long
    bool isEvaluation = false;
};

/// What came of one. Exactly one of reward, reply and error is there.
struct Judgement {
    std::int64_t id = 0;              ///< of the attempt
    std::optional<double> reward;     ///< finite
    std::optional<std::string> reply; ///< the conversation goes on with this message of the user's
    std::string error;                ///< one sentence: why the answer could not be judged; empty: it was
    /// From when a process got it; NaN where that was not measured.
    double seconds = std::numeric_limits<double>::quiet_NaN();
};

/// Belongs to one thread.
class Rewarder {
public:
    Rewarder() = default;
    virtual ~Rewarder() = default;
    Rewarder(const Rewarder&) = delete; // may own processes
    Rewarder& operator=(const Rewarder&) = delete;

    /// Hands an answer in. Returns at once; any number may wait.
    virtual void judge(Attempt attempt) = 0;
    /// Judgements that are there, in any order. With `wait`, waits a short time (at most a tenth of a second) where
    /// none is there yet.
    virtual std::vector<Judgement> take(bool wait) = 0;
    /// Answers that are handed in and whose judgement was not taken.
    virtual std::int64_t waiting() const = 0;
    /// Forgets what waits, whose judgements never come. Judges may still be at work; they are stopped soon.
    virtual void drop() = 0;
};

/// Judges by the source's own reward(), at once; its errors of the types of base/error.h and rewards that are not
/// finite are errors of the judgement. REQUIRES source.judges(). The source outlives it.
std::unique_ptr<Rewarder> sourceRewarder(const ProblemSource& source);

} // namespace vitrine::engine
