// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// All packed sequences as columns, and the turns of a row.

#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/pack_paint.h"
#include "ui/widgets/plots/pack_strip.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

constexpr double kBarsTop = 7, kBarsBelow = 7;
constexpr double kTurnsLeft = 52, kTurnsTop = 6, kTurnsHeight = 16, kTurnsRight = 16;

} // namespace

SequenceBars::SequenceBars(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setMouseTracking(true);
}

void SequenceBars::setSequences(std::vector<SequenceColumn> sequences, std::int64_t length) {
    sequences_ = std::move(sequences);
    length_ = std::max<std::int64_t>(1, length);
    forgetCurrentItem();
    invalidate();
}

void SequenceBars::setChosen(int sequence) {
    chosen_ = sequence;
    update();
}

StripSpan SequenceBars::columnsOf(int sequence, double width) const {
    const auto all = static_cast<std::int64_t>(sequences_.size());
    return {std::llround(packX(sequence, all, width)), std::llround(packX(sequence + 1, all, width))};
}

QImage SequenceBars::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double high = size.height() - kBarsTop - kBarsBelow, bottom = kBarsTop + high;
    const auto yOf = [&](std::int64_t tokens) {
        return std::round(bottom - static_cast<double>(tokens) / static_cast<double>(length_) * high);
    };
    drawText(painter, QRectF(0, kBarsTop - 6, kGutter - 6, 16), Qt::AlignRight | Qt::AlignVCenter, countText(length_),
             t.text3, font);
    drawText(painter, QRectF(0, bottom - 12, kGutter - 6, 16), Qt::AlignRight | Qt::AlignVCenter, QStringLiteral("0"),
             t.text3, font);
    const auto count = static_cast<int>(sequences_.size());
    const double end = packX(1, 1, size.width());
    double painted = kGutter;
    for (int first = 0; first < count;) {
        const StripSpan span = columnsOf(first, size.width());
        int shown = first, next = first + 1;
        while (next < count && columnsOf(next, size.width()).begin <= span.begin) { // several in one pixel
            shown =
                sequences_[static_cast<std::size_t>(next)].tokens < sequences_[static_cast<std::size_t>(shown)].tokens
                    ? next
                    : shown;
            ++next;
        }
        const SequenceColumn& column = sequences_[static_cast<std::size_t>(shown)];
        const double x = std::max(painted, static_cast<double>(span.begin));
        const double wide = std::max<double>(1, static_cast<double>(std::max(span.end, span.begin + 1)) - x);
        const double gap = wide >= 4 ? 1 : 0;
        paintUntrained(painter, QRectF(x, yOf(column.tokens), wide - gap, bottom - yOf(column.tokens)), false, dpr);
        painter.fillRect(QRectF(x, yOf(column.trained), wide - gap, bottom - yOf(column.trained)), trainedColor(false));
        painted = x + wide;
        first = next;
    }
    QPen dashes(t.line1, 1);
    dashes.setDashPattern({3, 3});
    painter.setPen(dashes);
    painter.drawLine(QPointF(kGutter, kBarsTop - 0.5), QPointF(end, kBarsTop - 0.5));
    hairline(painter, kGutter, end, bottom, t.line1);
    for (int i = 0; i < count; ++i) {
        if (sequences_[static_cast<std::size_t>(i)].cut) {
            const StripSpan span = columnsOf(i, size.width());
            paintPackMark(painter, static_cast<double>(span.begin + span.end) / 2, kBarsTop + 1, t.warn);
        }
    }
    return image;
}

