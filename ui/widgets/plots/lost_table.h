// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows that are cut: line, tokens, what is lost and how much of that would have been trained. A click on a row goes
// there.

#include <vector>

#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

struct LostLine {
    std::int64_t line = 0, tokens = 0, lost = 0, lostTrained = 0;
    bool keepsNothing = false; ///< all that would have been trained is lost
};

class LostTable final : public ItemPlot {
    Q_OBJECT

public:
    static constexpr int kRow = 20, kHead = 24;
    static constexpr std::size_t kMostLines = 7;

    explicit LostTable(const QString& title, QWidget* parent = nullptr);
    /// Shows the first ones where there are more than kMostLines. `place`: what their numbers count, "Line".
    void setLines(std::vector<LostLine> lines, const QString& place);
    std::int64_t lineOf(int item) const { return lines_[static_cast<std::size_t>(item)].line; }

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override { return {300, kHead + kRow * itemCount() + 4}; }

protected:
    int itemCount() const override { return static_cast<int>(std::min(lines_.size(), kMostLines)); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    std::vector<LostLine> lines_;
    QString place_;
};

} // namespace vitrine::ui
