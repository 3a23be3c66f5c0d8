// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/length_plot.h"

#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/pack_paint.h"

namespace vitrine::ui {

namespace {

constexpr double kLengthLeft = 44, kLengthRight = 12, kLengthTop = 10, kLengthBelow = 22;
constexpr double kUnderOne = 0.35; ///< of a decade, so that one row is a bar

QString shortLength(std::int64_t tokens) {
    return tokens >= 1024 ? QStringLiteral("%1K").arg(tokens / 1024) : QString::number(tokens);
}

} // namespace

LengthPlot::LengthPlot(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setFixedHeight(154);
    setMouseTracking(true);
    connect(this, &ItemPlot::itemClicked, this, [this](int item) {
        const LengthBar& bar = bars_[static_cast<std::size_t>(item)];
        emit rangeChosen(bar.from, bar.to);
    });
}

void LengthPlot::setChosen(std::int64_t from, std::int64_t to) {
    chosenFrom_ = from;
    chosenTo_ = to;
    update();
}

std::size_t LengthPlot::nearestBar(double x) const {
    std::size_t nearest = 0;
    double least = -1;
    for (std::size_t i = 0; i < bars_.size(); ++i) {
        const QRectF bar = barRect(i, size());
        const double away = std::max({0.0, bar.left() - x, x - bar.right()});
        if (least < 0 || away < least) {
            least = away;
            nearest = i;
        }
    }
    return nearest;
}

LengthBar LengthPlot::draggedRange() const {
    return {bars_[std::min(*dragFrom_, dragTo_)].from, bars_[std::max(*dragFrom_, dragTo_)].to, 0, 0};
}

void LengthPlot::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || bars_.empty()) {
        return;
    }
    setFocus(Qt::MouseFocusReason);
    dragFrom_ = dragTo_ = nearestBar(event->position().x());
    update();
}

void LengthPlot::mouseMoveEvent(QMouseEvent* event) {
    ItemPlot::mouseMoveEvent(event);
    if (dragFrom_) {
        dragTo_ = nearestBar(event->position().x());
        update();
    }
}

void LengthPlot::mouseReleaseEvent(QMouseEvent* event) {
    if (!dragFrom_ || event->button() != Qt::LeftButton) {
        return;
    }
    dragTo_ = nearestBar(event->position().x());
    const LengthBar range = draggedRange();
    dragFrom_.reset();
    update();
    emit rangeChosen(range.from, range.to);
}

void LengthPlot::paintOver(QPainter& painter) {
    std::int64_t from = chosenFrom_, to = chosenTo_;
    if (dragFrom_) {
        from = draggedRange().from;
        to = draggedRange().to;
    }
    if (to > 0) {
        const double left = xOf(static_cast<double>(from), width()), right = xOf(static_cast<double>(to), width());
        QColor band = themeTokens().accent;
        band.setAlphaF(0.14F);
        painter.fillRect(QRectF(left, kLengthTop, right - left, height() - kLengthBelow - kLengthTop), band);
    }
    ItemPlot::paintOver(painter);
}

void LengthPlot::setBars(std::vector<LengthBar> bars, std::int64_t limit, std::int64_t over, std::int64_t median) {
    bars_ = std::move(bars);
    limit_ = limit;
    over_ = over;
    median_ = median;
    dragFrom_.reset();
    double low = 0, high = 1, most = 1;
    for (const LengthBar& bar : bars_) {
        low = &bar == &bars_.front() ? std::log2(static_cast<double>(bar.from)) : low;
        high = std::log2(static_cast<double>(bar.to));
        most = std::max(most, std::log10(static_cast<double>(std::max<std::int64_t>(1, bar.rows))));
    }
    high = limit > 0 ? std::max(high, std::log2(static_cast<double>(limit))) : high;
    lowest_ = std::floor(low);
    highest_ = std::max(lowest_ + 1, std::ceil(high + 0.2));
    mostRows_ = most * 1.15 + 0.2;
    forgetCurrentItem();
    invalidate();
}

double LengthPlot::xOf(double tokens, double width) const {
    const double room = std::max(1.0, width - kLengthLeft - kLengthRight);
    return kLengthLeft + (std::log2(std::max(1.0, tokens)) - lowest_) / (highest_ - lowest_) * room;
}

double LengthPlot::yOf(double rows, double height) const {
    const double bottom = height - kLengthBelow;
    return rows <= 0 ? bottom
                     : bottom - (std::log10(rows) + kUnderOne) / (mostRows_ + kUnderOne) * (bottom - kLengthTop);
}

