// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/compare/rl_compare.h"

#include <QCoreApplication>
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "ui/models/common/format.h"
#include "ui/models/rl/rl_step_text.h"

namespace vitrine::ui {

namespace {

using engine::RlStep;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kWorthAWord = 0.03; ///< the share of a value from which on its change is said

enum class Better : std::uint8_t { More, Less, Neither };

QString plainSize(double value) {
    return std::isfinite(value) ? bytesText(static_cast<std::uint64_t>(std::max(value, 0.0))) : unknownText();
}

QString plainRate(double value) {
    return std::isfinite(value) ? countText(std::llround(value)) : unknownText();
}

QString plainMean(double value) {
    return std::isfinite(value) ? QString::number(value, 'f', 1) : unknownText();
}

struct ComparedFigure {
    const char* name;       ///< for tr()
    double RlStep::* value; ///< null: of evaluations
    QString (*text)(double);
    Better better = Better::Neither;
};

constexpr std::array<ComparedFigure, 17> kComparedFigures{{
    {QT_TRANSLATE_NOOP("RlCompare", "Raw reward"), &RlStep::reward, rewardText, Better::More},
    {QT_TRANSLATE_NOOP("RlCompare", "Evaluation reward"), nullptr, rewardText, Better::More},
    {QT_TRANSLATE_NOOP("RlCompare", "Response, tokens"), &RlStep::answerTokens, plainMean},
    {QT_TRANSLATE_NOOP("RlCompare", "Truncated"), &RlStep::cutShare, partText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "Entropy, nats"), &RlStep::entropy, rewardText},
    {QT_TRANSLATE_NOOP("RlCompare", "Log-probability difference"), &RlStep::absDifference, differenceText,
     Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "Step"), &RlStep::seconds, stepTimeText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "  rollout"), &RlStep::rolloutSeconds, stepTimeText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "  judging"), &RlStep::judgingSeconds, stepTimeText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "  log-probs"), &RlStep::logProbSeconds, stepTimeText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "  train"), &RlStep::updateSeconds, stepTimeText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "  weights"), &RlStep::weightSeconds, stepTimeText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "  evaluation"), &RlStep::evaluationSeconds, stepTimeText, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "Rollout tokens/s"), &RlStep::rolloutRate, plainRate, Better::More},
    {QT_TRANSLATE_NOOP("RlCompare", "Peak of rollouts"), &RlStep::rolloutPeak, plainSize, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "Peak of training"), &RlStep::trainingPeak, plainSize, Better::Less},
    {QT_TRANSLATE_NOOP("RlCompare", "Stayed after sleep"), &RlStep::afterSleep, plainSize, Better::Less},
}};

struct Values {
    double a = kNoNumber, b = kNoNumber;
};

double meanOver(const RlRun& run, double RlStep::* member, std::int64_t first, std::int64_t last) {
    double sum = 0, count = 0;
    for (std::int64_t number = first; number <= last; ++number) {
        const auto index = run.indexOf(number);
        if (const double value = index ? run.step(*index).*member : kNoNumber; std::isfinite(value)) {
            sum += value;
            ++count;
        }
    }
    return count > 0 ? sum / count : kNoNumber;
}

/// Evaluations after the same steps, as far as both runs came.
std::vector<std::pair<const RlEvaluation*, const RlEvaluation*>> commonEvaluations(const RlRun& a, const RlRun& b,
                                                                                   std::int64_t last) {
    std::vector<std::pair<const RlEvaluation*, const RlEvaluation*>> out;
    for (const RlEvaluation& one : a.evaluations()) {
        const auto other = std::ranges::find(b.evaluations(), one.step, &RlEvaluation::step);
        if (other != b.evaluations().end() && one.step <= last) {
            out.emplace_back(&one, &*other);
        }
    }
    return out;
}

/// Of the newest evaluation that both have up to the last of these steps, or the means of those in them.
Values evaluationsIn(const RlRun& a, const RlRun& b, std::int64_t first, std::int64_t last) {
    auto common = commonEvaluations(a, b, last);
    if (common.empty()) {
        return {};
    }
    const auto before = [&](const auto& pair) { return pair.first->step < first; };
    const auto kept = common.back();
    std::erase_if(common, before);
    if (common.empty()) {
        common.push_back(kept);
    }
    Values out{0, 0};
    for (const auto& [one, other] : common) {
        out.a += one->reward / static_cast<double>(common.size());
        out.b += other->reward / static_cast<double>(common.size());
    }
    return out;
}

