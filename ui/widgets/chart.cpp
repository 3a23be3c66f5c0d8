// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/chart.h"

#include <QAreaSeries>
#include <QChart>
#include <QChartView>
#include <QKeyEvent>
#include <QLineSeries>
#include <QMouseEvent>
#include <QPainter>
#include <QScatterSeries>
#include <QVBoxLayout>
#include <QValueAxis>
#include <algorithm>
#include <cmath>

#include "ui/widgets/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kDashOn = 5, kDashOff = 3;
constexpr double kTop = 16, kRight = 24, kBottom = 48, kTitle = 24, kTickAir = 6;

QList<QPointF> listOf(const std::vector<QPointF>& points) {
    return {points.begin(), points.end()};
}

} // namespace

/// The Qt Charts view; it paints marks, notes and the cursor over the chart.
class Chart::Canvas final : public QChartView {
public:
    explicit Canvas(Chart* owner) : QChartView(new QChart, owner), owner_(owner) {
        setFrameShape(QFrame::NoFrame);
        setFocusPolicy(Qt::NoFocus);
        setAttribute(Qt::WA_TransparentForMouseEvents); // the Chart takes all input
        setRenderHint(QPainter::Antialiasing);
        setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        chart()->legend()->hide();
        chart()->setBackgroundRoundness(0);
        chart()->setMargins(QMargins());
        chart()->setAnimationOptions(QChart::NoAnimation);
        chart()->setBackgroundVisible(false);
        chart()->setPlotAreaBackgroundVisible(false);
        // One pair of axes for the whole life, never drawn: axes that are taken away leave their labels in the scene.
        for (const auto& [axis, side] : {std::pair{&xAxis_, Qt::AlignBottom}, {&yAxis_, Qt::AlignLeft}}) {
            *axis = new QValueAxis(chart());
            chart()->addAxis(*axis, side);
            (*axis)->setVisible(false);
        }
    }

    void attach(QAbstractSeries* series) const {
        chart()->addSeries(series);
        series->attachAxis(xAxis_);
        series->attachAxis(yAxis_);
    }

    /// Takes the ranges of the owner's axes and leaves room for their words.
    void layOut() {
        xAxis_->setRange(0, owner_->x_.top);
        yAxis_->setRange(0, owner_->y_.top);
        const QFont font = Theme::instance().font(TypeRole::Axis);
        double widest = 0;
        for (const auto& [value, text] : owner_->y_.ticks) {
            widest = std::max(widest, textWidth(text, font));
        }
        const double left = 8 + kTitle + std::ceil(widest) + kTickAir;
        const QSizeF size = viewport()->size();
        chart()->setPlotArea(
            {left, kTop, std::max(10.0, size.width() - left - kRight), std::max(10.0, size.height() - kTop - kBottom)});
        viewport()->update();
    }

    QPointF place(const QPointF& value) const {
        const QRectF area = chart()->plotArea();
        return {area.left() + value.x() / owner_->x_.top * area.width(),
                area.bottom() - value.y() / owner_->y_.top * area.height()};
    }

protected:
    /// The grid: Qt Charts would draw one more line at the end of the axis.
    void drawBackground(QPainter* painter, const QRectF&) override {
        const ThemeTokens& t = themeTokens();
        painter->fillRect(rect(), t.canvas);
        const QRectF area = chart()->plotArea();
        for (const auto& [value, text] : owner_->y_.ticks) {
            hairline(*painter, area.left(), area.right(), std::floor(place({0, value}).y()),
                     value > 0 ? t.line0 : t.line1);
        }
        drawAxes(*painter, area);
    }

    void resizeEvent(QResizeEvent* event) override {
        QChartView::resizeEvent(event);
        layOut();
    }

