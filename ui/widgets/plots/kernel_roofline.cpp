// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/kernel_roofline.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "profiler/analysis/roofline_summary.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kLeft = 46, kKernelRooflineRight = 10, kKernelRooflineTop = 18, kKernelRooflineBottom = 30, kDot = 4,
                 kReach = 9;

/// "1 k", "10 T": a power of ten with its SI letter.
QString powerText(int exponent) {
    static constexpr const char* kLetters[] = {"", "k", "M", "G", "T", "P"};
    if (exponent < 0) {
        return QString::number(std::pow(10.0, exponent), 'g', 3);
    }
    const int step = std::min(exponent / 3, 5);
    return QString::number(std::pow(10.0, exponent - 3 * step), 'f', 0) + QString::fromLatin1(kLetters[step]);
}

} // namespace

KernelRoofline::KernelRoofline(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setFixedHeight(160);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(this, &ItemPlot::itemClicked, this,
            [this](int item) { emit dotChosen(dots_[static_cast<std::size_t>(item)].name); });
}

void KernelRoofline::setDots(std::vector<RooflineDot> dots, const Ceilings& ceilings) {
    dots_ = std::move(dots);
    ceilings_ = ceilings;
    forgetCurrentItem();
    invalidate();
}

void KernelRoofline::setChosen(const QString& name) {
    if (chosen_ != name) {
        chosen_ = name;
        invalidate();
    }
}

KernelRoofline::Scale KernelRoofline::across() const {
    Scale scale{0, 3};
    for (const RooflineDot& dot : dots_) {
        scale.low = std::min(scale.low, std::floor(std::log10(dot.intensity)));
        scale.high = std::max(scale.high, std::ceil(std::log10(dot.intensity)));
    }
    if (ceilings_.known()) {
        scale.high = std::max(scale.high, std::ceil(std::log10(ceilings_.flopsPerSecond / ceilings_.bytesPerSecond)));
    }
    return scale;
}

KernelRoofline::Scale KernelRoofline::up() const {
    Scale scale{12, 12};
    for (const RooflineDot& dot : dots_) {
        scale.low = std::min(scale.low, std::floor(std::log10(dot.flopsPerSecond)));
        scale.high = std::max(scale.high, std::ceil(std::log10(dot.flopsPerSecond)));
    }
    if (ceilings_.known()) {
        scale.high = std::max(scale.high, std::ceil(std::log10(ceilings_.flopsPerSecond)));
    }
    scale.low = std::min(scale.low, scale.high - 2);
    return scale;
}

QRectF KernelRoofline::plotOf(const QSizeF& size) {
    return {kLeft, kKernelRooflineTop, std::max(20.0, size.width() - kLeft - kKernelRooflineRight),
            std::max(20.0, size.height() - kKernelRooflineTop - kKernelRooflineBottom)};
}

QPointF KernelRoofline::place(double intensity, double rate, const QSizeF& size) const {
    const QRectF plot = plotOf(size);
    const Scale x = across(), y = up();
    return {plot.left() + (std::log10(intensity) - x.low) / (x.high - x.low) * plot.width(),
            plot.bottom() - (std::log10(rate) - y.low) / (y.high - y.low) * plot.height()};
}

QPointF KernelRoofline::dotAt(std::size_t dot, const QSizeF& size) const {
    return place(dots_[dot].intensity, dots_[dot].flopsPerSecond, size);
}

QImage KernelRoofline::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    if (dots_.empty()) {
        drawText(painter, QRectF(QPointF(), size), Qt::AlignCenter, tr("No kernel with known work"), t.text3, font);
        return image;
    }
    const QRectF plot = plotOf(size);
    const Scale x = across(), y = up();
    for (int power = static_cast<int>(x.low); power <= static_cast<int>(x.high); ++power) {
        const double at = plot.left() + (power - x.low) / (x.high - x.low) * plot.width();
        plumbline(painter, std::min(std::floor(at), plot.right() - 1), plot.top(), plot.bottom(), t.line0);
        drawText(painter, QRectF(at - 20, plot.bottom() + 1, 40, 14), Qt::AlignCenter, powerText(power), t.text3, font);
    }
    const int every = y.high - y.low > 5 ? 2 : 1;
    for (int power = static_cast<int>(y.high); power >= static_cast<int>(y.low); power -= every) {
        const double at = plot.bottom() - (power - y.low) / (y.high - y.low) * plot.height();
        hairline(painter, plot.left(), plot.right(), std::min(std::floor(at), plot.bottom() - 1), t.line0);
        drawText(painter, QRectF(0, at - 8, kLeft - 6, 16), Qt::AlignRight | Qt::AlignVCenter, powerText(power),
                 t.text3, font);
    }
    drawText(painter, QRectF(4, 0, 90, 15), Qt::AlignVCenter, tr("FLOP/s"), t.text3, font);
    drawText(painter, QRectF(plot.left(), plot.bottom() + 14, plot.width(), 15), Qt::AlignRight | Qt::AlignVCenter,
             tr("FLOP per byte"), t.text3, font);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setClipRect(plot.adjusted(-kDot, -kDot, kDot, kDot));
    if (ceilings_.known()) {
        const double knee = ceilings_.flopsPerSecond / ceilings_.bytesPerSecond;
        const double low = std::pow(10.0, x.low), high = std::pow(10.0, x.high);
        const QPointF top = place(knee, ceilings_.flopsPerSecond, size);
        painter.setPen(QPen(t.text2, 1));
        painter.drawLine(place(low, ceilings_.flopsAt(low), size), top);
        painter.drawLine(top, place(high, ceilings_.flopsPerSecond, size));
        painter.setClipping(false);
        const QString words = tr("%1, %2").arg(textOf(profiler::bandwidthText(ceilings_.bytesPerSecond)),
                                               flopRateText(ceilings_.flopsPerSecond));
        drawText(painter, QRectF(plot.left() + 40, 0, plot.width() - 40, 15), Qt::AlignRight | Qt::AlignVCenter, words,
                 t.text2, font);
        painter.setClipping(true);
    }
    const auto draw = [&](std::size_t i, bool chosen) {
        painter.setPen(QPen(t.canvas, 1));
        painter.setBrush(chosen ? t.accent : t.line2);
        painter.drawEllipse(dotAt(i, size), chosen ? kDot + 1 : kDot, chosen ? kDot + 1 : kDot);
    };
    for (std::size_t i = 0; i < dots_.size(); ++i) {
        draw(i, false);
    }
    for (std::size_t i = 0; i < dots_.size(); ++i) {
        if (dots_[i].name == chosen_) {
            draw(i, true);
        }
    }
    return image;
}

int KernelRoofline::itemAt(QPointF position) const {
    int best = -1;
    double least = kReach;
    for (std::size_t i = 0; i < dots_.size(); ++i) {
        const QPointF away = dotAt(i, size()) - position;
        if (const double distance = std::hypot(away.x(), away.y()); distance < least) {
            least = distance;
            best = static_cast<int>(i);
        }
    }
    return best;
}

int KernelRoofline::itemBeside(int item, int key) const {
    // Dots stand in the order of their time: both pairs of arrows walk it.
    const bool back = key == Qt::Key_Up || key == Qt::Key_Left;
    return back ? std::max(0, item - 1) : std::min(itemCount() - 1, item + 1);
}

QRectF KernelRoofline::itemFrame(int item) const {
    const QPointF at = dotAt(static_cast<std::size_t>(item), size());
    return {at.x() - 7, at.y() - 7, 14, 14};
}

} // namespace vitrine::ui
