// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_step_text.h"

#include <QCoreApplication>
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using engine::RlStep;

/// Which way a figure should go.
enum class Wanted : std::uint8_t { More, Less, Neither };

struct RlFigure {
    const char* name; ///< for tr()
    std::function<double(const RlRun&, std::size_t)> value;
    int decimals = 0;
    Wanted wanted = Wanted::Neither;
    double unit = 1;                    ///< the text counts these
    QString (*words)(double) = nullptr; ///< null: so many decimals
};

template <auto Member> double numberOf(const RlRun& run, std::size_t index) {
    return run.step(index).*Member;
}

double evaluationOf(const RlRun& run, std::size_t index) {
    const RlEvaluation* found = run.evaluationAt(run.number(index));
    return found != nullptr ? found->reward : std::numeric_limits<double>::quiet_NaN();
}

double stepPeak(const RlRun& run, std::size_t index) {
    return std::fmax(run.step(index).rolloutPeak, run.step(index).trainingPeak);
}

const std::vector<RlFigure>& rlFigures() {
    constexpr double kGib = 1073741824.0;
    static const std::vector<RlFigure> kFigures = {
        {QT_TRANSLATE_NOOP("RlFigures", "raw reward"), numberOf<&RlStep::reward>, 3, Wanted::More},
        {QT_TRANSLATE_NOOP("RlFigures", "evaluation reward"), evaluationOf, 3, Wanted::More},
        {QT_TRANSLATE_NOOP("RlFigures", "response, tokens"), numberOf<&RlStep::answerTokens>, 1},
        {QT_TRANSLATE_NOOP("RlFigures", "truncated, %"), numberOf<&RlStep::cutShare>, 1, Wanted::Less, 0.01},
        {QT_TRANSLATE_NOOP("RlFigures", "entropy, nats"), numberOf<&RlStep::entropy>, 3},
        {QT_TRANSLATE_NOOP("RlFigures", "log-prob difference"), numberOf<&RlStep::absDifference>, 4, Wanted::Less, 1,
         differenceText},
        {QT_TRANSLATE_NOOP("RlFigures", "k3, 10⁻⁵"), numberOf<&RlStep::mismatchK3>, 2, Wanted::Less, 1e-5},
        {QT_TRANSLATE_NOOP("RlFigures", "effective samples, %"), numberOf<&RlStep::effectiveShare>, 1, Wanted::More,
         0.01},
        {QT_TRANSLATE_NOOP("RlFigures", "clipped, %"), numberOf<&RlStep::clipShare>, 1, Wanted::Less, 0.01},
        {QT_TRANSLATE_NOOP("RlFigures", "step, s"), numberOf<&RlStep::seconds>, 2, Wanted::Less},
        {QT_TRANSLATE_NOOP("RlFigures", "rollout tokens/s"), numberOf<&RlStep::rolloutRate>, 0, Wanted::More},
        {QT_TRANSLATE_NOOP("RlFigures", "peak, GiB"), stepPeak, 2, Wanted::Less, kGib},
    };
    return kFigures;
}

QString figureText(double value, int decimals) {
    return decimals == 0 ? countText(std::llround(value)) : QString::number(value, 'f', decimals);
}

/// Small values keep two digits: 0.0000031 is not 0.0000.
QString shownFigure(const RlFigure& figure, double value) {
    if (!std::isfinite(value)) {
        return unknownText();
    }
    if (figure.words != nullptr) {
        return figure.words(value);
    }
    const double counted = value / figure.unit;
    if (counted != 0 && std::abs(counted) < 0.5 * std::pow(10.0, -figure.decimals)) {
        return differenceText(counted);
    }
    return figureText(counted, figure.decimals);
}

FlatCell figureCell(const RlFigure& figure, double value, bool muted) {
    FlatCell cell(shownFigure(figure, value), QVariant(std::isfinite(value) ? value : -1.0),
                  std::isfinite(value) ? QString::number(value, 'g', 9) : QString());
    cell.muted = muted;
    return cell;
}

/// How A differs from B: "▲ 1.12x" where A is larger, in the colour of what is wanted.
FlatCell figureChange(const RlFigure& figure, double a, double b) {
    FlatCell cell(unknownText());
    cell.delta = 0;
    if (!std::isfinite(a) || !std::isfinite(b)) {
        return cell;
    }
    if (shownFigure(figure, a) == shownFigure(figure, b)) {
        cell.text = QStringLiteral("=");
        return cell;
    }
    const bool more = a > b;
    const double ratio = more ? a / b : b / a;
    const bool rational = a > 0 && b > 0;
    cell.delta = figure.wanted == Wanted::Neither ? 2 : more == (figure.wanted == Wanted::More) ? -1 : 1;
    cell.sort = rational ? ratio : std::abs(a - b);
    cell.text = (more ? QStringLiteral("▲ ") : QStringLiteral("▼ ")) +
                (rational ? ratioText(ratio) : shownFigure(figure, std::abs(a - b)));
    return cell;
}

} // namespace

RlStepPair RlStepPair::at(const RlRunPtr& a, const RlRunPtr& b, std::int64_t number) {
    return {a, b, a != nullptr ? a->indexOf(number) : std::nullopt, b != nullptr ? b->indexOf(number) : std::nullopt};
}

namespace {

QString minusSigned(QString number) {
    return number.replace(QLatin1Char('-'), QChar(0x2212));
}

} // namespace

QString rewardText(double value) {
    return std::isfinite(value) ? QString::number(value, 'f', 3) : unknownText();
}

