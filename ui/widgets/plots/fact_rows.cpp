// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/fact_rows.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

constexpr double kFactRowsMargin = 12;
constexpr double kFactRowsBar = 11;
constexpr double kMark = 14;

} // namespace

FactRows::FactRows(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void FactRows::setRows(std::vector<FactRow> rows, std::vector<int> widths, int nameWidth) {
    const bool taller = rows.size() != rows_.size();
    rows_ = std::move(rows);
    widths_ = std::move(widths);
    nameWidth_ = nameWidth;
    if (currentItem() >= itemCount()) {
        forgetCurrentItem();
    }
    if (taller) {
        updateGeometry();
    }
    invalidate();
}

void FactRows::setRowHeight(int pixels) {
    rowHeight_ = pixels;
    updateGeometry();
    invalidate();
}

QSize FactRows::sizeHint() const {
    return {300, rowHeight_ * std::max(1, itemCount())};
}

int FactRows::itemAt(QPointF position) const {
    const int row = static_cast<int>(position.y()) / rowHeight_;
    return position.y() >= 0 && row < itemCount() ? row : -1;
}

QString FactRows::itemText(int item) const {
    const FactRow& row = rows_[static_cast<std::size_t>(item)];
    if (!row.tip.isEmpty()) {
        return row.tip;
    }
    QStringList words{row.name};
    for (const FactValue& value : row.values) {
        if (!value.text.isEmpty()) {
            words << value.text;
        }
    }
    return words.join(QStringLiteral("  "));
}

QRectF FactRows::itemFrame(int item) const {
    return hasFocus() ? QRectF(1.5, item * rowHeight_ + 0.5, width() - 3, rowHeight_ - 1) : QRectF();
}

QString FactRows::asText() const {
    QString text;
    for (const FactRow& row : rows_) {
        QStringList values;
        for (const FactValue& value : row.values) {
            values << value.text;
        }
        const QString mark = !row.mark ? QString() : *row.mark ? QStringLiteral("✓ ") : QStringLiteral("✗ ");
        text += QStringLiteral("- %1%2: %3\n").arg(mark, row.name, values.join(QLatin1Char(' ')).simplified());
    }
    return text;
}

std::vector<double> FactRows::columnWidths() const {
    constexpr double kGap = 8;
    std::vector<double> widths(widths_.begin(), widths_.end());
    for (const FactRow& row : rows_) {
        const QFont font = Theme::instance().font(TypeRole::Table, row.strong);
        for (std::size_t i = 0; i < std::min(widths.size(), row.values.size()); ++i) {
            widths[i] = std::max(widths[i], textWidth(row.values[i].text, font) + kGap);
        }
    }
    return widths;
}

void FactRows::paintRow(QPainter& painter, const FactRow& row, const QRectF& rect, const std::vector<double>& widths,
                        double dpr) const {
    const ThemeTokens& theme = themeTokens();
    const Theme& fonts = Theme::instance();
    double right = rect.right() - kFactRowsMargin;
    for (std::size_t i = row.values.size(); i-- > 0;) {
        const QFont font = fonts.font(TypeRole::Table, row.strong);
        const double width = i < widths.size() ? widths[i] : textWidth(row.values[i].text, font) + 2;
        const QRectF cell(right - width, rect.top(), width, rect.height());
        drawText(painter, cell, Qt::AlignRight | Qt::AlignVCenter, row.values[i].text, textColor(row.values[i].color),
                 font);
        right -= width;
    }
    double left = rect.left() + kFactRowsMargin;
    if (row.mark) {
        painter.drawPixmap(QPointF(left - 1, rect.center().y() - kMark / 2),
                           iconPixmap(*row.mark ? QStringLiteral("check") : QStringLiteral("close"),
                                      static_cast<int>(kMark), *row.mark ? theme.good : theme.bad, dpr));
        left += kMark + 10;
    }
    const double nameEnd = row.share && nameWidth_ > 0 ? rect.left() + kFactRowsMargin + nameWidth_ : right - 6;
    const QFont nameFont = row.mono ? fonts.monoFont(TypeRole::Table) : fonts.font(TypeRole::Table, row.strong);
    drawText(painter, QRectF(left, rect.top(), std::max(0.0, nameEnd - left), rect.height()),
             Qt::AlignLeft | Qt::AlignVCenter, row.name, row.muted ? theme.text2 : theme.text1, nameFont);
    if (!row.share || nameEnd >= right) {
        return;
    }
    const double longest = right - 8 - nameEnd;
    const QRectF bar(nameEnd, rect.center().y() - kFactRowsBar / 2,
                     std::max(2.0, longest * std::clamp(*row.share, 0.0, 1.0)), kFactRowsBar);
    const auto set = [&theme](const char* name) { return theme.sets.at(QLatin1String(name)); };
    painter.fillRect(bar, row.fill == FactFill::Full      ? set("blocks.full")
                          : row.fill == FactFill::Partial ? set("blocks.partial")
                                                          : theme.line2);
    if (row.fill == FactFill::Partial) {
        painter.fillRect(bar, hatchBrush(Hatch::ForwardDiagonal, 6, withAlpha(QColor(0x10, 0x12, 0x15), 0.55), dpr));
    }
}

QImage FactRows::picture(const QSizeF& size, double dpr) const {
    QImage image = plotCanvas(size, dpr, themeTokens().panel);
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing, false);
    const std::vector<double> widths = columnWidths();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        paintRow(painter, rows_[i], QRectF(0, static_cast<double>(i) * rowHeight_, size.width(), rowHeight_), widths,
                 dpr);
    }
    return image;
}

bool FactRows::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const int item = itemAt(help->pos());
        if (item >= 0) {
            QToolTip::showText(help->globalPos(), itemText(item), this);
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return ItemPlot::event(event);
}

} // namespace vitrine::ui
