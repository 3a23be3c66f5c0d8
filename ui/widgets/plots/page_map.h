// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Pages as cells, group after group. Cells are as large as there is room, from 10 px; where even those do not fit, a
// cell stands for several pages, and the title of its group says so.

#include <functional>
#include <optional>
#include <vector>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

struct PageCell {
    std::optional<double> used; ///< filled from below up to here; nothing: whole
    int style = -1;             ///< of PageMap's styles; -1: that of its group
    std::int32_t number = -1;   ///< in the cell where there is room; -1: none, or its place in a group of one style
    bool shared = false;        ///< in a double frame
    bool marked = false;        ///< belongs to what is chosen
};

struct PageGroup {
    QString title; ///< "full layers, 512 pages of 256 tokens"
    int style = 0; ///< of PageMap's styles
    std::vector<PageCell> cells;
    std::function<QString(std::size_t page)> words; ///< readout of one of the cells
};

class PageMap final : public ItemPlot {
    Q_OBJECT

public:
    PageMap(const QString& title, QWidget* parent);

    /// `styles` makes the fills that groups name, in the theme's colours; `empty` is said when there are no cells.
    void setPages(std::vector<PageGroup> groups, std::function<std::vector<CategoryStyle>(const ThemeTokens&)> styles,
                  const QString& empty);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize minimumSizeHint() const override { return {300, 200}; }
    QSize sizeHint() const override { return {600, 400}; }

    struct Layout {
        double side = 0;       ///< of a cell, gap included
        std::size_t pages = 1; ///< that one cell stands for
        std::size_t columns = 1;
        std::vector<double> tops; ///< of each group's first row of cells
    };
    Layout layoutFor(const QSizeF& size) const;
    /// The first page of an item's cell: its group and its place there.
    struct Place {
        std::size_t group = 0, page = 0;
    };
    std::optional<Place> pageOf(int item) const;
    QRectF cellRect(const Layout& layout, std::size_t group, std::size_t cell) const;

protected:
    bool event(QEvent* event) override;
    int itemCount() const override;
    int itemAt(QPointF position) const override;
    int itemBeside(int item, int key) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    struct CellPlace {
        std::size_t group = 0, cell = 0;
    };
    bool numbersFit(const Layout& layout) const;
    std::size_t cellsOf(const Layout& layout, std::size_t group) const;
    /// Cells are items in the order of the groups.
    std::optional<CellPlace> placeOf(const Layout& layout, int item) const;
    int itemOf(const Layout& layout, CellPlace place) const;

    std::vector<PageGroup> groups_;
    std::function<std::vector<CategoryStyle>(const ThemeTokens&)> styles_;
    QString empty_;
};

} // namespace vitrine::ui
