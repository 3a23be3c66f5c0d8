// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How many tokens a request drafts next, from what came of its drafts so far.
//
// A step that checks k tokens takes longer than a plain one, by a part of a plain step that CheckCost tells. It gives
// 1 + a + a^2 + ... + a^k tokens on average, where a is the acceptance: the probability that a drafted token is right
// if those before it are. The pace takes the k that gives the most tokens in the time. Where no k gives more than plain
// steps do, the request rests: it drafts nothing for some steps, and twice as many each time that a draft after a rest
// was useless too.
//
// A request begins with trust: until a drafted token is wrong, its drafts are as long as they may be.
//
// The acceptance is measured over the last few drafts, because a text changes: an answer copies its prompt for some
// lines and then says something new. Nothing here looks at a clock, so a run can be repeated step by step.

#include <cstdint>

namespace vitrine::engine {

/// What checking drafts adds to a step, in times of a plain step.
struct CheckCost {
    double step = 0;  ///< once, for a step that checks anything
    double token = 0; ///< for each drafted token, with the making of the draft
};

/// The lengths that drafts have: 1, 2, then multiples of 4, 8 and 32 (bucketRows in batch_pool.h), and `limit`. This is
/// the longest one that is not above `most`; 0: there is none. Few lengths make few kinds of steps, so captured graphs
/// serve them.
std::int64_t draftLength(std::int64_t most, std::int64_t limit);

class DraftPace {
public:
    /// Whether the next step has no draft of the request, whatever its text is.
    bool rests() const { return resting_ > 0; }
    /// The length of the draft for the next step: draftLength() of at most `most`, or 0. Counts the step against a
    /// rest.
    std::int64_t next(std::int64_t most, std::int64_t limit, const CheckCost& cost);
    /// A step checked `drafted` tokens of the request, and the first `kept` of them were right.
    void noteChecked(std::int64_t drafted, std::int64_t kept);

private:
    double acceptance() const { return right_ / (right_ + wrong_); }

    double right_ = 1, wrong_ = 0; ///< drafted tokens; older drafts count less
    std::int64_t resting_ = 0;     ///< steps that the rest still takes
    std::int64_t rest_ = 0;        ///< steps of the last rest; 0: a draft was useful since
};

} // namespace vitrine::engine
