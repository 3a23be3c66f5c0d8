// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/budget_bar.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr int kTallSmall = 16; ///< px; from here on a small bar has hatches and names
constexpr double kBudgetBarHeight = 34, kBudgetBarTop = 20, kBraces = 30;

} // namespace

void drawBudgetBrace(QPainter& painter, double x0, double x1, double y, const QString& text, const QColor& color,
                     double limit, double& free) {
    if (x1 - x0 >= 3) {
        painter.fillRect(QRectF(x0, y, 1, 5), color);
        painter.fillRect(QRectF(x1 - 1, y, 1, 5), color);
        painter.fillRect(QRectF(x0, y + 4, x1 - x0, 1), color);
    }
    const QFont font = Theme::instance().font(TypeRole::Table);
    const double width = textWidth(text, font);
    const double x = std::clamp((x0 + x1 - width) / 2, free, std::max(free, limit - width));
    free = x + width + 12;
    drawText(painter, QRectF(x, y + 7, width + 2, 16), Qt::AlignVCenter, text, color, font);
}

void drawBudgetShares(QPainter& painter, const QRectF& bar, const std::vector<BudgetShare>& parts, double scale,
                      bool unit) {
    const ThemeTokens& t = themeTokens();
    const double dpr = deviceRatio(painter);
    const QFont strong = Theme::instance().font(TypeRole::Table, true), plain = Theme::instance().font(TypeRole::Table);
    const auto xOf = [&](std::uint64_t bytes) {
        return bar.left() + std::round(static_cast<double>(bytes) / scale * bar.width());
    };
    std::uint64_t at = 0;
    for (const BudgetShare& part : parts) {
        const double x0 = xOf(at), x1 = xOf(at + part.bytes);
        at += part.bytes;
        if (x1 <= x0) {
            continue;
        }
        const QRectF box(x0, bar.top(), x1 - x0, bar.height());
        const QString bytes = unit ? bytesText(part.bytes) : gibText(part.bytes);
        fillCategory(painter, box, part.style, dpr);
        painter.fillRect(QRectF(x1 - 1, bar.top(), 1, bar.height()), withAlpha(t.canvas, 0.6));
        if (!part.name.isEmpty() &&
            box.width() >= std::max(textWidth(part.name, strong), textWidth(bytes, plain)) + 14) {
            drawText(painter, QRectF(x0 + 8, bar.top() + 2, box.width() - 10, 15), Qt::AlignVCenter, part.name,
                     part.style.ink, strong);
            drawText(painter, QRectF(x0 + 8, bar.top() + 17, box.width() - 10, 15), Qt::AlignVCenter, bytes,
                     part.style.ink, plain);
        }
    }
}

BudgetBar::BudgetBar(bool small, QWidget* parent) : QWidget(parent), small_(small) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    connect(&Theme::instance(), &Theme::changed, this, QOverload<>::of(&QWidget::update));
}

void BudgetBar::set(std::vector<BudgetShare> parts, std::uint64_t budget, std::uint64_t asked,
                    const QString& askedName) {
    parts_ = std::move(parts);
    budget_ = budget;
    asked_ = asked;
    askedName_ = askedName;
    held_ = 0;
    QStringList words;
    for (const BudgetShare& part : parts_) {
        held_ += part.bytes;
        if (part.bytes > 0) {
            words << part.name + QLatin1Char(' ') + bytesText(part.bytes);
        }
    }
    spoken_ = tr("Held %1 of %2: %3").arg(bytesText(held_), bytesText(budget), words.join(QStringLiteral(", ")));
    if (asked > 0) {
        spoken_ += tr(". Asked for %1 more").arg(bytesText(asked));
    }
    setAccessibleName(tr("Memory against the budget"));
    setAccessibleDescription(spoken_);
    setToolTip(small_ ? spoken_ : QString());
    update();
}

QSize BudgetBar::sizeHint() const {
    return small_ ? QSize(160, 6) : QSize(400, static_cast<int>(kBudgetBarTop + kBudgetBarHeight + kBraces));
}

void BudgetBar::paintSmall(QPainter& painter) const {
    const ThemeTokens& t = themeTokens();
    const bool tall = height() >= kTallSmall;
    const double dpr = deviceRatio(painter);
    painter.fillRect(rect(), tall ? t.canvas : t.line1);
    if (tall) {
        painter.fillRect(rect(), freeHatch(t, 10, dpr));
    }
    const double scale = static_cast<double>(std::max({budget_, held_, std::uint64_t{1}}));
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    double x = 0;
    for (const BudgetShare& part : parts_) {
        const double w = static_cast<double>(part.bytes) / scale * width();
        const QRectF box(x, 0, w, height());
        tall ? fillCategory(painter, box, part.style, dpr) : painter.fillRect(box, part.style.fill);
        if (tall && w > textWidth(part.name, axis) + 10) {
            drawText(painter, box.adjusted(5, 0, 0, 0), Qt::AlignVCenter, part.name, part.style.ink, axis);
        }
        x += w;
    }
    if (tall) {
        painter.setPen(t.line1);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    }
    if (held_ > budget_ && budget_ > 0) {
        plumbline(painter, static_cast<double>(budget_) / scale * width(), 0, height(), t.bad);
    }
}

