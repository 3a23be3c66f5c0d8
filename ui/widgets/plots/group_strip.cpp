// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/group_strip.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kGroupsLeft = 51, kGroupsRight = 9, kGroupsTop = 26, kGroupsAxis = 18;

/// "16K" for 16,384 groups; other counts as they are.
QString groupsText(double groups) {
    return groups >= 1024 && std::fmod(groups, 1024) == 0 ? decimalText(groups / 1024, 0) + QLatin1Char('K')
                                                          : decimalText(groups, 0);
}

/// A step between labels in whole groups: a power of two for many, so that labels are round in K.
double labelStep(double groups) {
    double step = 1;
    while (groups / step > 3.5) {
        step *= 2;
    }
    return step;
}

} // namespace

GroupStrip::GroupStrip(const QString& title, QWidget* parent) : ItemPlot(title, parent), job_(this) {
    connect(this, &ItemPlot::itemClicked, this,
            [this](int item) { emit groupChosen(columns_[static_cast<std::size_t>(item)].worst); });
}

void GroupStrip::setGroups(GroupErrorsPtr groups) {
    groups_ = std::move(groups);
    chosen_ = -1;
    columns_.clear();
    forgetCurrentItem();
    makeColumns();
    invalidate();
}

void GroupStrip::setChosen(std::int64_t group) {
    chosen_ = groups_ && group < static_cast<std::int64_t>(groups_->size()) ? group : -1;
    invalidate();
}

void GroupStrip::makeColumns() {
    job_.cancel();
    if (!groups_) {
        return;
    }
    const int most = static_cast<int>(plotOf(size()).width());
    job_.start([groups = groups_, most] { return groupColumns(*groups, most); },
               [this](std::vector<GroupColumn> columns) {
                   columns_ = std::move(columns);
                   largest_ = 0;
                   for (const GroupColumn& column : columns_) {
                       largest_ = std::max<double>(largest_, column.largest);
                   }
                   power_ = unitPower(largest_);
                   forgetCurrentItem();
                   invalidate();
               });
}

void GroupStrip::resizeEvent(QResizeEvent* event) {
    ItemPlot::resizeEvent(event);
    makeColumns();
}

QRectF GroupStrip::plotOf(const QSizeF& size) {
    return {kGroupsLeft, kGroupsTop, std::max(2.0, size.width() - kGroupsLeft - kGroupsRight),
            std::max(2.0, size.height() - kGroupsTop - kGroupsAxis)};
}

double GroupStrip::top() const {
    const double unit = std::pow(10.0, power_);
    const double shown = largest_ / unit;
    const double step = shown > 100 ? 100 : shown > 10 ? 5 : 1;
    return std::max(step, std::ceil(shown / step) * step) * unit;
}

