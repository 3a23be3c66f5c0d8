// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/lab_head.h"

#include <QPainter>
#include <algorithm>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/heat_map.h"

namespace vitrine::ui {

namespace {

constexpr int kLabHeadHeight = 24;
constexpr double kLabAir = 12;

} // namespace

LabHead::LabHead(const QString& title, QWidget* parent) : QWidget(parent), title_(title) {
    setFixedHeight(kLabHeadHeight);
    setAccessibleName(title);
    connect(&Theme::instance(), &Theme::changed, this, qOverload<>(&QWidget::update));
}

void LabHead::setTitle(const QString& title) {
    title_ = title;
    setAccessibleName(title);
    update();
}

void LabHead::setFacts(const QString& facts) {
    facts_ = facts;
    setToolTip(facts); // all of it, where the line is too short
    update();
}

void LabHead::setAlarming(bool on) {
    alarming_ = on;
    update();
}

void LabHead::setScale(const std::optional<ErrorScale>& scale) {
    scale_ = scale;
    update();
}

void LabHead::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.panel);
    hairline(painter, 0, width(), 0, t.line1);
    const QFont strong =
        mono_ ? Theme::instance().monoFont(TypeRole::Table) : Theme::instance().font(TypeRole::Table, true);
    const QFont table = Theme::instance().font(TypeRole::Table), axis = Theme::instance().font(TypeRole::Axis);
    double right = width() - kLabAir;
    const QRectF line(kLabAir - 1, 1, right - kLabAir, height() - 1);
    const double titleWidth = std::min(textWidth(title_, strong), line.width());
    if (scale_) {
        const QString unit = scale_->measure == ErrorMeasure::Snr   ? tr("dB or more")
                             : scale_->measure == ErrorMeasure::Mse ? tr("or less")
                                                                    : tr("or more");
        const double wide = textWidth(unit, axis);
        drawText(painter, QRectF(right - wide, 1, wide, height() - 1), Qt::AlignRight | Qt::AlignVCenter, unit, t.text2,
                 axis);
        right = drawHeatSwatches(painter, right - wide - 6, height() / 2.0 + 0.5, *scale_) - 16;
    }
    drawText(painter, QRectF(line.left(), 1, std::max(0.0, right - line.left()), height() - 1),
             Qt::AlignLeft | Qt::AlignVCenter, title_, t.text1, strong);
    const double left = line.left() + titleWidth + 16;
    if (right - left > 30) {
        drawText(painter, QRectF(left, 1, right - left, height() - 1), Qt::AlignRight | Qt::AlignVCenter, facts_,
                 alarming_ ? t.bad : t.text2, scale_ ? axis : table);
    }
}

} // namespace vitrine::ui
