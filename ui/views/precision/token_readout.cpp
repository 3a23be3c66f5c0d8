// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/token_readout.h"

#include <QPainter>

#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kReadoutHeight = 42;
constexpr double kReadoutLine = 17, kReadoutGap = 12;

} // namespace

TokenReadout::TokenReadout(QWidget* parent) : QWidget(parent) {
    setFixedHeight(kReadoutHeight);
    connect(&Theme::instance(), &Theme::changed, this, qOverload<>(&QWidget::update));
}

void TokenReadout::setWords(const TokenWords& words) {
    words_ = words;
    setAccessibleName(words.token + QLatin1Char(' ') + words.place + QLatin1Char(' ') + words.difference);
    update();
}

void TokenReadout::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.canvas);
    hairline(painter, 0, width(), 0, t.line0);
    const QFont plain = Theme::instance().font(TypeRole::Table), strong = Theme::instance().font(TypeRole::Table, true);
    double right = width() - 12;
    const auto fromRight = [&](const QString& text, double y, const QColor& color, const QFont& font) {
        const double wide = textWidth(text, font);
        drawText(painter, QRectF(right - wide, y, wide, kReadoutLine), Qt::AlignLeft | Qt::AlignVCenter, text, color,
                 font);
        right -= wide + kReadoutGap;
    };
    fromRight(words_.difference, 4, t.text1, strong);
    fromRight(words_.a, 4, t.compareA, plain);
    fromRight(words_.b, 4, t.compareB, plain);
    const double token = drawText(painter, QRectF(11, 4, std::max(0.0, right - 11), kReadoutLine),
                                  Qt::AlignLeft | Qt::AlignVCenter, words_.token, t.text1, strong);
    const double left = 11 + token + kReadoutGap;
    if (right > left) {
        drawText(painter, QRectF(left, 4, right - left, kReadoutLine), Qt::AlignLeft | Qt::AlignVCenter, words_.place,
                 t.text2, plain);
    }
    right = width() - 12;
    fromRight(words_.shares, 4 + kReadoutLine, t.text2, plain);
    if (right > 11) {
        drawText(painter, QRectF(11, 4 + kReadoutLine, right - 11, kReadoutLine), Qt::AlignLeft | Qt::AlignVCenter,
                 words_.next, t.text2, plain);
    }
}

} // namespace vitrine::ui
