// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An icicle: every node as wide as its time, its children below it, the largest first. A click makes a node as wide as
// the plot; what encloses it stays above it and leads back.

#include "ui/models/kernels/kernel_stats.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

struct FlameItem {
    QRectF rect;
    std::size_t node = 0;
    std::size_t count = 1; ///< > 1: neighbours that are too narrow to draw, from `node` on
};
/// What is drawn of a tree when `zoomed` fills the width.
std::vector<FlameItem> flameItems(const profiler::FlameTree& flame, std::size_t zoomed, const QSizeF& size);

class FlamePlot final : public ItemPlot {
    Q_OBJECT

public:
    FlamePlot(const QString& title, QWidget* parent);

    void setFlame(profiler::FlameTreePtr flame);
    void zoomTo(std::size_t node);
    bool zoomOut(); ///< to what encloses the zoomed node; false: it is the root
    std::size_t zoomed() const { return zoomed_; }

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize minimumSizeHint() const override { return {300, 120}; }

signals:
    void nodeChosen(const QString& name, int depth);

protected:
    int itemCount() const override { return static_cast<int>(items().size()); }
    int itemAt(QPointF position) const override;
    int itemBeside(int item, int key) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    void resizeEvent(QResizeEvent* event) override;

private:
    const std::vector<FlameItem>& items() const;
    profiler::FlameTreePtr flame_;
    std::size_t zoomed_ = 0;
    mutable std::vector<FlameItem> items_;
    mutable QSize itemsFor_;
};

} // namespace vitrine::ui
