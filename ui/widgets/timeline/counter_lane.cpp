// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/counter_lane.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kHeight = 48;
constexpr double kCounterLaneAir = 4;

/// The next of 1, 2 and 5 times a power of ten.
double roundedUp(double value) {
    if (!(value > 0) || !std::isfinite(value)) {
        return 1;
    }
    const double power = std::pow(10.0, std::floor(std::log10(value)));
    for (const double step : {1.0, 2.0, 5.0}) {
        if (value <= step * power * (1 + 1e-9)) {
            return step * power;
        }
    }
    return 10 * power;
}

} // namespace

CounterLane::CounterLane(const QString& title, Unit unit, std::vector<Line> lines, TimeCursor* time, QWidget* parent)
    : Lane(title, time, parent), unit_(unit), lines_(std::move(lines)) {
    setPlotHeight(kHeight, 0);
    setCollapsed(true);
    connect(time, &TimeCursor::cursorChanged, this, &CounterLane::showFacts);
    connect(time, &TimeCursor::rangeChanged, this, &CounterLane::showFacts);
}

void CounterLane::setTimeline(TimelinePtr timeline) {
    timeline_ = std::move(timeline);
    present_.clear();
    double largest = 0;
    for (const Line& line : lines_) {
        const profiler::CounterColumn whole =
            timeline_ && timeline_->end() > timeline_->begin()
                ? timeline_->counters().columns(line.counter, timeline_->begin(), timeline_->end(), 1).front()
                : profiler::CounterColumn{};
        if (whole.known) {
            present_.push_back(line);
            largest = std::max(largest, whole.largest);
        }
    }
    top_ = unit_ == Unit::Share ? 1 : roundedUp(largest);
    setVisible(recorded());
    showFacts();
    invalidate();
}

QString CounterLane::valueText(double value) const {
    const auto withUnit = [](double number, const char* unit) {
        return countText(std::llround(number)) + QStringLiteral("\u00A0") + QString::fromUtf8(unit);
    };
    switch (unit_) {
    case Unit::BytesPerSecond:
        return rateText(value);
    case Unit::Share:
        return withUnit(std::min(value, 1.0) * 100, "%"); // a sample may divide what two instants counted
    case Unit::Watts:
        return withUnit(value, "W");
    case Unit::Celsius:
        return withUnit(value, "°C");
    }
    return unknownText();
}

std::vector<profiler::CounterColumn> CounterLane::columns(const Line& line, int count) const {
    if (!timeline_ || count < 1) {
        return {};
    }
    if (axis().kind() == AxisKind::Time && axis().range().length() >= count) {
        return timeline_->counters().columns(line.counter, axis().range().begin, axis().range().end, count);
    }
    // Columns of the axis of events are not equally long.
    std::vector<profiler::CounterColumn> out;
    for (int i = 0; i < count; ++i) {
        const base::TimeNs begin = axis().time(i * axis().width() / count);
        const base::TimeNs end = std::max(begin + 1, axis().time((i + 1) * axis().width() / count));
        out.push_back(timeline_->counters().columns(line.counter, begin, end, 1).front());
    }
    return out;
}

void CounterLane::showFacts() {
    if (!recorded()) {
        setFacts({});
        return;
    }
    QStringList words;
    const auto at = time()->cursor();
    const TimeRange range = time()->range();
    for (const Line& line : present_) {
        const base::TimeNs begin = at ? *at : range.begin;
        const base::TimeNs end = at ? *at + 1 : std::max(range.end, range.begin + 1);
        const profiler::CounterColumn value = timeline_->counters().columns(line.counter, begin, end, 1).front();
        words << line.name + QLatin1Char(' ') +
                     (!value.known ? unknownText()
                      : at         ? valueText(value.mean)
                                   : tr("mean %1, most %2").arg(valueText(value.mean), valueText(value.largest)));
    }
    setFacts(words.join(QStringLiteral(";  ")));
}

QImage CounterLane::paint(const PlotFrame& frame) {
    const ThemeTokens& t = themeTokens();
    QImage image = frame.canvas(t.canvas);
    QPainter painter(&image);
    const QRectF plot = frame.plot();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double room = std::max(1.0, plot.height() - 2 * kCounterLaneAir);
    const auto yOf = [&](double value) {
        return plot.bottom() - kCounterLaneAir - std::clamp(value / top_, 0.0, 1.0) * room;
    };
    hairline(painter, plot.left(), plot.right(), std::floor(yOf(top_)), t.line0);
    hairline(painter, plot.left(), plot.right(), plot.bottom() - 1, t.line0);
    drawText(painter, QRectF(0, 0, frame.gutter - 8, 14), Qt::AlignRight | Qt::AlignVCenter, valueText(top_), t.text3,
             font);
    drawText(painter, QRectF(0, plot.bottom() - 14, frame.gutter - 8, 14), Qt::AlignRight | Qt::AlignVCenter,
             QStringLiteral("0"), t.text3, font);
    for (std::size_t n = present_.size(); n-- > 0;) { // the first line lies on top
        const QColor color = n == 0 ? t.text1 : t.warn;
        const auto values = columns(present_[n], frame.columns());
        QPen pen(color, 1);
        if (n > 0) {
            pen.setDashPattern({4, 2});
        }
        QPolygonF line;
        const auto flush = [&] {
            if (line.size() == 1) {
                line << line.front() + QPointF(1 / frame.dpr, 0);
            }
            painter.setPen(pen);
            painter.drawPolyline(line);
            line.clear();
        };
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (!values[i].known) {
                flush();
                continue;
            }
            const double x = plot.left() + static_cast<double>(i) / frame.dpr;
            const double high = yOf(values[i].largest), low = yOf(values[i].least);
            painter.fillRect(QRectF(x, high, 1 / frame.dpr, std::max(0.0, low - high)), withAlpha(color, 0.28));
            line << QPointF(x + 0.5 / frame.dpr, yOf(values[i].mean));
        }
        flush();
    }
    return image;
}

QString CounterLane::spoken() const {
    return time()->cursor() ? tr("Cursor %1. %2.").arg(instantText(*time()->cursor()), facts()) : facts();
}

std::vector<CounterLane*> makeGpuCounterLanes(TimeCursor* time, QWidget* parent) {
    using Unit = CounterLane::Unit;
    const auto make = [&](const QString& title, Unit unit, std::vector<CounterLane::Line> lines) {
        return new CounterLane(title, unit, std::move(lines), time, parent);
    };
    return {
        make(CounterLane::tr("Device memory traffic"), Unit::BytesPerSecond,
             {{CounterLane::tr("read"), "gpu.dram_read_bytes_per_second"},
              {CounterLane::tr("write"), "gpu.dram_write_bytes_per_second"}}),
        make(CounterLane::tr("Active"), Unit::Share,
             {{CounterLane::tr("SM"), "gpu.sm_active"}, {CounterLane::tr("tensor cores"), "gpu.tensor_active"}}),
        make(CounterLane::tr("Power"), Unit::Watts, {{CounterLane::tr("power"), "gpu.power_w"}}),
        make(CounterLane::tr("Temperature"), Unit::Celsius, {{CounterLane::tr("temperature"), "gpu.temperature_c"}})};
}

} // namespace vitrine::ui