QRectF LengthPlot::barRect(std::size_t bar, const QSizeF& size) const {
    const LengthBar& b = bars_[bar];
    const double a = std::round(xOf(static_cast<double>(b.from), size.width()));
    const double end = std::round(xOf(static_cast<double>(b.to), size.width()));
    const double y = std::round(yOf(static_cast<double>(b.rows), size.height()));
    return {a, y, std::max(1.0, end - a - 1), size.height() - kLengthBelow - y};
}

void LengthPlot::paintAxes(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double right = size.width() - kLengthRight, bottom = size.height() - kLengthBelow;
    for (std::int64_t rows = 1; std::log10(static_cast<double>(rows)) <= mostRows_; rows *= 10) {
        const double y = yOf(static_cast<double>(rows), size.height());
        hairline(painter, kLengthLeft, right, y, t.line0);
        drawText(painter, QRectF(0, y - 8, kLengthLeft - 6, 16), Qt::AlignRight | Qt::AlignVCenter, countText(rows),
                 t.text3, font);
    }
    hairline(painter, kLengthLeft, right, bottom, t.line1);
    const double octaves = highest_ - lowest_;
    const int step = octaves > 5 ? 2 : 1;
    for (int octave = static_cast<int>(lowest_); octave <= static_cast<int>(highest_); octave += step) {
        const double x = xOf(std::exp2(octave), size.width());
        const bool first = octave == static_cast<int>(lowest_), last = x + 16 > right;
        drawText(painter,
                 QRectF(first  ? x
                        : last ? right - 40
                               : x - 20,
                        bottom + 3, 40, 16),
                 (first  ? Qt::AlignLeft
                  : last ? Qt::AlignRight
                         : Qt::AlignHCenter) |
                     Qt::AlignVCenter,
                 shortLength(std::int64_t{1} << octave), t.text2, font);
    }
}

void LengthPlot::paintLines(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double bottom = size.height() - kLengthBelow;
    const double middle = std::floor(xOf(static_cast<double>(median_), size.width())) + 0.5;
    if (limit_ > 0) {
        const double x = std::floor(xOf(static_cast<double>(limit_), size.width())) + 0.5;
        QPen pen(t.warn, 1);
        pen.setDashPattern({4, 3});
        painter.setPen(pen);
        painter.drawLine(QPointF(x, 4), QPointF(x, bottom));
        const QFont strong = Theme::instance().font(TypeRole::Axis, true);
        // Left of its line, unless the median stands there.
        const bool taken = middle <= x && middle > x - textWidth(countText(limit_), strong) - 10;
        drawText(painter, QRectF(taken ? x + 5 : x - 85, 3, 80, 16),
                 (taken ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter, countText(limit_), t.warn, strong);
        if (over_ > 0) {
            drawText(painter, QRectF(x + 6, yOf(static_cast<double>(over_), size.height()) - 18, 40, 16),
                     Qt::AlignVCenter, countText(over_), t.warn, strong);
        }
    }
    QPen dots(t.text1, 1);
    dots.setDashPattern({2, 3});
    painter.setPen(dots);
    painter.drawLine(QPointF(middle, 14), QPointF(middle, bottom));
    const QString words = tr("median %1").arg(countText(median_));
    const bool roomLeft = middle - kLengthLeft > textWidth(words, font) + 6;
    drawText(painter, QRectF(roomLeft ? middle - 105 : middle + 5, 3, 100, 16),
             (roomLeft ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter, words, t.text1, font);
}

QImage LengthPlot::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    if (bars_.empty()) {
        return image;
    }
    QPainter painter(&image);
    paintAxes(painter, size);
    for (std::size_t i = 0; i < bars_.size(); ++i) {
        const bool over = limit_ > 0 && bars_[i].from >= limit_;
        painter.fillRect(barRect(i, size), over ? t.warn : t.line2);
    }
    paintLines(painter, size);
    return image;
}

int LengthPlot::itemAt(QPointF position) const {
    for (std::size_t i = 0; i < bars_.size(); ++i) {
        const QRectF bar = barRect(i, size());
        if (position.x() >= bar.left() && position.x() <= bar.right() + 1) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

QString LengthPlot::itemText(int item) const {
    const LengthBar& bar = bars_[static_cast<std::size_t>(item)];
    return tr("%1 to %2 tokens: %3 rows, %4 tokens together")
        .arg(countText(bar.from), countText(bar.to - 1), countText(bar.rows), countText(bar.tokens));
}

QRectF LengthPlot::itemFrame(int item) const {
    return barRect(static_cast<std::size_t>(item), size()).adjusted(-1.5, -1.5, 0.5, 0.5);
}

int LengthPlot::itemBeside(int item, int key) const {
    return packBeside(item, key, itemCount());
}

} // namespace vitrine::ui
