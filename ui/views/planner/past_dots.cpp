// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/past_dots.h"

#include <QObject>
#include <QPointF>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

namespace {

constexpr double kGibibyteOfRuns = 0x1p30;

void showNoRuns(Chart& plot) {
    plot.setSeries({});
    plot.setMarks({});
    plot.setAxes(
        {QObject::tr("predicted peak, GiB"), 1, {}, 0},
        {QString(), 4, {{-4, QStringLiteral("\u22124")}, {0, QStringLiteral("0")}, {4, QStringLiteral("+4")}}, -4});
    plot.setNotes({{{0.05, 1}, QObject::tr("No runs of this model on this device."), {}, false, true},
                   {{0.05, -0.6}, QObject::tr("The band is 3 %."), {}, false, true}});
}

} // namespace

PastDots showPastRuns(Chart& plot, const std::vector<PastRun>& runs, const QString& model, const QString& device) {
    PastDots dots(2);
    if (runs.empty()) {
        showNoRuns(plot);
        return dots;
    }
    const ErrorBand band = errorBand(runs, model, device);
    ChartSeries others, own;
    others.kind = own.kind = ChartSeries::Kind::Dots;
    others.width = own.width = 7;
    others.name = QObject::tr("other models and devices");
    own.name = QObject::tr("this model and device");
    others.color = [](const ThemeTokens& t) { return t.text3; };
    own.color = [](const ThemeTokens& t) { return t.accent; };
    double right = 0, high = 1;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const PastRun& run = runs[i];
        const bool mine = run.model == model && run.device == device;
        const QPointF point(static_cast<double>(run.predicted) / kGibibyteOfRuns, run.error() * 100);
        (mine ? own : others).points.push_back(point);
        dots[mine ? 1 : 0].push_back(i);
        right = std::max(right, point.x());
        high = std::max({high, std::abs(point.y()), band.share * 100});
    }
    high = std::ceil(high);
    std::vector<std::pair<double, QString>> ticks;
    for (const double tick : roundTicks(right * 1.1, 4)) {
        ticks.emplace_back(tick, QString::number(tick, 'g', 3));
    }
    const QString edge = QString::number(high);
    plot.setAxes({QObject::tr("predicted peak, GiB"), right * 1.1, std::move(ticks), 0},
                 {QString(),
                  high,
                  {{-high, QStringLiteral("\u2212") + edge}, {0, QStringLiteral("0")}, {high, QLatin1Char('+') + edge}},
                  -high});
    plot.setSeries({std::move(others), std::move(own)});
    plot.setMarks({{Qt::Horizontal, band.share * 100, QObject::tr("band \u00B1%1").arg(shareText(band.share))},
                   {Qt::Horizontal, -band.share * 100, {}}});
    plot.setNotes({});
    return dots;
}

QString pastRunsText(std::size_t runs) {
    return runs == 0   ? QObject::tr("no past runs")
           : runs == 1 ? QObject::tr("1 run")
                       : QObject::tr("%1 runs").arg(runs);
}

const PastRun* pastRunAt(const std::vector<PastRun>& runs, const PastDots& dots, int series, int point) {
    const bool known = series >= 0 && series < static_cast<int>(dots.size()) && point >= 0 &&
                       point < static_cast<int>(dots[static_cast<std::size_t>(series)].size());
    return known ? &runs[dots[static_cast<std::size_t>(series)][static_cast<std::size_t>(point)]] : nullptr;
}

QString pastRunText(const PastRun* run) {
    return run == nullptr ? QString()
                          : QObject::tr("%1: predicted %2, measured %3")
                                .arg(run->name, exactBytesText(run->predicted), exactBytesText(run->measured));
}

} // namespace vitrine::ui
