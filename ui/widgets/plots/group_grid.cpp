// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/group_grid.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QResizeEvent>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/precision/group_columns.h"
#include "ui/models/precision/group_words.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kGridLeft = 59, kGridRight = 12, kGridTop = 8, kGridHeight = 104, kGridRows = 184;
constexpr double kLeastCell = 29, kMostCell = 60;
constexpr double kAirAbove = 7.4 / 7; ///< the edge of the plot lies beyond the last level
constexpr double kLineGap = 3;        ///< levels closer than this share one line

constexpr double kNumberAir = 3; ///< at the right of a number

/// A whole number without separators, which cells have no room for.
QString cellNumber(double value) {
    return decimalText(value, 0).remove(QLatin1Char(','));
}

} // namespace

GroupGrid::GroupGrid(const QString& title, QWidget* parent) : ScrollPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void GroupGrid::setGroup(GroupPtr group) {
    group_ = std::move(group);
    current_ = worst_ = -1;
    limit_ = 1;
    power_ = 0;
    even_ = group_ && evenLevels(*group_);
    if (group_) {
        double largest = 0;
        for (const float value : group_->values) {
            largest = std::max<double>(largest, std::abs(value));
        }
        power_ = largest > 0 && std::isfinite(largest) ? static_cast<int>(std::floor(std::log10(largest))) - 3 : 0;
        for (const float level : group_->levels) {
            largest = std::max<double>(largest, std::abs(level));
        }
        limit_ = largest > 0 && std::isfinite(largest) ? largest * kAirAbove : 1;
        if (const auto worst = worstWeight(*group_)) {
            worst_ = static_cast<int>(*worst);
        }
    }
    scrollTo({0, 0});
    updateGeometry();
    contentChanged();
    if (worst_ >= 0) {
        reveal({worst_ * cellWidth(size()), 0, cellWidth(size()), 1});
    }
}

int GroupGrid::count() const {
    return group_ ? static_cast<int>(group_->values.size()) : 0;
}

double GroupGrid::cellWidth(const QSizeF& size) const {
    const double room = std::max(1.0, size.width() - kGridLeft - kGridRight);
    const int shown = room >= 32 * kLeastCell ? 32 : 16;
    return std::min(kMostCell, room / std::clamp(count(), 1, shown));
}

QRectF GroupGrid::movingArea(const QSizeF& size) const {
    return {kGridLeft, 0, std::max(1.0, size.width() - kGridLeft - kGridRight), std::max(1.0, size.height())};
}

QSizeF GroupGrid::contentSize(const QSizeF& size) const {
    return {count() * cellWidth(size), 1};
}

double GroupGrid::levelY(double value) const {
    return kGridTop + kGridHeight / 2 - value / limit_ * kGridHeight / 2;
}

void GroupGrid::paintLevels(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const double right = std::min(size.width() - kGridRight, kGridLeft + contentSize(size).width());
    double last = -100;
    for (auto level = group_->levels.rbegin(); level != group_->levels.rend(); ++level) {
        const double y = levelY(*level);
        if (y - last >= kLineGap || *level == 0) {
            hairline(painter, kGridLeft, right, y, *level == 0 ? t.line2 : t.line0);
            last = y;
        }
    }
    std::vector<double> taken;
    const auto name = [&](std::size_t index) {
        const double value = group_->levels[index], y = levelY(value);
        const auto near = [y](double other) { return std::abs(other - y) < 13; };
        if (std::ranges::any_of(taken, near)) {
            return;
        }
        taken.push_back(y);
        const int code = static_cast<int>(index) - group_->zeroLevel;
        const QString text = value == 0 ? QStringLiteral("0")
                             : even_    ? signedDecimalText(code, 0) + QStringLiteral(" s")
                                        : signedDecimalText(value / std::pow(10.0, power_), 0);
        drawText(painter, QRectF(0, y - 8, kGridLeft - 8, 16), Qt::AlignRight | Qt::AlignVCenter, text, t.text3, axis);
    };
    const std::size_t levels = group_->levels.size();
    const auto zero = static_cast<std::size_t>(std::max(0, group_->zeroLevel));
    if (levels > 0) {
        name(std::min(levels - 1, zero));
        name(levels - 1);
        name(0);
        const std::size_t half = (levels / 2 + 1) / 2;
        name(std::min(levels - 1, zero + half));
        name(zero >= half ? zero - half : 0);
    }
}

