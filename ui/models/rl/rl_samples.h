// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The answers of one step: in groups, with their rewards, what they were worth against their group, and, where their
// tokens were kept, what trainer and sampler said of each. Immutable; made on any thread.

#include <QString>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ui/models/common/flat_tree.h"
#include "ui/models/rl/rl_run.h"

namespace vitrine::ui {

struct RlSampleToken {
    QString text;
    double trainer = 0, rollout = 0; ///< log-probabilities; NaN: not known, as of what the policy only read
    bool special = false;            ///< it stands for nothing that is read, and has no text: the end of an answer

    double difference() const { return trainer - rollout; }
};

struct RlSample {
    std::int64_t place = 0;  ///< in its group, from 0
    std::int64_t tokens = 0; ///< that the policy said
    double reward = 0;       ///< NaN: none, as are all numbers that are not known
    double advantage = 0;
    double judgeSeconds = 0;
    double difference = 0; ///< mean of |trainer - rollout|
    bool cut = false;      ///< it ended because it was too long
    QString text;          ///< empty: it was not kept
    std::vector<RlSampleToken> said;
};

struct RlSampleGroup {
    std::int64_t number = 0; ///< in the step, from 0
    QString prompt;          ///< what was asked; empty: it was not kept
    std::vector<RlSample> samples;
    double mean = 0, deviation = 0; ///< of the rewards, with n - 1
    double difference = 0;          ///< mean of |trainer - rollout|

    bool hasTexts() const { return !prompt.isEmpty(); }
};

/// By what one goes through the groups.
enum class RlGroupOrder : std::uint8_t { Number, Variance, Difference };

struct RlSamples {
    std::int64_t step = 0;
    std::vector<RlSampleGroup> groups; ///< by number

    /// Indices of `groups` in an order; of equal ones the first comes first.
    std::vector<std::size_t> ordered(RlGroupOrder order) const;
    /// The largest |trainer - rollout| that tints need to tell apart, round.
    static double tintScale(const RlSample& sample);

    /// The group that answers the prompt of another run's group; nothing: there is none.
    std::optional<std::size_t> sameQuestion(const RlSampleGroup& group) const;
    /// The step nearest to another one whose tokens were kept; nothing where there is none.
    static std::optional<std::int64_t> nearestKept(const profiler::RunTimeline& timeline, std::int64_t step);
    bool hasTokens() const;
    static std::shared_ptr<const RlSamples> make(const profiler::RunTimeline& timeline, std::int64_t step);
};
using RlSamplesPtr = std::shared_ptr<const RlSamples>;

/// The answers of A and of B to one prompt.
struct RlGroupPair {
    RlSamplesPtr a, b; ///< null: there are none, or there is no B
    std::size_t groupA = 0, groupB = 0;
    QString whyNoA, whyNoB; ///< of what is null or was not asked; empty: nothing is missing

    const RlSampleGroup* ofA() const { return groupOf(a, groupA); }
    const RlSampleGroup* ofB() const { return groupOf(b, groupB); }
    const RlSampleGroup* any() const { return ofA() != nullptr ? ofA() : ofB(); }
    /// Something is said of B: its answers, or why there are none.
    bool both() const { return ofB() != nullptr || !whyNoB.isEmpty(); }
    friend bool operator==(const RlGroupPair&, const RlGroupPair&) = default;

private:
    static const RlSampleGroup* groupOf(const RlSamplesPtr& samples, std::size_t group) {
        return samples != nullptr && group < samples->groups.size() ? &samples->groups[group] : nullptr;
    }
};

/// A row for each answer: number, answer, tokens, difference, reward, advantage; with the judge's time where it was
/// measured. `letters`: of the end of an answer that are shown at most.
FlatTreePtr rlGroupTable(const RlSampleGroup& group, qsizetype letters = 60);
/// A row for each place: the answers of A and B there, in columns with titles "A" and "B", and their rewards; where it
/// is not brief, with tokens, difference and advantage.
FlatTreePtr rlPairTable(const RlSampleGroup& a, const RlSampleGroup& b, bool brief, qsizetype letters = 60);
/// A row for each group, in an order; the key is its index in samples.groups, and one.
FlatTreePtr rlGroupList(const RlSamples& samples, RlGroupOrder order);
/// "mean 0.65, deviation 0.48, 1 cut off"
QString rlGroupFacts(const RlSampleGroup& group);
/// "reward A 0.75, B 0.88; deviation A 0.35, B 0.21"
QString rlPairFacts(const RlSampleGroup& a, const RlSampleGroup& b);
/// "15 tokens, reward 1"; `beside`: with the difference, which no table beside it has.
QString rlAnswerFacts(const RlSample& sample, bool beside);
/// "Token 46 “9”: trainer −0.0240, rollout −0.0412, +0.0172"
QString rlTokenText(const RlSample& sample, std::size_t token);
inline constexpr quint64 kSlowPlaces = quint64{1} << 20;
/// The answers that their judges needed longest for, slowest first; the key is that of the
/// group in rlGroupList() * 2^20 + place. Empty where no judge was timed.
FlatTreePtr rlSlowTable(const RlSamples& samples, std::size_t most = 20);

} // namespace vitrine::ui
