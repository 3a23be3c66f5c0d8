// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Words and tables about the answers of a step.
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/models/rl/rl_samples.h"
#include "ui/models/rl/rl_step_text.h"

namespace vitrine::ui {

namespace {

/// With its sign, in the words of another function of its size.
QString signedText(double value, const QString& size) {
    return !std::isfinite(value) ? unknownText() : (value < 0 ? QStringLiteral("−") : QStringLiteral("+")) + size;
}

FlatCell numberCell(double value, const QString& text) {
    return {std::isfinite(value) ? text : unknownText(), QVariant(std::isfinite(value) ? value : -1e300),
            std::isfinite(value) ? QString::number(value, 'g', 9) : QString()};
}

/// The end of an answer is what judges look at.
QString answerEnd(const RlSample& sample, qsizetype most) {
    const QString words = sample.text.simplified();
    if (words.isEmpty()) {
        return sample.cut ? QObject::tr("cut off") : unknownText();
    }
    if (words.size() <= most) {
        return words;
    }
    const qsizetype space = words.indexOf(QLatin1Char(' '), words.size() - most);
    return QStringLiteral("…") + (space < 0 ? words.right(most) : words.mid(space + 1));
}

/// Rewards from 0 to 1 say which answers are right; those of other judges do not.
bool rewardsMark(const RlSampleGroup& group) {
    return std::ranges::all_of(
        group.samples, [](const RlSample& s) { return !std::isfinite(s.reward) || (s.reward >= 0 && s.reward <= 1); });
}

/// "✓ 1174", after its number where `numbered`.
FlatCell answerCell(const RlSample& sample, bool marked, bool numbered, qsizetype letters) {
    const QString mark = !marked || !std::isfinite(sample.reward) ? QString()
                         : sample.reward > 1 - 1e-9               ? QStringLiteral("✓ ")
                                                                  : QStringLiteral("✗ ");
    const QString words = mark + answerEnd(sample, letters);
    FlatCell out(numbered ? QStringLiteral("%1  %2").arg(sample.place + 1).arg(words) : words);
    out.tip = sample.text.left(2000);
    return out;
}

FlatCell tokensCell(const RlSample& sample) {
    return {countText(sample.tokens), QVariant(static_cast<qlonglong>(sample.tokens)), QString::number(sample.tokens)};
}

FlatCell differenceCell(const RlSample& sample) {
    return numberCell(sample.difference, differenceText(sample.difference));
}

FlatCell rewardCell(const RlSample& sample) {
    return numberCell(sample.reward, QString::number(sample.reward, 'g', 3));
}

FlatCell advantageCell(const RlSample& sample) {
    return numberCell(sample.advantage,
                      signedText(sample.advantage, QString::number(std::abs(sample.advantage), 'f', 2)));
}

} // namespace

FlatTreePtr rlGroupTable(const RlSampleGroup& group, qsizetype letters) {
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
    const bool marked = rewardsMark(group);
    double widest = 1e-9;
    for (const RlSample& sample : group.samples) {
        widest = std::isfinite(sample.advantage) ? std::max(widest, std::abs(sample.advantage)) : widest;
    }
    for (const RlSample& sample : group.samples) {
        FlatNode node;
        node.key = static_cast<quint64>(sample.place) + 1;
        node.cells = {answerCell(sample, marked, true, letters), tokensCell(sample), differenceCell(sample),
                      rewardCell(sample)};
        if (judged) {
            node.cells.push_back(numberCell(sample.judgeSeconds,
                                            QString::number(sample.judgeSeconds, 'f', 2) + QStringLiteral("\u00A0s")));
        }
        FlatCell advantage = advantageCell(sample);
        if (std::isfinite(sample.advantage)) {
            advantage.share = sample.advantage / widest;
        }
        node.cells.push_back(std::move(advantage));
        out->nodes.push_back(std::move(node));
    }
    return out;
}

FlatTreePtr rlPairTable(const RlSampleGroup& a, const RlSampleGroup& b, bool brief, qsizetype letters) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QObject::tr("#")}};
    for (const char* letter : {"A", "B"}) {
        out->columns.push_back({QString::fromLatin1(letter)});
        if (!brief) {
            out->columns.push_back({QObject::tr("Tokens"), true});
            out->columns.push_back({QObject::tr("Difference"), true});
        }
        out->columns.push_back({QObject::tr("Reward"), true});
        if (!brief) {
            out->columns.push_back({QObject::tr("Advantage"), true});
        }
    }
    const std::size_t cells = brief ? 2 : 5; // of each
    for (std::size_t place = 0; place < std::max(a.samples.size(), b.samples.size()); ++place) {
        FlatNode node;
        node.key = static_cast<quint64>(place) + 1;
        node.cells = {FlatCell(QString::number(place + 1))};
        for (const RlSampleGroup* group : {&a, &b}) {
            const std::size_t full = node.cells.size() + cells;
            if (place < group->samples.size()) {
                const RlSample& sample = group->samples[place];
                node.cells.push_back(answerCell(sample, rewardsMark(*group), false, letters));
                if (!brief) {
                    node.cells.push_back(tokensCell(sample));
                    node.cells.push_back(differenceCell(sample));
                }
                node.cells.push_back(rewardCell(sample));
                if (!brief) {
                    node.cells.push_back(advantageCell(sample));
                }
            }
            node.cells.resize(full, FlatCell(unknownText()));
        }
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

QString rlPairFacts(const RlSampleGroup& a, const RlSampleGroup& b) {
    const auto both = [](double one, double other) {
        const auto text = [](double value) {
            return std::isfinite(value) ? QString::number(value, 'f', 2) : unknownText();
        };
        return QObject::tr("A %1, B %2").arg(text(one), text(other));
    };
    return QObject::tr("reward %1; deviation %2").arg(both(a.mean, b.mean), both(a.deviation, b.deviation));
}

QString rlAnswerFacts(const RlSample& sample, bool beside) {
    QStringList facts{QObject::tr("%1 tokens").arg(countText(sample.tokens))};
    if (std::isfinite(sample.reward)) {
        facts << QObject::tr("reward %1").arg(QString::number(sample.reward, 'g', 3));
    }
    if (beside && std::isfinite(sample.difference)) {
        facts << QObject::tr("difference %1").arg(differenceText(sample.difference));
    }
    if (!beside && std::isfinite(sample.judgeSeconds)) {
        facts << QObject::tr("judged in %1 s").arg(QString::number(sample.judgeSeconds, 'f', 2));
    }
    return facts.join(QStringLiteral(", "));
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