    void drawForeground(QPainter* painter, const QRectF&) override {
        painter->save();
        painter->setClipping(false);
        drawMarks(*painter);
        drawNotes(*painter);
        drawCursor(*painter);
        if (owner_->hasFocus()) {
            painter->setPen(QPen(themeTokens().accent, 2));
            painter->setBrush(Qt::NoBrush);
            painter->drawRect(QRectF(rect()).adjusted(2, 2, -2, -2));
        }
        painter->restore();
    }

private:
    void drawAxes(QPainter& painter, const QRectF& area) const {
        const ThemeTokens& t = themeTokens();
        const QFont font = Theme::instance().font(TypeRole::Axis);
        for (const auto& [value, text] : owner_->y_.ticks) {
            drawText(painter, QRectF(0, place({0, value}).y() - 8, area.left() - kTickAir, 16),
                     Qt::AlignRight | Qt::AlignVCenter, text, t.text3, font);
        }
        double taken = 0;
        for (const auto& [value, text] : owner_->x_.ticks) {
            const double x = std::floor(place({value, 0}).x()), width = textWidth(text, font) + 2;
            plumbline(painter, x, area.bottom(), area.bottom() + 4, t.line1);
            const double left = std::min(x - width / 2, rect().right() - width - 4);
            if (left > taken) {
                drawText(painter, QRectF(left, area.bottom() + 6, width, 16), Qt::AlignCenter, text, t.text3, font);
                taken = left + width + 8;
            }
        }
        drawText(painter, QRectF(area.left(), area.bottom() + 26, area.width(), 16), Qt::AlignCenter, owner_->x_.title,
                 t.text2, font);
        painter.save();
        painter.translate(8, area.bottom());
        painter.rotate(-90);
        drawText(painter, QRectF(0, 0, area.height(), 16), Qt::AlignCenter, owner_->y_.title, t.text2, font);
        painter.restore();
    }

    void drawMarks(QPainter& painter) const {
        const ThemeTokens& t = themeTokens();
        const QRectF area = chart()->plotArea();
        const QFont font = Theme::instance().font(TypeRole::Axis);
        for (const ChartMark& mark : owner_->marks_) {
            const QPointF at = place({mark.at, mark.at});
            QPen pen(t.line2, 1);
            pen.setDashPattern({2, 2});
            painter.setPen(pen);
            const double width = textWidth(mark.text, font) + 2;
            if (mark.orientation == Qt::Vertical) {
                const double x = std::floor(at.x()) + 0.5;
                painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
                const bool right = x + 6 + width < area.right();
                drawText(painter, QRectF(right ? x + 5 : x - 5 - width, area.top() + 2, width, 14),
                         Qt::AlignVCenter | (right ? Qt::AlignLeft : Qt::AlignRight), mark.text, t.text2, font);
            } else {
                const double y = std::floor(at.y()) + 0.5;
                painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
                drawText(painter, QRectF(area.left() + 4, y - 15, width, 14), Qt::AlignVCenter, mark.text, t.text2,
                         font);
            }
        }
    }

    void drawNotes(QPainter& painter) const {
        const ThemeTokens& t = themeTokens();
        const QRectF area = chart()->plotArea();
        std::vector<QRectF> taken;
        for (const ChartNote& note : owner_->notes_) {
            const QFont font = Theme::instance().font(TypeRole::Table, note.strong);
            const QPointF at = place(note.at);
            const double width = textWidth(note.text, font) + 2;
            double left = note.toRight ? at.x() + 8 : at.x() - 8 - width;
            left = std::clamp(left, area.left() + 2, std::max(area.left() + 2, area.right() - width - 2));
            double top = std::clamp(at.y() - 18, area.top() + 1, area.bottom() - 17);
            QRectF box(left, top, width, 16);
            const auto covered = [&](const QRectF& wanted) {
                return std::any_of(taken.begin(), taken.end(), [&](const QRectF& r) { return r.intersects(wanted); });
            };
            for (int step = 1; covered(box) && step < 12; ++step) {
                const double shift = (step % 2 == 1 ? 1 : -1) * ((step + 1) / 2) * 17.0;
                const QRectF moved = box.translated(0, shift);
                if (area.contains(moved) && !covered(moved)) {
                    box = moved;
                }
            }
            if (covered(box)) {
                continue; // the table twin and the inspector say it
            }
            taken.push_back(box);
            painter.fillRect(box.adjusted(-3, 0, 3, 0), withAlpha(t.canvas, 0.86));
            drawText(painter, box, Qt::AlignVCenter, note.text, note.color ? note.color(t) : t.text1, font);
        }
    }

