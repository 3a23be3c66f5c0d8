// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Cells of rows (roles of weights) by columns (layers) in ten colour steps from blue to yellow, the more error the
// brighter. The worst have their number in them, kept ones are hatched. Up to 64 columns are 17 or 15 px wide,
// whichever fits; from 65 on cells are 12 px wide and scroll.

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ui/models/precision/error_scale.h"
#include "ui/widgets/base/scroll_plot.h"

namespace vitrine::ui {

/// The colour of a step of ErrorScale: even in OKLab lightness, from 0.29 to 0.89. The same in both themes.
QColor heatColor(int step);
/// Black or white, whichever is easier to read on a step.
QColor heatInk(int step);

/// Swatches of the ten steps with their values in them; returns the left end.
double drawHeatSwatches(QPainter& painter, double right, double middle, const ErrorScale& scale);

struct HeatMapContent {
    std::vector<QString> rows;
    int columns = 0;
    std::vector<float> values;      ///< row after row; NaN: not known, or not known yet
    std::vector<std::uint8_t> kept; ///< of each value: the tensor stays as it is, its value is what it would be
    ErrorScale scale;
    std::optional<double> numbersFrom;                 ///< values worse than this one stand in their cells
    std::function<QString(int row, int column)> words; ///< readout of a cell

    bool has(int row, int column) const {
        return row >= 0 && row < static_cast<int>(rows.size()) && column >= 0 && column < columns;
    }
    std::size_t at(int row, int column) const {
        return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column);
    }
};

class HeatMap final : public ScrollPlot {
    Q_OBJECT

public:
    using Cell = std::pair<int, int>; ///< row, column

    HeatMap(const QString& title, QWidget* parent);
    /// `content.values` has rows x columns values, and `kept` as many or none.
    void setContent(HeatMapContent content);
    const HeatMapContent& content() const { return content_; }
    void setSelected(std::optional<Cell> cell); ///< framed, and scrolled to
    std::optional<Cell> selected() const { return selected_; }

    std::optional<Cell> cellAt(QPointF position) const;
    QRectF cellRect(Cell cell) const; ///< in the widget
    QString spoken() const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

signals:
    void cellChosen(int row, int column); ///< a click or an arrow key
    void rowChosen(int row);              ///< a click on its name
    void columnChosen(int column);        ///< a click on its number

protected:
    QRectF movingArea(const QSizeF& size) const override;
    QSizeF contentSize(const QSizeF& size) const override;
    void paintPlot(QPainter& painter, const QSizeF& size) const override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    struct Pitch {
        double across = 18, down = 17; ///< of a cell and its gap
    };
    struct Shown { ///< the cells that are in view, as [first, last)
        int firstRow = 0, lastRow = 0, firstColumn = 0, lastColumn = 0;
    };
    Pitch pitch(const QSizeF& size) const;
    Shown shown(const QSizeF& size) const;
    QRectF placeOf(Cell cell, const QSizeF& size) const;
    void paintCells(QPainter& painter, const QSizeF& size) const;
    void paintRowWords(QPainter& painter, const QSizeF& size) const;
    void paintAxis(QPainter& painter, const QSizeF& size) const;
    void paintFrame(QPainter& painter, const QSizeF& size, Cell cell, const QColor& color, double wide) const;

    HeatMapContent content_;
    std::vector<QString> means_, worsts_; ///< of each row
    std::optional<Cell> selected_, hovered_;
};

} // namespace vitrine::ui