int GroupGrid::shownPower(const QSizeF& size) const {
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double unit = std::pow(10.0, power_);
    for (const std::vector<float>* row : {&group_->values, &group_->rounded}) {
        for (const float value : *row) {
            if (std::abs(value) >= 100 * unit && // shorter numbers fit anyway
                textWidth(cellNumber(value / unit), font) > cellWidth(size) - kNumberAir) {
                return power_ + 1;
            }
        }
    }
    return power_;
}

void GroupGrid::paintHeads(QPainter& painter, int power) const {
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const QString heads[] = {power == 0 ? tr("w") : tr("w, %1").arg(unitText(power)), tr("code"), tr("w′"),
                             tr("w′ − w")};
    for (int row = 0; row < 4; ++row) {
        drawText(painter, QRectF(0, kGridTop + kGridHeight + 5 + row * 16, kGridLeft - 8, 16),
                 Qt::AlignRight | Qt::AlignVCenter, heads[row], t.text2, axis);
    }
}

void GroupGrid::paintWeight(QPainter& painter, const QRectF& cell, std::size_t weight, int power) const {
    const ThemeTokens& t = themeTokens();
    const QFont axis = Theme::instance().font(TypeRole::Axis), strong = Theme::instance().font(TypeRole::Axis, true);
    const bool worst = static_cast<int>(weight) == worst_;
    const double w = group_->values[weight], rounded = group_->rounded[weight], x = cell.center().x();
    const double y = levelY(std::clamp(w, -limit_, limit_)), to = levelY(std::clamp(rounded, -limit_, limit_));
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(t.text2, 1));
    painter.drawLine(QPointF(x, y), QPointF(x, to));
    painter.fillRect(QRectF(x - 9, to - 1.5, 18, 3), t.compareA);
    painter.setPen(QPen(t.compareB, 1.75));
    painter.setBrush(t.canvas);
    painter.drawEllipse(QPointF(x, y), 3, 3);
    painter.setRenderHint(QPainter::Antialiasing, false);
    const double unit = std::pow(10.0, power);
    const auto number = [&](int row, const QString& text, const QColor& color, const QFont& font) {
        drawText(painter, QRectF(cell.left() - kNumberAir, kGridTop + kGridHeight + 5 + row * 16, cell.width(), 16),
                 Qt::AlignRight | Qt::AlignVCenter, text, color, font);
    };
    number(0, cellNumber(w / unit), t.compareB, axis);
    number(1, decimalText(signedCode(*group_, weight), 0), t.text1, strong);
    number(2, cellNumber(rounded / unit), t.compareA, axis);
    number(3, cellNumber((rounded - w) / unit), worst ? t.text1 : t.text2, worst ? strong : axis);
}

void GroupGrid::paintWords(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const auto label = [&](const QString& text, double x, double y, bool left, const QFont& font, const QColor& color) {
        const double wide = textWidth(text, font);
        const QRectF place(left ? x - wide : x, y - 8, wide, 16);
        painter.fillRect(place.adjusted(-4, 0, 4, 0), t.canvas);
        drawText(painter, place, Qt::AlignLeft | Qt::AlignVCenter, text, color, font);
    };
    const std::optional<std::size_t> lonely = lonelyWeight(*group_);
    const bool below = lonely && group_->values[*lonely] < 0; // the sentence stands on the side of its weight
    label(tr("circle: w   bar: w′ = its level"), kGridLeft + 8, levelY((below ? 1 : -1) * limit_ * 0.82), false,
          Theme::instance().font(TypeRole::Axis), t.text2);
    if (!lonely) {
        return;
    }
    const double cell = cellWidth(size);
    const double x = kGridLeft - offset().x() + (static_cast<double>(*lonely) + 0.5) * cell;
    const bool left = x > kGridLeft + (size.width() - kGridLeft) / 2;
    label(lonelyWords(*group_), std::clamp(x + (left ? -16 : 16), kGridLeft + 4, size.width() - kGridRight),
          levelY((below ? -1 : 1) * limit_ * 0.84), left, Theme::instance().font(TypeRole::Table, true), t.text1);
}

