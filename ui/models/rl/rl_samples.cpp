// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::ui {

namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// The events of a step, which stand together.
template <class Event> std::span<const Event> ofStep(const profiler::RunTimeline& timeline, std::int64_t step) {
    const std::span<const Event> all = profiler::events<Event>(timeline);
    const auto found = std::ranges::equal_range(all, step, {}, &Event::batch);
    return {found.begin(), found.end()};
}

/// What was kept of a row of the rollouts.
struct KeptRow {
    double advantage = kNoNumber;
    std::int64_t promptTokens = 0;
    std::vector<base::RolloutTokenEvent> tokens;
};

std::map<std::int64_t, KeptRow> keptRows(const profiler::RunTimeline& timeline, std::int64_t step) {
    std::map<std::int64_t, KeptRow> out;
    for (const base::RolloutEvent& row : ofStep<base::RolloutEvent>(timeline, step)) {
        out[row.row] = {row.advantage, row.promptTokens, {}};
    }
    for (const base::RolloutTokenEvent& token : ofStep<base::RolloutTokenEvent>(timeline, step)) {
        if (const auto row = out.find(token.row); row != out.end()) {
            row->second.tokens.push_back(token);
        }
    }
    for (auto& [number, row] : out) {
        std::ranges::stable_sort(row.tokens, {}, &base::RolloutTokenEvent::position);
    }
    return out;
}

/// A token of which nobody knows what it stands for.
std::string idText(const base::RolloutTokenEvent& token) {
    return "‹" + std::to_string(token.token) + "›";
}

/// Whether the run had a tokenizer: tokens without a text are special ones then, or the chat template's.
bool hasWords(const profiler::RunTimeline& timeline, std::span<const base::RolloutTokenEvent> tokens) {
    return std::ranges::any_of(
        tokens, [&](const base::RolloutTokenEvent& token) { return !timeline.text(token.text.value).empty(); });
}

/// Text of tokens, in which characters may lie over several of them. `words`: see hasWords().
QString textOfTokens(const profiler::RunTimeline& timeline, std::span<const base::RolloutTokenEvent> tokens,
                     bool words) {
    std::string bytes;
    for (const base::RolloutTokenEvent& token : tokens) {
        bytes += words ? std::string(timeline.text(token.text.value)) : idText(token);
    }
    return QString::fromUtf8(bytes.data(), static_cast<qsizetype>(bytes.size()));
}

/// What trainer and sampler said of a token. One that is special is seen where the policy said it.
void takeToken(const profiler::RunTimeline& timeline, const base::RolloutTokenEvent& token, bool words,
               RlSample& sample) {
    const std::string_view text = timeline.text(token.text.value);
    RlSampleToken out{QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())), token.old, token.rollout};
    out.special = words && text.empty();
    if (out.special && !std::isfinite(out.difference())) {
        return;
    }
    if (text.empty() && !words) {
        out.text = QString::fromStdString(idText(token));
    }
    sample.said.push_back(std::move(out));
}

void takeRow(const profiler::RunTimeline& timeline, const KeptRow& row, RlSampleGroup& group, RlSample& sample) {
    sample.advantage = row.advantage;
    const auto prompt = static_cast<std::size_t>(
        std::clamp<std::int64_t>(row.promptTokens, 0, static_cast<std::int64_t>(row.tokens.size())));
    const std::span<const base::RolloutTokenEvent> tokens(row.tokens);
    const bool words = hasWords(timeline, tokens);
    if (group.prompt.isEmpty()) {
        group.prompt = textOfTokens(timeline, tokens.first(prompt), words);
    }
    sample.text = textOfTokens(timeline, tokens.subspan(prompt), words);
    double sum = 0, counted = 0;
    for (const base::RolloutTokenEvent& token : tokens.subspan(prompt)) {
        takeToken(timeline, token, words, sample);
        if (const double difference = token.old - token.rollout; std::isfinite(difference)) {
            sum += std::abs(difference);
            counted += 1;
        }
    }
    sample.difference = counted > 0 ? sum / counted : kNoNumber;
    sample.tokens = sample.tokens > 0 ? sample.tokens : static_cast<std::int64_t>(sample.said.size());
}

/// Sessions of earlier versions have the rows that were trained on and nothing of their groups: rows of one prompt are
/// one.
void groupByPrompt(const profiler::RunTimeline& timeline, const std::map<std::int64_t, KeptRow>& rows,
                   std::vector<RlSampleGroup>& groups) {
    std::map<QString, std::size_t> known;
    for (const auto& [number, row] : rows) {
        RlSampleGroup lone;
        RlSample sample;
        sample.reward = sample.judgeSeconds = kNoNumber;
        takeRow(timeline, row, lone, sample);
        const auto [at, isNew] = known.try_emplace(lone.prompt, groups.size());
        if (isNew) {
            lone.number = static_cast<std::int64_t>(groups.size());
            groups.push_back(std::move(lone));
        }
        sample.place = static_cast<std::int64_t>(groups[at->second].samples.size());
        groups[at->second].samples.push_back(std::move(sample));
    }
}