    void drawCursor(QPainter& painter) const {
        if (!owner_->cursor_) {
            return;
        }
        const ThemeTokens& t = themeTokens();
        const QRectF area = chart()->plotArea();
        const double x = std::floor(place({*owner_->cursor_, 0}).x());
        plumbline(painter, x, area.top(), area.bottom(), t.text1);
    }

    Chart* owner_;
    QValueAxis *xAxis_ = nullptr, *yAxis_ = nullptr;
};

Chart::Chart(const QString& title, QWidget* parent) : PlotWidget(title, parent), canvas_(new Canvas(this)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(canvas_);
    connect(&Theme::instance(), &Theme::changed, this, &Chart::restyle);
    restyle();
}

Chart::~Chart() = default;

void Chart::setAxes(ChartAxis x, ChartAxis y) {
    x_ = std::move(x);
    y_ = std::move(y);
    x_.top = x_.top > 0 ? x_.top : 1;
    y_.top = y_.top > 0 ? y_.top : 1;
    build();
}

void Chart::setSeries(std::vector<ChartSeries> series) {
    series_ = std::move(series);
    build();
}

void Chart::setMarks(std::vector<ChartMark> marks) {
    marks_ = std::move(marks);
    canvas_->viewport()->update();
}

void Chart::setNotes(std::vector<ChartNote> notes) {
    notes_ = std::move(notes);
    canvas_->viewport()->update();
}

void Chart::setStops(std::vector<double> stops, std::function<QString(double)> words) {
    stops_ = std::move(stops);
    words_ = std::move(words);
    if (cursor_) {
        setCursor(*cursor_);
    }
}

void Chart::restyle() {
    canvas_->resetCachedContent();
    build();
}

void Chart::build() {
    const ThemeTokens& t = themeTokens();
    QChart* chart = canvas_->chart();
    chart->removeAllSeries();
    for (const ChartSeries& from : series_) {
        const QColor color = from.color ? from.color(t) : t.text1;
        QAbstractSeries* made = nullptr;
        if (from.kind == ChartSeries::Kind::Area) {
            auto* upper = new QLineSeries(chart);
            upper->replace(listOf(from.points));
            QLineSeries* lower = nullptr;
            if (!from.below.empty()) {
                lower = new QLineSeries(chart);
                lower->replace(listOf(from.below));
            }
            auto* area = new QAreaSeries(upper, lower);
            area->setPen(Qt::NoPen);
            area->setBrush(color);
            made = area;
        } else if (from.kind == ChartSeries::Kind::Dots) {
            auto* dots = new QScatterSeries(chart);
            dots->replace(listOf(from.points));
            dots->setMarkerSize(from.width);
            dots->setColor(color);
            dots->setBorderColor(t.canvas);
            made = dots;
        } else {
            auto* line = new QLineSeries(chart);
            line->replace(listOf(from.points));
            QPen pen(color, from.width);
            if (from.dashed) {
                pen.setDashPattern({kDashOn / from.width, kDashOff / from.width});
                pen.setCapStyle(Qt::FlatCap);
            }
            line->setPen(pen);
            made = line;
        }
        made->setName(from.name);
        canvas_->attach(made);
        if (from.kind == ChartSeries::Kind::Area && from.hatch != Hatch::None) {
            // Qt Charts takes one brush: the hatch lies over the fill as a second area.
            auto* upper = new QLineSeries(chart);
            upper->replace(listOf(from.points));
            QLineSeries* lower = nullptr;
            if (!from.below.empty()) {
                lower = new QLineSeries(chart);
                lower->replace(listOf(from.below));
            }
            auto* area = new QAreaSeries(upper, lower);
            area->setPen(Qt::NoPen);
            const bool darkFill = color.lightnessF() < 0.5;
            area->setBrush(hatchBrush(from.hatch, 6, withAlpha(darkFill ? QColor(Qt::white) : QColor(Qt::black), 0.24),
                                      devicePixelRatioF()));
            canvas_->attach(area);
        }
    }
    canvas_->layOut();
}

