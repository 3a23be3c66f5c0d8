// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_samples.h"

#include <QObject>
#include <QStringList>
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
#include "ui/models/common/format.h"
#include "ui/models/rl/rl_step_text.h"

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

/// With its sign, in the words of another function of its size.
QString signedText(double value, const QString& size) {
    return !std::isfinite(value) ? unknownText() : (value < 0 ? QStringLiteral("−") : QStringLiteral("+")) + size;
}

FlatCell numberCell(double value, const QString& text) {
    return {std::isfinite(value) ? text : unknownText(), QVariant(std::isfinite(value) ? value : -1e300),
            std::isfinite(value) ? QString::number(value, 'g', 9) : QString()};
}

/// The end of an answer is what judges look at.
QString answerEnd(const RlSample& sample) {
    const QString words = sample.text.simplified();
    if (words.isEmpty()) {
        return sample.cut ? QObject::tr("cut off") : unknownText();
    }
    constexpr qsizetype kShownEnd = 60;
    if (words.size() <= kShownEnd) {
        return words;
    }
    const qsizetype space = words.indexOf(QLatin1Char(' '), words.size() - kShownEnd);
    return QStringLiteral("…") + (space < 0 ? words.right(kShownEnd) : words.mid(space + 1));
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

FlatTreePtr rlGroupTable(const RlSampleGroup& group) {
    auto out = std::make_shared<FlatTree>();
    const bool judged =
        std::ranges::any_of(group.samples, [](const RlSample& s) { return std::isfinite(s.judgeSeconds); });
    out->columns = {{QObject::tr("Answer")},
                    {QObject::tr("Tokens"), true},
                    {QObject::tr("Difference"), true},
                    {QObject::tr("Reward"), true},
                    {QObject::tr("Advantage"), true}};
    if (judged) {
        out->columns.insert(out->columns.end() - 1, {QObject::tr("Judged in"), true});
    }
    // Rewards from 0 to 1 say which answers are right; those of other judges do not.
    const bool marked = std::ranges::all_of(
        group.samples, [](const RlSample& s) { return !std::isfinite(s.reward) || (s.reward >= 0 && s.reward <= 1); });
    double widest = 1e-9;
    for (const RlSample& sample : group.samples) {
        widest = std::isfinite(sample.advantage) ? std::max(widest, std::abs(sample.advantage)) : widest;
    }
    for (const RlSample& sample : group.samples) {
        FlatNode node;
        node.key = static_cast<quint64>(sample.place) + 1;
        const QString mark = !marked || !std::isfinite(sample.reward) ? QString()
                             : sample.reward > 1 - 1e-9               ? QStringLiteral("✓ ")
                                                                      : QStringLiteral("✗ ");
        FlatCell answer(QStringLiteral("%1  %2%3").arg(sample.place + 1).arg(mark, answerEnd(sample)));
        answer.tip = sample.text.left(2000);
        node.cells = {answer,
                      FlatCell(countText(sample.tokens), QVariant(static_cast<qlonglong>(sample.tokens)),
                               QString::number(sample.tokens)),
                      numberCell(sample.difference, differenceText(sample.difference)),
                      numberCell(sample.reward, QString::number(sample.reward, 'g', 3))};
        if (judged) {
            node.cells.push_back(numberCell(sample.judgeSeconds,
                                            QString::number(sample.judgeSeconds, 'f', 2) + QStringLiteral("\u00A0s")));
        }
        FlatCell advantage = numberCell(
            sample.advantage, signedText(sample.advantage, QString::number(std::abs(sample.advantage), 'f', 2)));
        if (std::isfinite(sample.advantage)) {
            advantage.share = sample.advantage / widest;
        }
        node.cells.push_back(std::move(advantage));
        out->nodes.push_back(std::move(node));
    }
    return out;
}

FlatTreePtr rlGroupList(const RlSamples& samples, RlGroupOrder order) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QObject::tr("Group")},
                    {QObject::tr("Mean"), true},
                    {QObject::tr("Deviation"), true},
                    {QObject::tr("Difference"), true}};
    for (const std::size_t index : samples.ordered(order)) {
        const RlSampleGroup& group = samples.groups[index];
        FlatNode node;
        node.key = static_cast<quint64>(index) + 1;
        FlatCell name(group.hasTexts() ? QStringLiteral("%1  %2").arg(group.number + 1).arg(group.prompt.simplified())
                                       : QString::number(group.number + 1));
        name.tip = group.prompt.left(2000);
        name.muted = !group.hasTexts();
        node.cells = {name, numberCell(group.mean, QString::number(group.mean, 'f', 2)),
                      numberCell(group.deviation, QString::number(group.deviation, 'f', 2)),
                      numberCell(group.difference, differenceText(group.difference))};
        out->nodes.push_back(std::move(node));
    }
    return out;
}

QString rlGroupFacts(const RlSampleGroup& group) {
    QStringList out;
    if (std::isfinite(group.mean)) {
        out << QObject::tr("mean %1").arg(QString::number(group.mean, 'f', 2));
    }
    if (std::isfinite(group.deviation)) {
        out << (group.deviation > 0 ? QObject::tr("deviation %1").arg(QString::number(group.deviation, 'f', 2))
                                    : QObject::tr("all the same: not trained on"));
    }
    if (const auto cut = std::ranges::count_if(group.samples, &RlSample::cut); cut > 0) {
        out << QObject::tr("%1 cut off").arg(cut);
    }
    return out.join(QStringLiteral(", "));
}

QString rlTokenText(const RlSample& sample, std::size_t token) {
    if (token >= sample.said.size()) {
        return {};
    }
    const RlSampleToken& shown = sample.said[token];
    const QString words = shown.special ? QObject::tr("Token %1, special").arg(token + 1)
                                        : QObject::tr("Token %1 “%2”").arg(token + 1).arg(shown.text);
    return std::isfinite(shown.difference())
               ? QObject::tr("%1: trainer %2, rollout %3, %4")
                     .arg(words, differenceText(shown.trainer), differenceText(shown.rollout),
                          signedText(shown.difference(), differenceText(std::abs(shown.difference()))))
               : QObject::tr("%1: read, not said").arg(words);
}

FlatTreePtr rlSlowTable(const RlSamples& samples, std::size_t most) {
    std::vector<std::pair<std::size_t, const RlSample*>> timed;
    for (std::size_t i = 0; i < samples.groups.size(); ++i) {
        for (const RlSample& sample : samples.groups[i].samples) {
            if (std::isfinite(sample.judgeSeconds)) {
                timed.emplace_back(i, &sample);
            }
        }
    }
    std::ranges::stable_sort(timed, std::ranges::greater{}, [](const auto& each) { return each.second->judgeSeconds; });
    timed.resize(std::min(timed.size(), most));
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QObject::tr("Slow to judge")},
                    {QObject::tr("Tokens"), true},
                    {QObject::tr("Reward"), true},
                    {QObject::tr("Judged in"), true}};
    for (const auto& [group, sample] : timed) {
        FlatNode node;
        node.key = (static_cast<quint64>(group) + 1) * kSlowPlaces + static_cast<quint64>(sample->place);
        node.cells = {
            FlatCell(QObject::tr("group %1, answer %2").arg(samples.groups[group].number + 1).arg(sample->place + 1)),
            FlatCell(countText(sample->tokens)), numberCell(sample->reward, QString::number(sample->reward, 'g', 3)),
            numberCell(sample->judgeSeconds,
                       QString::number(sample->judgeSeconds, 'f', 2) + QStringLiteral("\u00A0s"))};
        out->nodes.push_back(std::move(node));
    }
    return out;
}

} // namespace vitrine::ui
