// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How long rows are: bars over lengths in tokens, both axes logarithmic, with the limit of a sequence and the median.
// A click on a bar, Return on the current one, or a drag over several chooses a range of lengths.

#include <optional>
#include <vector>

#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

struct LengthBar {
    std::int64_t from = 1, to = 2; ///< tokens; `to` is not part of it
    std::int64_t rows = 0, tokens = 0;
};

class LengthPlot final : public ItemPlot {
    Q_OBJECT

public:
    explicit LengthPlot(const QString& title, QWidget* parent = nullptr);
    /// `limit` 0: there is none.
    void setBars(std::vector<LengthBar> bars, std::int64_t limit, std::int64_t over, std::int64_t median);

    /// Marks the range of lengths that is chosen; `to` 0: none is.
    void setChosen(std::int64_t from, std::int64_t to);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override { return {300, 154}; }

signals:
    void rangeChosen(qint64 from, qint64 to); ///< tokens; `to` is not part of it

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void paintOver(QPainter& painter) override;
    int itemCount() const override { return static_cast<int>(bars_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    int itemBeside(int item, int key) const override;

private:
    double xOf(double tokens, double width) const;
    /// The bar at or next to a place; REQUIRES bars.
    std::size_t nearestBar(double x) const;
    /// From the bar where the drag began to the one under the pointer.
    LengthBar draggedRange() const;
    double yOf(double rows, double height) const;
    QRectF barRect(std::size_t bar, const QSizeF& size) const;
    void paintAxes(QPainter& painter, const QSizeF& size) const;
    void paintLines(QPainter& painter, const QSizeF& size) const;

    std::vector<LengthBar> bars_;
    std::int64_t limit_ = 0, over_ = 0, median_ = 0;
    std::int64_t chosenFrom_ = 0, chosenTo_ = 0;
    std::optional<std::size_t> dragFrom_; ///< the bar where a drag began
    std::size_t dragTo_ = 0;
    double lowest_ = 0, highest_ = 1; ///< log2 of the axis
    double mostRows_ = 1;             ///< log10
};

} // namespace vitrine::ui
