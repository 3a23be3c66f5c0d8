// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "profiler/analysis/range_statistics.h"
#include "profiler/analysis/timeline_align.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

StackLane::StackLane(const QString& title, TimeCursor* time, QWidget* parent)
    : Lane(title, time, parent), job_(this), planJob_(this) {
    setPlotHeight(96, 306);
}

void StackLane::setTimeline(TimelinePtr timeline) {
    timeline_ = std::move(timeline);
    grouped_.reset();
    model_.reset();
    peak_.reset();
    planCount_ = 0;
    if (timeline_ && timeline_->end() > timeline_->begin()) {
        peak_ = timeline_->memory().peak(timeline_->begin(), timeline_->end() + 1);
        if (peak_->maxTotal == 0) {
            peak_.reset();
        }
    }
    invalidate();
}

void StackLane::setGroupBy(profiler::GroupBy groupBy) {
    groupBy_ = groupBy;
    grouped_.reset();
    model_.reset();
    only_.clear();
    invalidate();
}

void StackLane::setOnly(std::set<int> layers) {
    only_ = std::move(layers);
    invalidate();
}

void StackLane::setBudget(std::optional<std::uint64_t> budget) {
    budget_ = budget;
    invalidate();
}

void StackLane::setReserved(bool shown) {
    reserved_ = shown;
    invalidate();
}

void StackLane::setPlan(TimelinePtr plan) {
    if (plan_ == plan) {
        return;
    }
    plan_ = std::move(plan);
    planPeak_ = plan_ ? plan_->memory().peak(plan_->begin(), plan_->end() + 1).maxTotal : 0;
    planColumns_.clear();
    planCount_ = 0;
    invalidate();
}

const StackLane::PlanColumns& StackLane::planColumns(int columns) {
    const bool current =
        planCount_ == columns && planAxis_.range() == axis().range() && planAxis_.kind() == axis().kind();
    if (plan_ && timeline_ && !current) {
        const AxisMap wanted = axis();
        planJob_.start(
            [plan = plan_, timeline = timeline_, wanted, columns] {
                const profiler::Alignment alignment = align(*timeline, *plan, profiler::AlignBy::Phase);
                PlanColumns values(static_cast<std::size_t>(columns));
                for (int i = 0; i < columns; ++i) {
                    const base::TimeNs begin = wanted.time(static_cast<double>(i) / columns * wanted.width());
                    const base::TimeNs end = wanted.time((i + 1.0) / columns * wanted.width());
                    const auto first = alignment.timeInB(alignment.positionOfA(begin));
                    const auto last = alignment.timeInB(alignment.positionOfA(std::min(end, timeline->end() - 1)));
                    if (begin < timeline->end() && first && last) {
                        values[static_cast<std::size_t>(i)] =
                            plan->memory().peak(*first, std::max(*first + 1, *last)).maxTotal;
                    }
                }
                return values;
            },
            [this, wanted, columns](PlanColumns values) {
                planColumns_ = std::move(values);
                planAxis_ = wanted;
                planCount_ = columns;
                invalidate();
            });
    }
    static const PlanColumns kNone;
    return current ? planColumns_ : kNone;
}

void StackLane::setGuides(std::vector<base::TimeNs> guides) {
    guides_ = std::move(guides);
    invalidate();
}

void StackLane::setPeakName(const QString& name) {
    peakName_ = name;
    invalidate();
}

void StackLane::setMarks(bool peakAndFailures) {
    marks_ = peakAndFailures;
    invalidate();
}

void StackLane::setForecast(std::optional<StackForecast> forecast) {
    forecast_ = std::move(forecast);
    invalidate();
}

void StackLane::setBreak(bool on) {
    breaks_ = on;
    invalidate();
}

bool StackLane::broken() const {
    return budgetIsFar() && plotRect().height() > 4 * kBreakHeight;
}

bool StackLane::budgetIsFar() const {
    const std::uint64_t highest = std::max(top_, forecast_ ? forecast_->highest() : 0);
    return breaks_ && budget_ && highest > 0 && *budget_ > highest + highest / 10;
}

