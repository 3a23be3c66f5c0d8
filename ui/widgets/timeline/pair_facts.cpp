// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/pair_facts.h"

#include <QPainter>
#include <cmath>

#include "ui/widgets/base/controls.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kBadgeSide = 14, kBadgeGap = 6, kPairGap = 12;

} // namespace

PairFacts::PairFacts(QWidget* parent) : QWidget(parent) {
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Preferred);
}

void PairFacts::setValues(const QString& a, const QString& b, bool both) {
    if (a_ == a && b_ == b && both_ == both) {
        return;
    }
    a_ = a;
    b_ = b;
    both_ = both;
    setAccessibleName(text());
    updateGeometry();
    update();
}

QString PairFacts::text() const {
    return both_ ? tr("A %1, B %2").arg(a_, b_) : a_;
}

QSize PairFacts::sizeHint() const {
    const QFont font = Theme::instance().font(TypeRole::Table);
    double width = textWidth(a_, font) + 2;
    if (both_) {
        width += textWidth(b_, font) + 2 + 2 * (kBadgeSide + kBadgeGap) + kPairGap;
    }
    return {static_cast<int>(std::ceil(width)), 16};
}

void PairFacts::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const QFont font = Theme::instance().font(TypeRole::Table);
    double x = 0;
    const auto add = [&](QChar letter, const QString& value) {
        if (both_) {
            drawRunBadge(painter, QRectF(x, (height() - kBadgeSide) / 2, kBadgeSide, kBadgeSide), letter, true);
            x += kBadgeSide + kBadgeGap;
        }
        const double wide = textWidth(value, font) + 2;
        drawText(painter, QRectF(x, 0, wide, height()), Qt::AlignVCenter, value, themeTokens().text1, font);
        x += wide + kPairGap;
    };
    add(QLatin1Char('A'), a_);
    if (both_) {
        add(QLatin1Char('B'), b_);
    }
}

} // namespace vitrine::ui