void BudgetBar::drawBraces(QPainter& painter, double heldX, double budgetX, double neededX) const {
    const ThemeTokens& t = themeTokens();
    const QFont plain = Theme::instance().font(TypeRole::Table);
    const std::uint64_t needed = held_ + asked_;
    const double y = kBudgetBarTop + kBudgetBarHeight + 4;
    const QString heldText = tr("held %1").arg(bytesText(held_));
    const QString freeText = budget_ > held_ ? tr("free %1").arg(bytesText(budget_ - held_)) : QString();
    const QString missingText = needed > budget_ ? tr("missing %1").arg(bytesText(needed - budget_)) : QString();
    // Each leaves room for the words after it, so that narrow pieces at the end keep theirs.
    const double missingRoom = missingText.isEmpty() ? 0 : textWidth(missingText, plain) + 12;
    const double freeRoom = freeText.isEmpty() ? 0 : textWidth(freeText, plain) + 12;
    double free = 0; // where the words of the next brace may begin
    drawBudgetBrace(painter, 0, heldX, y, heldText, t.text2, width() - missingRoom - freeRoom, free);
    if (!freeText.isEmpty()) {
        drawBudgetBrace(painter, heldX + 1, budgetX, y, freeText, t.text2, width() - missingRoom, free);
    }
    if (!missingText.isEmpty()) {
        drawBudgetBrace(painter, budgetX + 1, neededX, y, missingText, t.bad, width(), free);
    }
}

void BudgetBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    if (small_) {
        paintSmall(painter);
        return;
    }
    const ThemeTokens& t = themeTokens();
    const double dpr = deviceRatio(painter);
    const QFont strong = Theme::instance().font(TypeRole::Table, true), plain = Theme::instance().font(TypeRole::Table);
    const QFont axis = Theme::instance().font(TypeRole::Axis);
    const std::uint64_t needed = held_ + asked_;
    const double scale = static_cast<double>(std::max({needed, budget_, std::uint64_t{1}}));
    const auto xOf = [&](std::uint64_t bytes) {
        return std::round(static_cast<double>(bytes) / scale * (width() - 1));
    };
    drawBudgetShares(painter, QRectF(0, kBudgetBarTop, width() - 1, kBudgetBarHeight), parts_, scale);
    if (asked_ > 0) {
        const QRectF ghost(xOf(held_), kBudgetBarTop, xOf(needed) - xOf(held_), kBudgetBarHeight);
        painter.fillRect(ghost, hatchBrush(Hatch::BackDiagonal, 6, withAlpha(t.bad, 0.75), dpr));
        QPen pen(t.bad, 1);
        pen.setDashPattern({4, 2});
        painter.setPen(pen);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(ghost.adjusted(0.5, 0.5, -0.5, -0.5));
        const QString words = tr("%1, asked %2").arg(askedName_, bytesText(asked_));
        const double w = textWidth(words, strong);
        // Beside the budget line where one side has the room, else across it.
        const double line = xOf(budget_);
        const double before = line - ghost.left(), after = ghost.right() - line;
        const double left = before >= w + 24 || after < w + 24 ? ghost.left() + 8 : line + 8;
        if (w + 20 >= ghost.width()) { // no room inside: in the line above, before the budget
            const double right = line - 6 - textWidth(tr("Budget %1").arg(bytesText(budget_)), strong) - 16;
            drawText(painter, QRectF(24, 0, std::max(0.0, right - 24), 16), Qt::AlignRight | Qt::AlignVCenter, words,
                     t.bad, plain);
        } else {
            const QRectF box(left, kBudgetBarTop + 9, w + 10, 16);
            painter.fillRect(box, t.panel);
            drawText(painter, box, Qt::AlignCenter, words, t.bad, strong);
        }
    }
    drawText(painter, QRectF(0, 0, 40, 16), Qt::AlignVCenter, QStringLiteral("0"), t.text3, axis);
    const double budgetX = xOf(budget_);
    plumbline(painter, budgetX, 2, kBudgetBarTop + kBudgetBarHeight + 5, t.bad);
    const QString budgetText = tr("Budget %1").arg(bytesText(budget_));
    const double budgetWidth = textWidth(budgetText, strong);
    const double budgetLeft = budgetX - 6 - budgetWidth >= 20 ? budgetX - 6 - budgetWidth : budgetX + 6;
    drawText(painter, QRectF(budgetLeft, 0, budgetWidth + 2, 16), Qt::AlignVCenter, budgetText, t.bad, strong);
    const QString neededText = tr("needed %1").arg(bytesText(needed));
    if (needed > budget_ && width() - budgetX > textWidth(neededText, plain) + 12) {
        drawText(painter, QRectF(0, 0, width() - 1, 16), Qt::AlignRight | Qt::AlignVCenter, neededText, t.text2, plain);
    }
    drawBraces(painter, xOf(held_), budgetX, xOf(needed));
}

} // namespace vitrine::ui