void GroupStrip::paintColumns(QPainter& painter, const QRectF& plot) const {
    const ThemeTokens& t = themeTokens();
    const double wide = plot.width() / static_cast<double>(columns_.size()), high = top();
    const auto y = [&](float error) { return plot.bottom() - error / high * plot.height(); };
    QPainterPath median;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        const GroupColumn& column = columns_[i];
        const double x = plot.left() + static_cast<double>(i) * wide;
        painter.fillRect(QRectF(x, y(column.high), wide, std::max(1.0, y(column.low) - y(column.high))),
                         withAlpha(t.line2, 0.55));
        painter.fillRect(QRectF(x, y(column.largest) - 0.75, std::min(wide, 3.0), 1.5), t.text3);
        const QPointF at(x + wide / 2, y(column.median));
        i == 0 ? median.moveTo(at) : median.lineTo(at);
    }
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(t.text1, 1));
    painter.drawPath(median);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void GroupStrip::paintChosen(QPainter& painter, const QRectF& plot) const {
    const ThemeTokens& t = themeTokens();
    const double error = (*groups_)[static_cast<std::size_t>(chosen_)];
    const double x =
        plot.left() + (static_cast<double>(chosen_) + 0.5) / static_cast<double>(groups_->size()) * plot.width();
    const double y = plot.bottom() - std::min(1.0, error / top()) * plot.height();
    painter.setPen(QPen(t.text1, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(std::round(x) - 4, std::round(y) - 4, 9, 9));
    const bool right = x < plot.left() + plot.width() * 0.6;
    const QString words = tr("%1, %2").arg(countText(chosen_), decimalText(error / std::pow(10.0, power_), 2));
    const QRectF place(right ? x + 10 : x - 10 - 160, y - 8, 160, 16);
    drawText(painter, place, (right ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter, words, t.text1,
             Theme::instance().font(TypeRole::Axis, true));
}

QImage GroupStrip::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const QRectF plot = plotOf(size);
    const QString unit = power_ == 0 ? QString() : tr(" x %1").arg(unitText(power_));
    const double words =
        drawText(painter, QRectF(plot.left() - 36, 2, size.width(), 18), Qt::AlignLeft | Qt::AlignVCenter,
                 tr("Error of each group, RMS%1").arg(unit), t.text1, Theme::instance().font(TypeRole::Table));
    const QString legend = tr("median, 5 to 95 %, largest");
    if (words + textWidth(legend, axis) + plot.left() < plot.right()) {
        drawText(painter, QRectF(0, 2, plot.right(), 18), Qt::AlignRight | Qt::AlignVCenter, legend, t.text2, axis);
    }
    drawText(painter, QRectF(0, plot.bottom() + 2, plot.left() - 8, 14), Qt::AlignRight | Qt::AlignVCenter, tr("group"),
             t.text3, axis);
    if (columns_.empty()) {
        hairline(painter, plot.left(), plot.right(), plot.bottom(), t.line1);
        return image;
    }
    const double scale = std::pow(10.0, power_);
    const NumberTicks ticks = numberTicks(0, top() / scale, 3);
    for (const double value : ticks.values) {
        const double y = plot.bottom() - value * scale / top() * plot.height();
        hairline(painter, plot.left(), plot.right(), y, value == 0 ? t.line1 : t.line0);
        drawText(painter, QRectF(0, y - 8 - (value == 0 ? 3 : 0), plot.left() - 8, 16),
                 Qt::AlignRight | Qt::AlignVCenter, decimalText(value, ticks.decimals), t.text3, axis);
    }
    const double groups = static_cast<double>(groups_->size()), step = labelStep(groups);
    for (double at = 0; at <= groups; at += step) {
        const double x = plot.left() + at / groups * plot.width();
        const bool last = x > plot.right() - 14;
        drawText(painter, QRectF(last ? plot.right() - 60 : x - 30, plot.bottom() + 2, 60, 14),
                 (last ? Qt::AlignRight : Qt::AlignHCenter) | Qt::AlignVCenter, groupsText(at), t.text3, axis);
    }
    paintColumns(painter, plot);
    if (chosen_ >= 0) {
        paintChosen(painter, plot);
    }
    return image;
}

int GroupStrip::itemAt(QPointF position) const {
    const QRectF plot = plotOf(size());
    if (columns_.empty() || !plot.contains(position)) {
        return -1;
    }
    const double part = (position.x() - plot.left()) / plot.width();
    return std::min(itemCount() - 1, static_cast<int>(part * itemCount()));
}

int GroupStrip::itemBeside(int item, int key) const {
    if (item < 0) {
        const auto worst = std::ranges::max_element(columns_, {}, &GroupColumn::largest);
        return static_cast<int>(worst - columns_.begin());
    }
    const int by = key == Qt::Key_Right ? 1 : key == Qt::Key_Left ? -1 : 0;
    return std::clamp(item + by, 0, itemCount() - 1);
}

QString GroupStrip::itemText(int item) const {
    const GroupColumn& column = columns_[static_cast<std::size_t>(item)];
    const double unit = std::pow(10.0, power_);
    return tr("Groups %1 to %2: median RMS %3, largest %4 in group %5, in units of %6")
        .arg(countText(column.first), countText(column.last - 1), decimalText(column.median / unit, 2),
             decimalText(column.largest / unit, 2), countText(column.worst), unitText(power_));
}

QRectF GroupStrip::itemFrame(int item) const {
    const QRectF plot = plotOf(size());
    const double wide = plot.width() / std::max(1, itemCount());
    return {std::floor(plot.left() + item * wide) - 0.5, plot.top() + 0.5, wide + 2, plot.height() - 1};
}

QString GroupStrip::spoken() const {
    if (currentItem() >= 0 || chosen_ < 0) {
        return ItemPlot::spoken();
    }
    return tr("Group %1 is looked at, of %2")
        .arg(countText(chosen_), countText(static_cast<std::int64_t>(groups_->size())));
}

} // namespace vitrine::ui