void SequenceBars::paintOver(QPainter& painter) {
    if (chosen_ >= 0 && chosen_ < itemCount()) {
        const StripSpan span = columnsOf(chosen_, width());
        const double wide = std::max(7.0, static_cast<double>(span.end - span.begin) + 2);
        const double middle = static_cast<double>(span.begin + span.end) / 2;
        painter.setPen(QPen(themeTokens().text1, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(
            QRectF(std::round(middle - wide / 2), kBarsTop - 3, wide, height() - kBarsTop - kBarsBelow + 4));
    }
    ItemPlot::paintOver(painter);
}

int SequenceBars::itemAt(QPointF position) const {
    const auto all = static_cast<std::int64_t>(sequences_.size());
    const std::int64_t at = packPosition(position.x(), all, width());
    return at < 0 || at >= all ? -1 : static_cast<int>(at);
}

QString SequenceBars::itemText(int item) const {
    const SequenceColumn& column = sequences_[static_cast<std::size_t>(item)];
    return tr("Sequence %1: %2 tokens, %3 trained, %4 padding%5")
        .arg(countText(item + 1), countText(column.tokens), countText(column.trained),
             countText(length_ - column.tokens), column.cut ? tr(", has a cut row") : QString());
}

QRectF SequenceBars::itemFrame(int item) const {
    const StripSpan span = columnsOf(item, width());
    return {static_cast<double>(span.begin) - 1.5, kBarsTop - 3.5,
            std::max(4.0, static_cast<double>(span.end - span.begin) + 2), height() - kBarsTop - kBarsBelow + 5};
}

int SequenceBars::itemBeside(int item, int key) const {
    return packBeside(item < 0 ? chosen_ : item, key, itemCount());
}

TurnStrip::TurnStrip(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setFixedHeight(28);
    setMouseTracking(true);
}

void TurnStrip::setTurns(std::vector<TurnPart> turns, std::int64_t length) {
    turns_ = std::move(turns);
    length_ = std::max<std::int64_t>(1, length);
    forgetCurrentItem();
    invalidate();
}

void TurnStrip::setInView(StripSpan span) {
    inView_ = span;
    update();
}

double TurnStrip::xOf(std::int64_t position, double width) const {
    const double room = std::max(1.0, width - kTurnsLeft - kTurnsRight);
    return std::round(kTurnsLeft + static_cast<double>(position) / static_cast<double>(length_) * room);
}

QImage TurnStrip::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    drawText(painter, QRectF(11, kTurnsTop, 40, kTurnsHeight), Qt::AlignVCenter, tr("Turns"), t.text3, font);
    for (const TurnPart& turn : turns_) {
        const double a = xOf(turn.span.begin, size.width()), b = xOf(turn.span.end, size.width());
        const QRectF box(a, kTurnsTop, std::max(1.0, b - a - 1), kTurnsHeight);
        const bool trained = turn.trained.end > turn.trained.begin;
        trained ? painter.fillRect(box, trainedColor(false)) : paintUntrained(painter, box, false, dpr);
        const double wide = textWidth(turn.name, font) + 8;
        if (b - a > wide + 4) {
            if (!trained) {
                painter.fillRect(QRectF((a + b - wide) / 2, kTurnsTop + 1, wide, kTurnsHeight - 2), t.canvas);
            }
            drawText(painter, box, Qt::AlignCenter, turn.name, trained ? t.canvas : t.text1, font);
        }
    }
    return image;
}

void TurnStrip::paintOver(QPainter& painter) {
    if (inView_.end > inView_.begin && !turns_.empty()) {
        const double a = xOf(inView_.begin, width()), b = xOf(inView_.end, width());
        painter.setPen(QPen(themeTokens().text1, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(a - 1.5, kTurnsTop - 2.5, b - a + 2, kTurnsHeight + 5));
    }
    ItemPlot::paintOver(painter);
}

int TurnStrip::itemAt(QPointF position) const {
    for (std::size_t i = 0; i < turns_.size(); ++i) {
        if (position.x() >= xOf(turns_[i].span.begin, width()) && position.x() < xOf(turns_[i].span.end, width())) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

QRectF TurnStrip::itemFrame(int item) const {
    const StripSpan& span = turns_[static_cast<std::size_t>(item)].span;
    return {xOf(span.begin, width()) + 0.5, kTurnsTop + 0.5,
            std::max(1.0, xOf(span.end, width()) - xOf(span.begin, width()) - 2), kTurnsHeight - 1};
}

int TurnStrip::itemBeside(int item, int key) const {
    return packBeside(item, key, itemCount());
}

PackLegend::PackLegend(Of of, QWidget* parent) : QWidget(parent), of_(of) {
    setFixedHeight(of == Of::Sequence ? 22 : 24);
}

void PackLegend::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeTokens& t = themeTokens();
    const double dpr = deviceRatio(painter);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const double middle = height() / 2.0;
    double x = of_ == Of::Sequence ? kGutter : 11;
    painter.fillRect(rect(), of_ == Of::Sequence ? t.canvas : t.panel);
    const auto word = [&](const QString& text) {
        x += drawText(painter, QRectF(x, 0, std::max(0.0, width() - x), height()), Qt::AlignVCenter, text, t.text2,
                      font) +
             14;
    };
    const auto box = [&](double wide) {
        const QRectF out(x, middle - 6, wide, 12);
        x += wide + 5;
        return out;
    };
    if (of_ == Of::Tokens) {
        hairline(painter, 0, width(), 0, t.line0);
        const QRectF trained = box(20);
        painter.fillRect(trained, withAlpha(t.accent, 0.21));
        painter.fillRect(QRectF(trained.left(), trained.bottom() - 1, 20, 2), trainedColor(false));
        word(tr("trained"));
        painter.fillRect(box(20), t.hover);
        word(tr("not trained"));
        painter.setPen(t.line2);
        painter.drawRect(box(20).adjusted(0.5, 0.5, -0.5, -0.5));
        word(tr("special token"));
        word(tr("· space  ↵ new line"));
        return;
    }
    painter.fillRect(box(12), trainedColor(false));
    painter.fillRect(box(12), trainedColor(true));
    word(tr("trained, row by row"));
    paintUntrained(painter, box(12), false, dpr);
    word(tr("not trained"));
    painter.setPen(t.line2);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box(12).adjusted(0.5, 0.5, -0.5, -0.5));
    word(tr("padding, no loss and no attention"));
    paintPackMark(painter, x + 4, middle + 3, t.warn);
    x += 13;
    word(tr("has a cut row"));
}

} // namespace vitrine::ui