void addSums(RlSampleGroup& group) {
    double sum = 0, rewards = 0, differences = 0, kept = 0;
    for (const RlSample& sample : group.samples) {
        if (std::isfinite(sample.reward)) {
            sum += sample.reward;
            rewards += 1;
        }
        if (std::isfinite(sample.difference)) {
            differences += sample.difference;
            kept += 1;
        }
    }
    group.mean = rewards > 0 ? sum / rewards : kNoNumber;
    group.difference = kept > 0 ? differences / kept : kNoNumber;
    const auto same = [&](const RlSample& sample) {
        return !std::isfinite(sample.reward) || std::abs(sample.reward - group.mean) < 1e-9;
    };
    if (rewards > 1 && std::ranges::all_of(group.samples, same)) {
        group.deviation = 0; // and not what rounding leaves
        return;
    }
    double squares = 0;
    for (const RlSample& sample : group.samples) {
        squares += std::isfinite(sample.reward) ? (sample.reward - group.mean) * (sample.reward - group.mean) : 0;
    }
    group.deviation = rewards > 1 ? std::sqrt(squares / (rewards - 1)) : kNoNumber;
}

} // namespace

RlSamplesPtr RlSamples::make(const profiler::RunTimeline& timeline, std::int64_t step) {
    auto out = std::make_shared<RlSamples>();
    out->step = step;
    const std::map<std::int64_t, KeptRow> rows = keptRows(timeline, step);
    const std::span<const base::RolloutAnswerEvent> answers = ofStep<base::RolloutAnswerEvent>(timeline, step);
    if (answers.empty()) {
        groupByPrompt(timeline, rows, out->groups);
    }
    std::map<std::int64_t, RlSampleGroup> groups;
    for (const base::RolloutAnswerEvent& answer : answers) {
        RlSampleGroup& group = groups[answer.group];
        group.number = answer.group;
        RlSample& sample = group.samples.emplace_back();
        sample.place = answer.place;
        sample.tokens = answer.tokens;
        sample.reward = answer.reward;
        sample.judgeSeconds = answer.judgeSeconds;
        sample.advantage = sample.difference = kNoNumber;
        const std::string_view finish = timeline.text(answer.finish.value);
        sample.cut = finish == "length" || finish == "context";
        if (const auto row = rows.find(answer.row); row != rows.end()) {
            takeRow(timeline, row->second, group, sample);
        }
    }
    for (auto& [number, group] : groups) {
        std::ranges::stable_sort(group.samples, {}, &RlSample::place);
        out->groups.push_back(std::move(group));
    }
    std::ranges::for_each(out->groups, addSums);
    return out;
}

std::vector<std::size_t> RlSamples::ordered(RlGroupOrder order) const {
    std::vector<std::size_t> out(groups.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    const auto weight = [&](std::size_t index) {
        const double value = order == RlGroupOrder::Variance     ? groups[index].deviation
                             : order == RlGroupOrder::Difference ? groups[index].difference
                                                                 : 0;
        return std::isfinite(value) ? value : -1;
    };
    std::ranges::stable_sort(out, [&](std::size_t a, std::size_t b) { return weight(a) > weight(b); });
    return out;
}

std::optional<std::int64_t> RlSamples::nearestKept(const profiler::RunTimeline& timeline, std::int64_t step) {
    const std::span<const base::RolloutEvent> all = profiler::events<base::RolloutEvent>(timeline);
    const auto next = std::ranges::lower_bound(all, step, {}, &base::RolloutEvent::batch);
    if (all.empty() || next == all.end()) {
        return all.empty() ? std::nullopt : std::optional(all.back().batch);
    }
    const bool before = next != all.begin() && step - std::prev(next)->batch <= next->batch - step;
    return before && next->batch != step ? std::prev(next)->batch : next->batch;
}

std::optional<std::size_t> RlSamples::sameQuestion(const RlSampleGroup& group) const {
    const auto asks = [&](const RlSampleGroup& other) {
        return !group.hasTexts() || !other.hasTexts() ? other.number == group.number : other.prompt == group.prompt;
    };
    // Of several the one of the same number: a step may ask one problem twice.
    const auto same = std::ranges::find_if(
        groups, [&](const RlSampleGroup& other) { return other.number == group.number && asks(other); });
    const auto found = same != groups.end() ? same : std::ranges::find_if(groups, asks);
    return found == groups.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - groups.begin()));
}

bool RlSamples::hasTokens() const {
    return std::ranges::any_of(groups, [](const RlSampleGroup& group) {
        return std::ranges::any_of(group.samples, [](const RlSample& sample) { return !sample.said.empty(); });
    });
}

double RlSamples::tintScale(const RlSample& sample) {
    std::vector<double> sizes;
    for (const RlSampleToken& token : sample.said) {
        if (const double size = std::abs(token.difference()); std::isfinite(size) && size > 0) {
            sizes.push_back(size);
        }
    }
    if (sizes.empty()) {
        return 0.4;
    }
    std::ranges::sort(sizes);
    const double most = sizes[(sizes.size() - 1) * 98 / 100]; // a single one far away does not pale the others
    const double decade = std::pow(10.0, std::floor(std::log10(most)));
    return most <= 1.0001 * decade ? decade
           : most <= 2 * decade    ? 2 * decade
           : most <= 5 * decade    ? 5 * decade
                                   : 10 * decade;
}

} // namespace vitrine::ui