std::size_t Chart::seriesCount() const {
    return series_.size();
}

QRectF Chart::plotArea() const {
    return canvas_->chart()->plotArea();
}

QPointF Chart::place(const QPointF& value) const {
    return canvas_->place(value);
}

double Chart::valueAt(double x) const {
    const QRectF area = plotArea();
    return area.width() > 0 ? (x - area.left()) / area.width() * x_.top : 0;
}

std::optional<double> Chart::nearestStop(double x) const {
    if (stops_.empty()) {
        return std::nullopt;
    }
    const auto after = std::lower_bound(stops_.begin(), stops_.end(), x);
    if (after == stops_.end()) {
        return stops_.back();
    }
    return after != stops_.begin() && x - *(after - 1) < *after - x ? *(after - 1) : *after;
}

void Chart::setCursor(std::optional<double> x) {
    const std::optional<double> next = x ? nearestStop(*x) : std::nullopt;
    if (next == cursor_) {
        return;
    }
    cursor_ = next;
    canvas_->viewport()->update();
    announce();
    emit cursorMoved();
}

QString Chart::spoken() const {
    return cursor_ && words_ ? words_(*cursor_) : QString();
}

void Chart::stepCursor(int steps) {
    if (stops_.empty()) {
        return;
    }
    const auto last = static_cast<std::ptrdiff_t>(stops_.size()) - 1;
    std::ptrdiff_t at = steps > 0 ? -1 : last + 1;
    if (cursor_) {
        at = std::lower_bound(stops_.begin(), stops_.end(), *cursor_) - stops_.begin();
    }
    setCursor(stops_[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at + steps, 0, last))]);
}

void Chart::mouseMoveEvent(QMouseEvent* event) {
    if (plotArea().adjusted(-4, 0, 4, 0).contains(event->position())) {
        setCursor(valueAt(event->position().x()));
    } else {
        setCursor(std::nullopt);
    }
}

void Chart::leaveEvent(QEvent* event) {
    PlotWidget::leaveEvent(event);
    if (!hasFocus()) {
        setCursor(std::nullopt);
    }
}

void Chart::keyPressEvent(QKeyEvent* event) {
    const int page = std::max(1, static_cast<int>(stops_.size()) / 20);
    switch (event->key()) {
    case Qt::Key_Left:
        return stepCursor(-1);
    case Qt::Key_Right:
        return stepCursor(1);
    case Qt::Key_PageUp:
        return stepCursor(-page);
    case Qt::Key_PageDown:
        return stepCursor(page);
    case Qt::Key_Home:
        return stepCursor(-static_cast<int>(stops_.size()));
    case Qt::Key_End:
        return stepCursor(static_cast<int>(stops_.size()));
    case Qt::Key_Escape:
        if (cursor_) {
            return setCursor(std::nullopt);
        }
        break;
    default:
        break;
    }
    PlotWidget::keyPressEvent(event);
}

void Chart::resizeEvent(QResizeEvent* event) {
    PlotWidget::resizeEvent(event);
    canvas_->viewport()->update();
}

void Chart::focusInEvent(QFocusEvent* event) {
    PlotWidget::focusInEvent(event);
    canvas_->viewport()->update();
}

void Chart::focusOutEvent(QFocusEvent* event) {
    PlotWidget::focusOutEvent(event);
    canvas_->viewport()->update();
}

std::vector<double> roundTicks(double top, int lines) {
    std::vector<double> ticks;
    if (!(top > 0) || !std::isfinite(top) || lines < 1) {
        return {0};
    }
    double decade = std::pow(10, std::floor(std::log10(top / lines)));
    double step = decade;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        step = decade * factor;
        if (top / step <= lines) {
            break;
        }
    }
    for (int i = 0; i <= lines + 1; ++i) {
        ticks.push_back(step * i);
        if (step * i >= top) {
            break;
        }
    }
    return ticks;
}

} // namespace vitrine::ui
