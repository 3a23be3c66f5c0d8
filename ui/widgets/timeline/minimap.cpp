// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>
#include <cmath>
#include <utility>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/widgets/timeline/strips.h"

namespace vitrine::ui {

namespace {

constexpr double kGrip = 3;
constexpr double kGripSlack = 5;

} // namespace

Minimap::Minimap(TimeCursor* time, QWidget* parent) : QWidget(parent), time_(time) {
    setFixedHeight(40);
    setMouseTracking(true);
    setAccessibleName(tr("Overview of the run"));
    for (const auto signal : {&TimeCursor::rangeChanged, &TimeCursor::cursorChanged, &TimeCursor::filtersChanged}) {
        connect(time, signal, this, QOverload<>::of(&QWidget::update));
    }
    connect(&Theme::instance(), &Theme::changed, this, [this] {
        cache_ = {};
        update();
    });
}

void Minimap::setSource(TimelinePtr timeline) {
    timeline_ = std::move(timeline);
    cache_ = {};
    update();
}

void Minimap::setPicture(std::function<void(QPainter&, const QRectF&)> paint, const QString& span) {
    picture_ = std::move(paint);
    span_ = span;
    cache_ = {};
    update();
}

void Minimap::setMarks(std::vector<TimeMark> marks) {
    marks_ = std::move(marks);
    update();
}

double Minimap::xOf(base::TimeNs time) const {
    const TimeRange all = time_->extent();
    const double width = std::max(1.0, this->width() - kGutter);
    return kGutter +
           static_cast<double>(time - all.begin) / static_cast<double>(std::max<base::TimeNs>(1, all.length())) * width;
}

base::TimeNs Minimap::timeAt(double x) const {
    const TimeRange all = time_->extent();
    const double width = std::max(1.0, this->width() - kGutter);
    return all.begin +
           static_cast<base::TimeNs>(std::llround((x - kGutter) / width * static_cast<double>(all.length())));
}

Minimap::Grip Minimap::gripAt(double x) const {
    const double a = xOf(time_->range().begin), b = xOf(time_->range().end);
    if (std::abs(x - a) <= kGripSlack && std::abs(x - a) <= std::abs(x - b)) {
        return Grip::Begin;
    }
    if (std::abs(x - b) <= kGripSlack) {
        return Grip::End;
    }
    return x > a && x < b ? Grip::Middle : Grip::None;
}

void Minimap::fillCache(const QRectF& plot, double dpr) {
    cache_ = PlotFrame{QSizeF(size()), dpr, kGutter}.canvas(themeTokens().window);
    QPainter on(&cache_);
    if (picture_) {
        picture_(on, plot);
    } else if (timeline_ && time_->extent().length() > 0) {
        StackInput input;
        input.axis = AxisMap::ofTime(time_->extent(), plot.width());
        input.model = categoryStack(*timeline_, input.axis, static_cast<int>(plot.width() * dpr));
        input.frame = false;
        paintStackColumns(on, input, plot, stackScale(input, plot.height()), dpr, themeTokens());
    }
}

QString Minimap::spanText() const {
    const TimeRange all = time_->extent();
    if (picture_ || all.length() <= 0) {
        return span_;
    }
    // Without the room that a failed request gets after the end of the run.
    const base::TimeNs last = timeline_ ? std::min(all.end, timeline_->end()) : all.end;
    return (all.begin == 0 ? QStringLiteral("0") : instantText(all.begin)) + QStringLiteral("–") + instantText(last);
}

void Minimap::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    const double dpr = deviceRatio(painter);
    const QRectF plot(kGutter, 4, std::max(1.0, width() - kGutter), height() - 6);
    if (cache_.isNull() || std::abs(cache_.devicePixelRatio() - dpr) > 1e-6) {
        fillCache(plot, dpr);
    }
    painter.drawImage(QPointF(0, 0), cache_);
    drawText(painter, QRectF(8, 0, kGutter - 10, height()), Qt::AlignVCenter, spanText(), t.text3,
             Theme::instance().font(TypeRole::Axis));
    const double a = std::floor(xOf(time_->range().begin)),
                 b = std::min(std::ceil(xOf(time_->range().end)), static_cast<double>(width()));
    painter.fillRect(QRectF(kGutter, 0, a - kGutter, height() - 1), withAlpha(t.window, 0.62));
    painter.fillRect(QRectF(b, 0, width() - b, height() - 1), withAlpha(t.window, 0.62));
    for (const TimeMark& mark : marks_) {
        const QColor color = mark.kind == TimeMark::Kind::Failure ? t.bad
                             : mark.kind == TimeMark::Kind::Find  ? t.accent
                             : mark.kind == TimeMark::Kind::Loss  ? t.warn
                                                                  : t.text2;
        const bool tick = mark.kind == TimeMark::Kind::Find;
        plumbline(painter, std::min(xOf(mark.time), width() - 1.0), tick ? height() - 8 : 2, height() - 2, color);
    }
    if (time_->cursor()) {
        plumbline(painter, std::min(xOf(*time_->cursor()), width() - 1.0), 2, height() - 2, withAlpha(t.text1, 0.7));
    }
    painter.setPen(t.accent);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(a + 0.5, 2.5, std::max(2.0, b - a - 1), height() - 5));
    const double middle = height() / 2.0 - 6.5;
    painter.fillRect(QRectF(a - 1, middle, kGrip, 13), t.accent);
    painter.fillRect(QRectF(b - 2, middle, kGrip, 13), t.accent);
    hairline(painter, 0, width(), height() - 1, t.line1);
}

void Minimap::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) {
        return;
    }
    pressedX_ = event->position().x();
    pressedRange_ = time_->range();
    grip_ = gripAt(pressedX_);
    if (grip_ == Grip::None || (grip_ == Grip::Middle && time_->showsAll())) {
        // A press outside the frame takes the frame there.
        const base::TimeNs at = timeAt(pressedX_);
        time_->setRange({at - pressedRange_.length() / 2, at - pressedRange_.length() / 2 + pressedRange_.length()});
        pressedRange_ = time_->range();
        grip_ = Grip::Middle;
    }
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
    const double x = event->position().x();
    if (grip_ == Grip::None) {
        const Grip over = gripAt(x);
        setCursor(over == Grip::Begin || over == Grip::End ? Qt::SizeHorCursor : Qt::ArrowCursor);
        return;
    }
    const base::TimeNs shift = timeAt(x) - timeAt(pressedX_);
    TimeRange range = pressedRange_;
    if (grip_ == Grip::Middle) {
        range = {range.begin + shift, range.end + shift};
    } else if (grip_ == Grip::Begin) {
        range.begin = std::min(range.begin + shift, range.end - 100);
    } else {
        range.end = std::max(range.end + shift, range.begin + 100);
    }
    time_->setRange(range);
}

void Minimap::mouseReleaseEvent(QMouseEvent*) {
    grip_ = Grip::None;
}

void Minimap::mouseDoubleClickEvent(QMouseEvent*) {
    time_->fitAll();
}

void Minimap::wheelEvent(QWheelEvent* event) {
    const int turned = event->angleDelta().y();
    if (turned != 0) {
        time_->zoom(std::pow(1.25, -turned / 120.0), timeAt(event->position().x()));
    }
    event->accept();
}

void Minimap::resizeEvent(QResizeEvent*) {
    cache_ = {};
}

} // namespace vitrine::ui
