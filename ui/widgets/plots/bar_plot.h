// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Groups of horizontal bars on one scale, with the value beside each bar and a fact at the right end of each group.

#include <functional>
#include <optional>
#include <vector>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

struct BarRow {
    double value = 0;
    QString text; ///< beside the bar: "A 9.46 GiB"
    CategoryStyle style;
    QChar letter;         ///< A or B: a mark in the run's colour before the bar; null: none
    bool outline = false; ///< a dashed frame instead of a fill
};

struct BarGroup {
    QString name;
    std::vector<BarRow> rows;
    QString fact;        ///< "3.76x"
    bool strong = false; ///< of the fact
};

class BarPlot final : public ItemPlot {
    Q_OBJECT

public:
    static constexpr int kBar = 11, kGap = 3;

    BarPlot(const QString& title, QWidget* parent);
    /// Names have `gutter` pixels at the left, facts 90 at the right under `factHead`. Makes the styles when it paints,
    /// so that they follow the theme.
    void setGroups(std::function<std::vector<BarGroup>(const ThemeTokens&)> make, int gutter,
                   const QString& factHead = {});

    QImage picture(const QSizeF& size, double dpr) const override;
    QString spoken() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {200, sizeHint().height()}; }
    /// Rectangle of a bar in a plot of that width.
    QRectF barRect(std::size_t group, std::size_t row, double width) const;

protected:
    int itemCount() const override { return static_cast<int>(groups_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    double top() const;
    double groupTop(std::size_t group) const;

    std::function<std::vector<BarGroup>(const ThemeTokens&)> make_;
    std::vector<BarGroup> groups_; ///< in the theme of now, for sizes and words
    int gutter_ = 76;
    QString factHead_;
};

} // namespace vitrine::ui