QString differenceText(double value) {
    if (!std::isfinite(value)) {
        return unknownText();
    }
    if (std::abs(value) >= 1e-3 || value == 0) {
        return value == 0 ? QStringLiteral("0") : minusSigned(QString::number(value, 'f', 4));
    }
    const QStringList parts = QString::number(value, 'e', 1).split(QLatin1Char('e')); // four decimals would be none
    return minusSigned(QStringLiteral("%1e%2").arg(parts[0]).arg(parts[1].toInt()));
}

QString meanTokensText(double value) {
    return std::isfinite(value) ? countText(std::llround(value)) : unknownText();
}

QString partText(double share) {
    return std::isfinite(share) ? shareText(share) : unknownText();
}

QString stepTimeText(double value) {
    if (!std::isfinite(value)) {
        return unknownText();
    }
    return value >= 1 && value < 100 ? QString::number(value, 'f', 2) + QStringLiteral("\u00A0s")
                                     : durationText(static_cast<base::TimeNs>(std::max(value, 0.0) * 1e9));
}

namespace {

/// A row for each figure with what A and B have of it.
FlatTreePtr figureTable(bool both, const std::function<std::pair<double, double>(const RlFigure&)>& values) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QObject::tr("Figure")}, {QString(), true}};
    if (both) {
        out->columns.push_back({QString(), true});
        out->columns.push_back({QObject::tr("A to B"), true});
    }
    for (const RlFigure& figure : rlFigures()) {
        const auto [a, b] = values(figure);
        FlatNode node;
        node.key = out->nodes.size() + 1;
        FlatCell name(QCoreApplication::translate("RlFigures", figure.name));
        name.muted = true;
        node.cells = {name, figureCell(figure, a, false)};
        if (both) {
            node.cells.push_back(figureCell(figure, b, true));
            node.cells.push_back(figureChange(figure, a, b));
        }
        out->nodes.push_back(std::move(node));
    }
    return out;
}

double meanOf(const RlFigure& figure, const RlRunPtr& run, std::int64_t first, std::int64_t last) {
    double sum = 0, known = 0;
    for (std::int64_t step = first; run != nullptr && step <= last; ++step) {
        const auto index = run->indexOf(step);
        const double value = index ? figure.value(*run, *index) : std::numeric_limits<double>::quiet_NaN();
        sum += std::isfinite(value) ? value : 0;
        known += std::isfinite(value) ? 1 : 0;
    }
    return known > 0 ? sum / known : std::numeric_limits<double>::quiet_NaN();
}

} // namespace

std::optional<std::size_t> rlHighestPeak(const RlRun& run) {
    std::optional<std::size_t> out;
    for (std::size_t i = 0; i < run.size(); ++i) {
        const double peak = stepPeak(run, i);
        if (peak > 0 && (!out || peak > stepPeak(run, *out))) {
            out = i;
        }
    }
    return out;
}

FlatTreePtr rlFigureTable(const RlStepPair& pair) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    return figureTable(pair.b != nullptr, [&](const RlFigure& figure) {
        return std::pair(pair.i ? figure.value(*pair.a, *pair.i) : kNone,
                         pair.j ? figure.value(*pair.b, *pair.j) : kNone);
    });
}

FlatTreePtr rlMeanTable(const RlRunPtr& a, const RlRunPtr& b, std::int64_t first, std::int64_t last) {
    return figureTable(b != nullptr, [&](const RlFigure& figure) {
        return std::pair(meanOf(figure, a, first, last), meanOf(figure, b, first, last));
    });
}

QString rlReadout(const RlStepPair& pair) {
    if (!pair.i && !pair.j) {
        return {};
    }
    const auto both = [&](double RlStep::* member, QString (*words)(double)) {
        QStringList out;
        if (pair.i) {
            const QString value = words(pair.a->step(*pair.i).*member);
            out << (pair.b != nullptr ? QObject::tr("A %1").arg(value) : value);
        }
        if (pair.b != nullptr) {
            out << QObject::tr("B %1").arg(pair.j ? words(pair.b->step(*pair.j).*member) : unknownText());
        }
        return out.join(QStringLiteral(", "));
    };
    QString difference = both(&RlStep::absDifference, differenceText);
    if (pair.i && pair.j) {
        const double a = pair.a->step(*pair.i).absDifference, b = pair.b->step(*pair.j).absDifference;
        if (a > 0 && b > 0 && std::isfinite(b / a)) {
            difference += QObject::tr(", %1 times A").arg(QString::number(b / a, 'g', 2));
        }
    }
    return QObject::tr("Step %1: raw reward %2; log-probability difference %3")
        .arg(countText(pair.number()), both(&RlStep::reward, rewardText), difference);
}

FlatTreePtr rlStepTable(const RlRun& run, std::size_t most) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QObject::tr("Step"), true}};
    for (const RlFigure& figure : rlFigures()) {
        out->columns.push_back({QCoreApplication::translate("RlFigures", figure.name), true});
    }
    const std::size_t rows = std::min(most, run.size());
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t index = rows == 1 ? run.size() - 1 : row * (run.size() - 1) / (rows - 1);
        FlatNode node;
        node.key = static_cast<quint64>(run.number(index));
        node.cells = {FlatCell(countText(run.number(index)), QVariant(static_cast<qlonglong>(run.number(index))),
                               QString::number(run.number(index)))};
        for (const RlFigure& figure : rlFigures()) {
            node.cells.push_back(figureCell(figure, figure.value(run, index), false));
        }
        out->nodes.push_back(std::move(node));
    }
    return out;
}

QString rlDemandText(const RlDemand& demand) {
    return demand.prompts > 0
               ? QObject::tr("%1 groups of %2, limit %3 tokens")
                     .arg(countText(demand.prompts), countText(demand.samples), countText(demand.longest))
               : QObject::tr("given answers");
}

} // namespace vitrine::ui
