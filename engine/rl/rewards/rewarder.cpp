// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/rewarder.h"

#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

namespace {

/// Judges when an answer is handed in.
class SourceRewarder final : public Rewarder {
public:
    explicit SourceRewarder(const ProblemSource& source) : source_(source) {}

    void judge(Attempt attempt) override {
        Judgement judgement{.id = attempt.id};
        try {
            const double reward = source_.reward(*attempt.problem, attempt.answer);
            if (std::isfinite(reward)) {
                judgement.reward = reward;
            } else {
                judgement.error = fmt::format("{}: the reward is no finite number", attempt.problem->name);
            }
        } catch (const base::Error& error) {
            judgement.error = error.message();
        }
        done_.push_back(std::move(judgement));
    }
    std::vector<Judgement> take(bool /*wait*/) override { return std::exchange(done_, {}); }
    std::int64_t waiting() const override { return static_cast<std::int64_t>(done_.size()); }
    void drop() override { done_.clear(); }

private:
    const ProblemSource& source_;
    std::vector<Judgement> done_; ///< not taken yet
};

} // namespace

std::unique_ptr<Rewarder> sourceRewarder(const ProblemSource& source) {
    return std::make_unique<SourceRewarder>(source);
}

} // namespace vitrine::engine
