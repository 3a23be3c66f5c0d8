// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// When the steps of a batch took pages and wrote tokens. A run reports a step's pages once its cache has committed
// them: at the step's end on a CPU, while the step before still runs where steps are launched ahead. Its tokens are
// reported when the step has ended. Here both stand where the step begins, so that a pool and its formula change
// together. Any thread; what the timeline holds must outlive a KvPoolSteps.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/trace.h"

namespace vitrine::profiler {

class RunTimeline;

class KvPoolSteps {
public:
    explicit KvPoolSteps(const RunTimeline& timeline);

    /// Where a change of a page that was reported at `time` belongs: the begin of the step it was made for, or `time`
    /// where no step was under way. `used`: the page came into use; the end of the last step before a rest and what
    /// that rest gives back may be reported at one instant.
    base::TimeNs ofPages(base::TimeNs time, bool used) const;
    /// Begin of the step with that number.
    std::optional<base::TimeNs> begin(std::int64_t index) const;
    /// Begin of the last step that had ended by `time`: the one whose tokens were reported then.
    std::optional<base::TimeNs> landed(base::TimeNs time) const;
    /// Where requests that ended with a step give back what they hold.
    std::optional<base::TimeNs> givenBackAfter(std::int64_t index) const;
    bool empty() const { return steps_.empty(); }

private:
    struct Commit {
        base::TimeNs reported = 0, place = 0;
        bool ofStep = false;
    };
    void placeCommits(const std::vector<base::TimeNs>& reported);

    std::span<const base::BatchStepEvent> steps_; ///< by begin
    std::vector<Commit> commits_;                 ///< both times ascend
};

/// Tokens that a request has in the cache from an instant on; nothing: it gave back what it held.
struct KvHeldChange {
    base::TimeNs time = 0;
    std::int32_t request = 0;
    std::optional<std::int64_t> tokens;
};

/// Of all requests, by time: the prompt as its pieces are read, then a token for each one after it that was sampled
/// (the last of an answer is not fed back).
std::vector<KvHeldChange> kvHeldTokens(const RunTimeline& timeline, const KvPoolSteps& steps);

} // namespace vitrine::profiler