Values valuesIn(const ComparedFigure& figure, const RlRun& a, const RlRun& b, std::int64_t first, std::int64_t last) {
    if (figure.value == nullptr) {
        return evaluationsIn(a, b, first, last);
    }
    return {meanOver(a, figure.value, first, last), meanOver(b, figure.value, first, last)};
}

FlatCell valueCell(const ComparedFigure& figure, double value) {
    return {figure.text(value), QVariant(std::isfinite(value) ? value : -HUGE_VAL),
            std::isfinite(value) ? QString::number(value, 'g', 9) : QString()};
}

/// "▼ −0.084" where B is lower, in the colour of what is wanted.
FlatCell stepChangeCell(const ComparedFigure& figure, const Values& values) {
    if (!std::isfinite(values.a) || !std::isfinite(values.b)) {
        return FlatCell(unknownText());
    }
    const double change = values.b - values.a;
    FlatCell cell(QStringLiteral("="), QVariant(change), QString::number(change, 'g', 9));
    cell.delta = 0;
    if (figure.text(values.a) != figure.text(values.b)) {
        const bool more = change > 0;
        cell.text = (more ? QStringLiteral("▲ +") : QStringLiteral("▼ \u2212")) + figure.text(std::abs(change));
        cell.delta = figure.better == Better::Neither ? 2 : more == (figure.better == Better::More) ? -1 : 1;
        if (values.a > 0 && values.b > 0) {
            cell.tip = QObject::tr("B is %1 of A").arg(ratioText(values.b / values.a));
        }
    }
    return cell;
}

/// With a capital letter.
QString begun(const QString& words) {
    return words.left(1).toUpper() + words.mid(1);
}

/// What a step took, as the sentence says it of B.
struct Cost {
    QString words;
    double weight = 0; ///< |logarithm of B / A|
};

std::optional<Cost> costOf(const char* words, QString (*text)(double), const Values& values) {
    if (!std::isfinite(values.a) || !std::isfinite(values.b) || text(values.a) == text(values.b)) {
        return std::nullopt;
    }
    const bool rational = values.a > 0 && values.b > 0;
    const double weight = rational ? std::abs(std::log(values.b / values.a)) : HUGE_VAL;
    if (weight < std::log(1 + kWorthAWord)) {
        return std::nullopt;
    }
    const QString ratio = rational ? QStringLiteral(" (%1)").arg(ratioText(values.b / values.a)) : QString();
    return Cost{QCoreApplication::translate("RlCompare", words).arg(text(values.b), text(values.a)) + ratio, weight};
}

std::vector<Cost> costsOf(const RlRun& a, const RlRun& b, const RlCommonSteps& steps) {
    const auto mean = [&](double RlStep::* member) {
        return Values{meanOver(a, member, steps.tail, steps.last), meanOver(b, member, steps.tail, steps.last)};
    };
    std::vector<Cost> out;
    const auto add = [&](const char* words, QString (*text)(double), const Values& values) {
        if (auto cost = costOf(words, text, values)) {
            out.push_back(std::move(*cost));
        }
    };
    add(QT_TRANSLATE_NOOP("RlCompare", "a step of B takes %1 instead of %2"), stepTimeText, mean(&RlStep::seconds));
    add(QT_TRANSLATE_NOOP("RlCompare", "the log-probability difference of B is %1 instead of %2"), differenceText,
        mean(&RlStep::absDifference));
    add(QT_TRANSLATE_NOOP("RlCompare", "rollouts of B peak at %1 instead of %2"), plainSize,
        mean(&RlStep::rolloutPeak));
    add(QT_TRANSLATE_NOOP("RlCompare", "training of B peaks at %1 instead of %2"), plainSize,
        mean(&RlStep::trainingPeak));
    std::ranges::stable_sort(out, std::greater(), &Cost::weight);
    return out;
}

/// "After step 60 B’s evaluation reward is 0.674, 0.084 below A’s"; empty where no answer has a reward.
QString outcomeWords(const RlRun& a, const RlRun& b, const RlCommonSteps& steps) {
    const auto said = [](const QString& when, const QString& what, const Values& values) {
        const double change = values.b - values.a;
        if (rewardText(values.a) == rewardText(values.b)) {
            return QObject::tr("%1 both runs have %2 of %3").arg(when, what, rewardText(values.a));
        }
        return (change < 0 ? QObject::tr("%1 B has %2 of %3, %4 below A’s")
                           : QObject::tr("%1 B has %2 of %3, %4 above A’s"))
            .arg(when, what, rewardText(values.b), rewardText(std::abs(change)));
    };
    if (const auto common = commonEvaluations(a, b, steps.last); !common.empty()) {
        const auto& [one, other] = common.back();
        return said(one->step == 0 ? QObject::tr("Before the first step")
                                   : QObject::tr("After step %1").arg(countText(one->step)),
                    QObject::tr("an evaluation reward"), {one->reward, other->reward});
    }
    const Values rewards{meanOver(a, &RlStep::reward, steps.tail, steps.last),
                         meanOver(b, &RlStep::reward, steps.tail, steps.last)};
    if (!std::isfinite(rewards.a) || !std::isfinite(rewards.b)) {
        return {};
    }
    return said(steps.tail == steps.last
                    ? QObject::tr("In step %1").arg(countText(steps.last))
                    : QObject::tr("In steps %1 to %2").arg(countText(steps.tail), countText(steps.last)),
                QObject::tr("a mean reward"), rewards);
}

} // namespace