void GroupGrid::paintPlot(QPainter& painter, const QSizeF& size) const {
    const int power = group_ ? shownPower(size) : 0;
    paintHeads(painter, power);
    if (!group_) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const double cell = cellWidth(size), from = offset().x();
    const double right = std::min(size.width() - kGridRight, kGridLeft + contentSize(size).width());
    const auto place = [&](int weight) {
        return QRectF(kGridLeft + weight * cell - from, kGridTop - 4, cell, kGridHeight + 74);
    };
    painter.fillRect(QRectF(kGridLeft, kGridTop + kGridHeight + 22, right - kGridLeft, 15), t.band);
    painter.save();
    painter.setClipRect(QRectF(kGridLeft, 0, right - kGridLeft, size.height()));
    if (worst_ >= 0) {
        painter.fillRect(place(worst_), t.selection);
    }
    painter.restore();
    paintLevels(painter, size);
    painter.save();
    painter.setClipRect(QRectF(kGridLeft, 0, right - kGridLeft, size.height()));
    const int last = std::min(count(), static_cast<int>((from + right - kGridLeft) / cell) + 1);
    for (int weight = static_cast<int>(from / cell); weight < last; ++weight) {
        paintWeight(painter, place(weight), static_cast<std::size_t>(weight), power);
    }
    if (current_ >= 0) {
        painter.setPen(QPen(t.accent, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(place(current_).adjusted(0.5, 0.5, -0.5, -0.5));
    }
    painter.restore();
    paintWords(painter, size);
}

QSize GroupGrid::sizeHint() const {
    const bool scrolls = contentSize(size()).width() > movingArea(size()).width();
    return {1023, static_cast<int>(kGridRows + (scrolls ? kBarRoom : 0))};
}

void GroupGrid::resizeEvent(QResizeEvent* event) {
    ScrollPlot::resizeEvent(event);
    if (event->size().width() != event->oldSize().width()) {
        updateGeometry(); // the bar below may come or go
    }
}

QString GroupGrid::spoken() const {
    if (!group_ || current_ < 0) {
        return group_ ? groupTitle(*group_) + QStringLiteral(". ") + lonelyWords(*group_) : QString();
    }
    const auto at = static_cast<std::size_t>(current_);
    const auto exact = [](double value) {
        return QString::number(value, 'g', 7).replace(QLatin1Char('-'), QChar(0x2212));
    };
    return tr("Weight %1 of the row: w %2, code %3, w′ %4, error %5")
        .arg(countText(group_->error.first + current_), exact(group_->values[at]),
             decimalText(signedCode(*group_, at), 0), exact(group_->rounded[at]),
             exact(double(group_->rounded[at]) - double(group_->values[at])));
}

void GroupGrid::setCurrent(int weight) {
    if (weight != current_) {
        current_ = weight;
        update();
        announce();
    }
}

void GroupGrid::mouseMoveEvent(QMouseEvent* event) {
    const double at = toContent(event->position()).x() / cellWidth(size());
    const bool inside = movingArea(size()).contains(event->position()) && at < count();
    setCurrent(inside ? static_cast<int>(at) : -1);
}

void GroupGrid::leaveEvent(QEvent* event) {
    ScrollPlot::leaveEvent(event);
    setCurrent(-1);
    emit readoutChanged({});
}

void GroupGrid::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    if (count() == 0 || (key != Qt::Key_Left && key != Qt::Key_Right)) {
        ScrollPlot::keyPressEvent(event);
        return;
    }
    const int next = current_ < 0 ? worst_ : current_ + (key == Qt::Key_Right ? 1 : -1);
    setCurrent(std::clamp(next, 0, count() - 1));
    reveal({current_ * cellWidth(size()), 0, cellWidth(size()), 1});
}

} // namespace vitrine::ui