PlotFrame StackLane::stackFrame(const PlotFrame& frame) const {
    PlotFrame under = frame;
    under.size.rheight() -= broken() ? kBreakHeight : 0;
    return under;
}

void StackLane::setTop(std::uint64_t bytes) {
    top_ = bytes;
    invalidate();
}

void StackLane::setModel(std::function<StackModelPtr(const AxisMap&, int)> make) {
    make_ = std::move(make);
    grouped_.reset();
    model_.reset();
    invalidate();
}

StackInput StackLane::input(const PlotFrame& frame) {
    StackInput in;
    in.axis = axis();
    in.only = only_;
    in.budget = budgetIsFar() ? std::nullopt : budget_; // a low plot has no room to say so
    in.guides = guides_;
    // The scale is that of the whole run: it does not jump while one zooms and pans.
    in.top = top_ != 0 ? top_ : peak_ ? peak_->maxTotal : 0;
    if (forecast_) {
        in.top = std::max(in.top, forecast_->highest());
    }
    if (!only_.empty()) {
        in.top = 0;
    }
    const int columns = frame.columns();
    if (make_) {
        in.model = make_(axis(), columns);
    } else if (timeline_ && groupBy_ == profiler::GroupBy::Category) {
        in.model = categoryStack(*timeline_, axis(), columns);
    } else if (timeline_) {
        if (grouped_ == nullptr || groupedColumns_ != columns || !(groupedAxis_.range() == axis().range()) ||
            groupedAxis_.kind() != axis().kind()) {
            // Going through all allocations takes longer than a frame: the picture follows when it is there.
            const AxisMap wanted = axis();
            const TimelinePtr timeline = timeline_;
            job_.start(
                [timeline, wanted, columns, by = groupBy_] { return groupedStack(*timeline, wanted, columns, by); },
                [this, wanted, columns](StackModelPtr model) {
                    grouped_ = std::move(model);
                    groupedAxis_ = wanted;
                    groupedColumns_ = columns;
                    invalidate();
                });
        }
        in.model = grouped_ != nullptr ? grouped_ : categoryStack(*timeline_, axis(), columns);
        if (grouped_ != nullptr && !(groupedAxis_.range() == axis().range())) {
            in.model = categoryStack(*timeline_, axis(), columns);
        }
    }
    if (!only_.empty() && in.model) {
        std::uint64_t top = 0;
        for (std::size_t c = 0; c < in.model->columns.size(); ++c) {
            top = std::max(top, stackSpans(*in.model, c, only_).back().top);
        }
        in.top = std::max<std::uint64_t>(1, top);
    }
    if (timeline_ && marks_ && only_.empty()) {
        in.peak = peak_;
        in.peakName = peakName_;
        in.failures.assign(timeline_->memory().outOfMemory().begin(), timeline_->memory().outOfMemory().end());
    }
    if (plan_ && only_.empty()) {
        in.plan = planColumns(columns);
        in.planPeak = planPeak_;
        in.top = std::max(in.top, planPeak_);
    }
    if (timeline_ && reserved_) {
        in.reserved = timeline_->counters().samples("reserved_bytes");
    }
    return in;
}

QImage StackLane::paint(const PlotFrame& frame) {
    const StackInput in = input(frame);
    const bool changed = in.model != model_;
    model_ = in.model;
    const ThemeTokens& t = themeTokens();
    const PlotFrame under = stackFrame(frame);
    QImage image = paintStack(in, under, t);
    if (forecast_ && only_.empty()) {
        QPainter painter(&image);
        paintForecast(painter, *forecast_, axis(), under, stackScale(in, under.plot().height()), t);
    }
    if (broken()) {
        QImage whole = frame.canvas(t.canvas);
        QPainter painter(&whole);
        painter.drawImage(QPointF(0, kBreakHeight), image);
        const bool measured = forecast_ && forecast_->value > 0;
        paintBudgetBreak(
            painter, frame, *budget_,
            measured ? std::optional(static_cast<std::int64_t>(*budget_) - static_cast<std::int64_t>(forecast_->value))
                     : std::nullopt,
            t);
        painter.end();
        image = std::move(whole);
    }
    if (changed) {
        QMetaObject::invokeMethod(this, &StackLane::modelChanged, Qt::QueuedConnection);
    }
    return image;
}

