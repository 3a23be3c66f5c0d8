// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/compare_ruler.h"

#include <QPainter>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

CompareRuler::CompareRuler(QChar letter, TimeCursor* time, QWidget* parent)
    : TimeStrip(tr("Seconds of %1").arg(letter), time, parent), letter_(letter) {
    setFixedHeight(17);
    connect(time, &TimeCursor::cursorChanged, this, qOverload<>(&QWidget::update));
}

void CompareRuler::setRun(qint64 number, std::shared_ptr<const profiler::Alignment> alignment, base::TimeNs end) {
    number_ = number;
    alignment_ = std::move(alignment);
    end_ = end;
    update();
}

std::optional<base::TimeNs> CompareRuler::runTime(base::TimeNs position) const {
    return !alignment_ ? std::nullopt : isA() ? alignment_->timeInA(position) : alignment_->timeInB(position);
}

QString CompareRuler::spoken() const {
    const auto at = time()->cursor() ? runTime(*time()->cursor()) : std::nullopt;
    return at ? tr("%1 number %2 at %3").arg(letter_).arg(number_).arg(instantText(*at)) : QString();
}

void CompareRuler::paintTicks(QPainter& painter) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    // As many ticks as the run has room for as a whole; where a phase is squeezed their texts give way.
    const TimeGrid grid = timeGrid({0, end_}, axis().width());
    const base::TimeNs minor = std::max<base::TimeNs>(1, grid.step / grid.minor);
    const TimeRange range = axis().range();
    double lastRight = gutter();
    for (base::TimeNs tick = 0; tick <= end_; tick += minor) {
        const base::TimeNs position = isA() ? alignment_->positionOfA(tick) : alignment_->positionOfB(tick);
        if (position < range.begin || position > range.end) {
            continue;
        }
        const double x = xOf(position);
        const bool major = tick % grid.step == 0;
        plumbline(painter, x, height() - (major ? 6 : 3), height() - 1, major ? t.line2 : t.line1);
        const QString text = major ? instantText(tick, grid.step) : QString();
        const double wide = textWidth(text, font);
        if (major && x + 3 >= lastRight && x + 5 + wide <= width()) {
            drawText(painter, QRectF(x + 3, 0, wide + 2, height() - 2), Qt::AlignVCenter, text, t.text2, font);
            lastRight = x + 3 + wide + 8;
        }
    }
}

void CompareRuler::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.panel);
    hairline(painter, 0, width(), height() - 1, t.line0);
    if (!alignment_ || end_ <= 0) {
        return;
    }
    drawRunBadge(painter, QRectF(8, 2, 13, 13), letter_, true);
    drawText(painter, QRectF(25, 0, gutter() - 26, height() - 1), Qt::AlignVCenter, QStringLiteral("#%1").arg(number_),
             t.text2, Theme::instance().font(TypeRole::Axis));
    painter.setClipRect(plotRect());
    paintTicks(painter);
    if (const auto at = time()->cursor() ? runTime(*time()->cursor()) : std::nullopt) {
        const QFont strong = Theme::instance().font(TypeRole::Axis, true);
        const QString text = instantText(*at);
        const double wide = textWidth(text, strong) + 10;
        const double x = std::clamp(xOf(*time()->cursor()) - wide / 2, gutter(), std::max(gutter(), width() - wide));
        painter.fillRect(QRectF(x, 0, wide, height() - 1), t.text1);
        drawText(painter, QRectF(x, 0, wide, height() - 1), Qt::AlignCenter, text, t.window, strong);
    }
}

} // namespace vitrine::ui
