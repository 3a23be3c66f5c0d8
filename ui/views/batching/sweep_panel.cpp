// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/batching/sweep_panel.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <set>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

namespace {

ThemeColor colorOf(const SweepSeries& series) {
    if (series.hasA) {
        return [](const ThemeTokens& t) { return t.compareA; };
    }
    if (series.hasB) {
        return [](const ThemeTokens& t) { return t.compareB; };
    }
    return [](const ThemeTokens& t) { return t.text3; };
}

/// Slots double from tick to tick.
double placeOf(std::int32_t slotCount) {
    return std::log2(static_cast<double>(slotCount));
}

QString nameOf(const SweepSeries& series) {
    return series.hasA   ? QStringLiteral("A ") + series.name
           : series.hasB ? QStringLiteral("B ") + series.name
                         : series.name;
}

double valueOf(const SweepPoint& point, bool rate) {
    return rate ? point.tokensPerSecond : point.tpot < 0 ? -1 : point.tpot * 1e3;
}

QString valueText(const SweepSeries& series, const SweepPoint& point, const Sweep& sweep) {
    QString words = QObject::tr("%1: %2 tokens/s").arg(nameOf(series), countText(std::llround(point.tokensPerSecond)));
    if (point.tpot >= 0) {
        words += QObject::tr(", TPOT %1 %2")
                     .arg(sweep.share, durationText(static_cast<base::TimeNs>(std::llround(point.tpot * 1e9))));
    }
    return words;
}

} // namespace

SweepPanel::SweepPanel(RunController* runs, QWidget* parent)
    : QWidget(parent), runner_(new SweepRunner(runs, this)), canRun_(runs != nullptr) {
    auto* rows = new QVBoxLayout(this);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(0);
    rows->addWidget(makeBar());
    auto* body = new QWidget(this);
    rows->addWidget(body, 1);
    stack_ = new QStackedLayout(body);
    empty_ = new EmptyState(body);
    plots_ = new Surface(Surface::Fill::Canvas, Surface::None, body);
    auto* column = new QVBoxLayout(plots_);
    column->setContentsMargins(0, 8, 0, 0);
    column->setSpacing(0);
    rate_ = new Chart(tr("Generated tokens a second against slots"), plots_);
    latency_ = new Chart(tr("Time of one token against slots"), plots_);
    for (Chart* chart : {rate_, latency_}) {
        column->addWidget(chart, 1);
        connect(chart, &PlotWidget::readoutChanged, this, &SweepPanel::readoutChanged);
    }
    stack_->addWidget(plots_);
    stack_->addWidget(empty_);
    connect(runner_, &SweepRunner::changed, this, &SweepPanel::updateBar);
    connect(runner_, &SweepRunner::failed, this, &SweepPanel::failed);
    updateBar();
}

QWidget* SweepPanel::makeBar() {
    auto* bar = new Surface(Surface::Fill::Panel, Surface::Bottom, this);
    bar->setFixedHeight(36);
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(8);
    row->addWidget(new TextLabel(tr("Slots"), TypeRole::Table, TextColor::Text2, false, bar));
    slotCounts_ = new QLineEdit(QStringLiteral("4, 8, 16, 32, 64"), bar);
    slotCounts_->setAccessibleName(tr("Numbers of slots to run with"));
    slotCounts_->setToolTip(tr("Numbers from 1 to 4,096 with commas between them, 32 at most"));
    slotCounts_->setFixedWidth(180);
    static_ = new QCheckBox(tr("Static"), bar);
    continuous_ = new QCheckBox(tr("Continuous"), bar);
    button_ = new QPushButton(bar);
    state_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, bar);
    setControlHeight(slotCounts_, 24);
    setControlHeight(button_, 24);
    for (QCheckBox* check : {static_, continuous_}) {
        check->setChecked(true);
        connect(check, &QCheckBox::toggled, this, &SweepPanel::updateBar);
    }
    for (QWidget* widget : std::initializer_list<QWidget*>{slotCounts_, static_, continuous_, button_, state_}) {
        row->addWidget(widget);
    }
    row->addStretch(1);
    connect(slotCounts_, &QLineEdit::textChanged, this, &SweepPanel::updateBar);
    connect(button_, &QPushButton::clicked, this, &SweepPanel::runOrStop);
    return bar;
}

void SweepPanel::setSource(std::optional<sessions::RunInfo> run, const QString& sessionFile) {
    source_ = std::move(run);
    file_ = sessionFile;
    updateBar();
}

std::vector<std::string> SweepPanel::experiments() const {
    return source_ ? sweepExperiments(*source_, parseSlotCounts(slotCounts_->text()), static_->isChecked(),
                                      continuous_->isChecked())
                   : std::vector<std::string>();
}

