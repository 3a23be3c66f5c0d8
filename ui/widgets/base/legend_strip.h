// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A row of 24 px that says what the colours and lines of a plot mean, or as many rows as its items need.

#include <QWidget>
#include <functional>
#include <vector>

#include "ui/widgets/base/theme.h"

class QPainter;

namespace vitrine::ui {

struct LegendItem {
    enum class Mark : std::uint8_t { Swatch, Dot, Line, Dashes, BadgeA, BadgeB, BadgeC };
    QString name;
    Mark mark = Mark::Swatch;
    std::function<CategoryStyle(const ThemeTokens&)> style; ///< of a swatch
};

class LegendStrip final : public QWidget {
    Q_OBJECT

public:
    explicit LegendStrip(QWidget* parent);
    /// `facts` stands at the right in text3 where there is room.
    void setItems(std::vector<LegendItem> items, const QString& facts = {});
    const std::vector<LegendItem>& items() const { return items_; }
    /// Items stand in columns and rows, all of them, and `facts` before the first one.
    void setWraps();
    int rows() const;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    double cellWidth() const; ///< of an item with the air behind it, where they wrap
    int columns() const;
    void fit();
    void paintItem(QPainter& painter, const LegendItem& item, QPointF place, double wide) const;
    void paintCells(QPainter& painter) const;

    bool wraps_ = false;
    std::vector<LegendItem> items_;
    QString facts_;
};

} // namespace vitrine::ui
