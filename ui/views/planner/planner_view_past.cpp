// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The part of the Planner view that shows what earlier plans said of runs that were then measured.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/views/planner/planner_view.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

namespace {

constexpr double kGibibyteOfRuns = 0x1p30;

} // namespace

void PlannerView::readPast() {
    const std::vector<sessions::RunInfo> runs =
        document() != nullptr ? document()->runs() : std::vector<sessions::RunInfo>();
    const std::vector<sessions::RunId> done = doneRuns(runs);
    if (pastKnown_ && done == pastIds_) {
        return;
    }
    pastKnown_ = true;
    pastIds_ = done;
    pastJob_.start([runs] { return predictedRuns(measuredRuns(runs)); },
                   [this](std::vector<PastRun> past) {
                       pastRuns_ = std::move(past);
                       updateAll();
                   });
}

ErrorBand PlannerView::band() const {
    return errorBand(pastRuns_, draft_.model(), draft_.device());
}

void PlannerView::updatePast() {
    const ErrorBand error = band();
    pastDots_.assign(2, {});
    if (pastRuns_.empty()) {
        past_->setSeries({});
        past_->setMarks({});
        past_->setAxes(
            {tr("predicted peak, GiB"), 1, {}, 0},
            {QString(), 4, {{-4, QStringLiteral("\u22124")}, {0, QStringLiteral("0")}, {4, QStringLiteral("+4")}}, -4});
        past_->setNotes({{{0.05, 1}, tr("No runs of this model on this device."), {}, false, true},
                         {{0.05, -0.6}, tr("The band is 3 %."), {}, false, true}});
        pastFacts_->setText(tr("no past runs"));
        return;
    }
    ChartSeries others, own;
    others.kind = own.kind = ChartSeries::Kind::Dots;
    others.width = own.width = 7;
    others.name = tr("other models and devices");
    own.name = tr("this model and device");
    others.color = [](const ThemeTokens& t) { return t.text3; };
    own.color = [](const ThemeTokens& t) { return t.accent; };
    double right = 0, high = 1;
    for (std::size_t i = 0; i < pastRuns_.size(); ++i) {
        const PastRun& run = pastRuns_[i];
        const bool mine = run.model == draft_.model() && run.device == draft_.device();
        const QPointF point(static_cast<double>(run.predicted) / kGibibyteOfRuns, run.error() * 100);
        (mine ? own : others).points.push_back(point);
        pastDots_[mine ? 1 : 0].push_back(i);
        right = std::max(right, point.x());
        high = std::max({high, std::abs(point.y()), error.share * 100});
    }
    high = std::ceil(high);
    std::vector<std::pair<double, QString>> ticks;
    for (const double tick : roundTicks(right * 1.1, 4)) {
        ticks.emplace_back(tick, QString::number(tick, 'g', 3));
    }
    const QString edge = QString::number(high);
    past_->setAxes(
        {tr("predicted peak, GiB"), right * 1.1, std::move(ticks), 0},
        {QString(),
         high,
         {{-high, QStringLiteral("\u2212") + edge}, {0, QStringLiteral("0")}, {high, QLatin1Char('+') + edge}},
         -high});
    past_->setSeries({std::move(others), std::move(own)});
    past_->setMarks({{Qt::Horizontal, error.share * 100, tr("band \u00B1%1").arg(shareText(error.share))},
                     {Qt::Horizontal, -error.share * 100, {}}});
    past_->setNotes({});
    pastFacts_->setText(pastRuns_.size() == 1 ? tr("1 run") : tr("%1 runs").arg(pastRuns_.size()));
}

const PastRun* PlannerView::pastAt(int series, int point) const {
    const bool known = series >= 0 && series < static_cast<int>(pastDots_.size()) && point >= 0 &&
                       point < static_cast<int>(pastDots_[static_cast<std::size_t>(series)].size());
    return known ? &pastRuns_[pastDots_[static_cast<std::size_t>(series)][static_cast<std::size_t>(point)]] : nullptr;
}

QString PlannerView::wordsOfPast(int series, int point) const {
    const PastRun* run = pastAt(series, point);
    return run == nullptr ? QString()
                          : tr("%1: predicted %2, measured %3")
                                .arg(run->name, exactBytesText(run->predicted), exactBytesText(run->measured));
}

} // namespace vitrine::ui