void StackLane::paintOver(QPainter& painter, const PlotFrame&) {
    const QRectF plot = plotRect();
    paintCursor(painter, plot);
    if (!time()->measured() || !timeline_ || time()->measured()->length() <= 0) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const TimeRange measured = *time()->measured();
    const profiler::RangeStatistics range = profiler::rangeStatistics(*timeline_, measured.begin, measured.end);
    const QString text = QStringLiteral("%1   %2   %3")
                             .arg(durationText(measured.length()), signedBytesText(range.change),
                                  tr("peak %1").arg(peakText(range.peak, range.incomplete)));
    const QFont font = Theme::instance().font(TypeRole::Table, true);
    const double width = std::ceil(textWidth(text, font)) + 16;
    const double a = std::max(plot.left(), xOf(time()->measured()->begin));
    const double b = std::min(plot.right(), xOf(time()->measured()->end));
    if (b < plot.left() || a > plot.right()) {
        return;
    }
    const double x =
        std::clamp((a + b) / 2 - width / 2, plot.left() + 2, std::max(plot.left() + 2, plot.right() - width - 2));
    const QRectF box(std::round(x), std::round(plot.center().y() - 10), width, 20);
    painter.setPen(t.line1);
    painter.setBrush(t.raised);
    painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
    drawText(painter, box, Qt::AlignCenter, text, t.text1, font);
}

void StackLane::doubleClickedAt(QPointF position) {
    if (!timeline_) {
        return;
    }
    // To the highest peak near the pointer: an eighth of the range around it.
    const base::TimeNs at = timeAt(position.x());
    const base::TimeNs around = std::max<base::TimeNs>(1, time()->range().length() / 8);
    const profiler::MemoryColumn peak =
        timeline_->memory().peak(std::max(timeline_->begin(), at - around), at + around);
    time()->setMeasured({});
    time()->setCursor(peak.maxTime);
    time()->zoom(0.25, peak.maxTime);
}

ByteScale StackLane::scale() const {
    auto* self = const_cast<StackLane*>(this);
    return stackScale(self->input(frame()), stackFrame(frame()).plot().height());
}

std::uint64_t StackLane::totalAt(base::TimeNs when) const {
    return timeline_ ? profiler::totalBytes(timeline_->memory().at(when)) : 0;
}

std::vector<std::uint64_t> StackLane::valuesAt(base::TimeNs when) const {
    if (!model_) {
        return {};
    }
    std::vector<std::uint64_t> values(model_->layers.size(), 0);
    const bool categories = !make_ && groupBy_ == profiler::GroupBy::Category && timeline_;
    if (categories) {
        const base::CategoryBytes split = timeline_->memory().at(when);
        std::copy(split.begin(), split.end(), values.begin());
        return values;
    }
    const double x = axis().x(when) / std::max(1.0, axis().width()) * static_cast<double>(model_->columns.size());
    if (x >= 0 && x < static_cast<double>(model_->columns.size())) {
        for (std::size_t layer = 0; layer < values.size(); ++layer) {
            values[layer] = model_->value(static_cast<std::size_t>(x), layer);
        }
    }
    return values;
}

QString StackLane::spoken() const {
    if (!time()->cursor() || !model_) {
        return {};
    }
    const std::vector<std::uint64_t> values = valuesAt(*time()->cursor());
    std::vector<std::size_t> order;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        total += values[i];
        if (values[i] > 0) {
            order.push_back(i);
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    QStringList parts;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i) {
        parts << model_->layers[order[i]].name + QLatin1Char(' ') + bytesText(values[order[i]]);
    }
    return tr("Cursor %1. Total %2: %3.")
        .arg(instantText(*time()->cursor()), bytesText(total), parts.join(QStringLiteral(", ")));
}

} // namespace vitrine::ui