void SweepPanel::updateBar() {
    const bool running = runner_->running();
    const bool counts = !parseSlotCounts(slotCounts_->text()).empty();
    const auto repeated = source_ ? engine::Experiment::read(source_->specJson) : std::nullopt;
    const bool trace = repeated && repeated->has("trace");
    const auto runs = static_cast<qint64>(experiments().size());
    for (QWidget* widget : std::initializer_list<QWidget*>{slotCounts_, static_, continuous_}) {
        widget->setEnabled(!running);
    }
    button_->setText(running ? tr("Stop sweep") : tr("Run sweep"));
    button_->setEnabled(running || (canRun_ && runs > 0));
    state_->setColor(counts ? TextColor::Text2 : TextColor::Bad);
    state_->setText(running   ? tr("%1 of %2 runs done").arg(runner_->done()).arg(runner_->total())
                    : !counts ? tr("Write numbers of slots from 1 to 4,096, as 4, 8, 16")
                    : !trace  ? tr("A server has no trace to repeat")
                              : tr("%1 runs of this trace into this session").arg(countText(runs)));
}

void SweepPanel::runOrStop() {
    if (runner_->running()) {
        runner_->stop();
    } else {
        runner_->start(experiments(), file_);
    }
}

void SweepPanel::setEmpty(const QString& text) {
    empty_->set(text, {}, {});
    stack_->setCurrentWidget(text.isEmpty() ? plots_ : empty_);
}

bool SweepPanel::emptyShown() const {
    return stack_->currentWidget() == empty_;
}

QList<QWidget*> SweepPanel::focusStops() const {
    QList<QWidget*> stops{slotCounts_, static_, continuous_, button_};
    if (!emptyShown()) {
        stops << rate_ << latency_;
    }
    return stops;
}

void SweepPanel::fill(Chart* chart, const Sweep& sweep, bool rate) {
    std::vector<ChartSeries> series;
    std::vector<ChartNote> notes;
    std::set<std::int32_t> slotCount;
    double top = 0;
    for (const SweepSeries& one : sweep.series) {
        ChartSeries line;
        line.name = nameOf(one);
        line.color = colorOf(one);
        line.dashed = one.hasB && !one.hasA;
        for (const SweepPoint& point : one.points) {
            if (valueOf(point, rate) >= 0) {
                line.points.emplace_back(placeOf(point.slotCount), valueOf(point, rate));
                top = std::max(top, valueOf(point, rate));
                slotCount.insert(point.slotCount);
            }
        }
        if (line.points.empty()) {
            continue;
        }
        ChartSeries dots = line;
        dots.kind = ChartSeries::Kind::Dots;
        dots.width = 7;
        notes.push_back({line.points.back(), line.name, line.color, true, true});
        series.push_back(std::move(line));
        series.push_back(std::move(dots));
    }
    ChartAxis x{QObject::tr("slots"), 1, {}};
    if (!slotCount.empty()) {
        // Air at the left for a dot, at the right for the names.
        const double first = placeOf(*slotCount.begin()), last = placeOf(*slotCount.rbegin());
        x.begin = first - 0.25 - (last - first) * 0.02;
        x.top = last + 0.25 + (last - first) * 0.2;
    }
    for (const std::int32_t slot : slotCount) {
        x.ticks.emplace_back(placeOf(slot), countText(slot));
    }
    ChartAxis y{rate ? QObject::tr("generated tokens/s") : QObject::tr("TPOT %1, ms").arg(sweep.share), 1, {}};
    for (const double tick : roundTicks(std::max(top, 1e-9) * 1.08, 5)) {
        y.ticks.emplace_back(tick, tick >= 10 || tick == std::floor(tick) ? countText(std::llround(tick))
                                                                          : QString::number(tick, 'g', 3));
        y.top = tick;
    }
    chart->setAxes(std::move(x), std::move(y));
    chart->setSeries(std::move(series));
    chart->setNotes(std::move(notes));
    std::vector<double> stops;
    stops.reserve(slotCount.size());
    for (const std::int32_t slot : slotCount) {
        stops.push_back(placeOf(slot));
    }
    chart->setStops(std::move(stops), [sweep](double at) {
        QStringList words;
        const auto count = static_cast<std::int32_t>(std::lround(std::exp2(at)));
        for (const SweepSeries& one : sweep.series) {
            for (const SweepPoint& point : one.points) {
                if (point.slotCount == count) {
                    words << valueText(one, point, sweep);
                }
            }
        }
        return QObject::tr("%1 slots. %2").arg(countText(count), words.join(QStringLiteral("; ")));
    });
}

void SweepPanel::setSweep(const Sweep& sweep) {
    fill(rate_, sweep, true);
    fill(latency_, sweep, false);
}

} // namespace vitrine::ui