RlCommonSteps RlCommonSteps::of(const RlRun& a, const RlRun& b) {
    RlCommonSteps out;
    if (a.empty() || b.empty()) {
        return out;
    }
    out.first = std::max(a.firstStep(), b.firstStep());
    const std::int64_t last = std::min(a.lastStep(), b.lastStep());
    if (last >= out.first) {
        out.last = last;
        out.tail = last - std::max<std::int64_t>((last - out.first + 1) / 10, 1) + 1;
    }
    return out;
}

FlatTreePtr rlCompareTable(const RlRun& a, const RlRun& b) {
    const RlCommonSteps steps = RlCommonSteps::of(a, b);
    const bool means = steps.tail < steps.last;
    auto out = std::make_shared<FlatTree>();
    const QString one = countText(steps.last);
    out->columns = {{QObject::tr("Figure")},
                    {QObject::tr("A, step %1").arg(one), true},
                    {QObject::tr("B"), true, QObject::tr("B, step %1").arg(one)},
                    {QObject::tr("A to B"), true}};
    if (means) {
        out->columns.insert(out->columns.end(), {{QObject::tr("A, mean"), true},
                                                 {QObject::tr("B"), true, QObject::tr("B, mean")},
                                                 {QObject::tr("A to B"), true}});
    }
    for (const ComparedFigure& figure : kComparedFigures) {
        const Values last = steps.none() ? Values{} : valuesIn(figure, a, b, steps.last, steps.last);
        const Values mean = steps.none() ? Values{} : valuesIn(figure, a, b, steps.tail, steps.last);
        if (!std::isfinite(last.a) && !std::isfinite(last.b) && !std::isfinite(mean.a) && !std::isfinite(mean.b)) {
            continue;
        }
        FlatNode node;
        node.key = out->nodes.size() + 1;
        node.cells = {FlatCell(QCoreApplication::translate("RlCompare", figure.name)), valueCell(figure, last.a),
                      valueCell(figure, last.b), stepChangeCell(figure, last)};
        if (means) {
            node.cells.push_back(valueCell(figure, mean.a));
            node.cells.push_back(valueCell(figure, mean.b));
            node.cells.push_back(stepChangeCell(figure, mean));
        }
        out->nodes.push_back(std::move(node));
    }
    return out;
}

QString rlCompareNote(const RlRun& a, const RlRun& b) {
    const RlCommonSteps steps = RlCommonSteps::of(a, b);
    if (steps.none()) {
        return QObject::tr("The runs have no step in common yet.");
    }
    const QString last = QObject::tr("Step %1, the last that both have").arg(countText(steps.last));
    return steps.tail == steps.last ? last
                                    : QObject::tr("%1, and means over steps %2 to %3")
                                          .arg(last, countText(steps.tail), countText(steps.last));
}

RlCompareWords rlCompareWords(const RlRun& a, const RlRun& b) {
    const RlCommonSteps steps = RlCommonSteps::of(a, b);
    if (steps.none()) {
        return {rlCompareNote(a, b), {}};
    }
    const std::vector<Cost> costs = costsOf(a, b, steps);
    RlCompareWords out;
    const QString outcome = outcomeWords(a, b, steps);
    const QString lead = outcome.isEmpty() ? QString() : outcome + QStringLiteral("; ");
    if (costs.empty()) {
        const QString same = QObject::tr("a step of both takes as long and peaks as high");
        out.sentence = begun(lead + same) + QLatin1Char('.');
        return out;
    }
    QStringList others;
    for (const Cost& cost : costs) {
        others << cost.words;
    }
    out.sentence = begun(lead + others.takeFirst()) + QLatin1Char('.');
    if (!others.empty()) {
        out.other = begun(others.join(QStringLiteral(", "))) + QLatin1Char('.');
    }
    return out;
}

} // namespace vitrine::ui
