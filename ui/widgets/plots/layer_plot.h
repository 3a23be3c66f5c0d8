// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One bar for each layer on one scale, with a dashed frame up to what the layer would hold without its window. Rows
// share the height that there is.

#include <functional>
#include <vector>

#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

struct LayerBar {
    int layer = 0;
    double bytes = 0;
    double without = 0; ///< bytes without the window; 0: no frame
    int style = 0;      ///< of LayerPlot's styles
    QString words;      ///< readout: "Layer 3, sliding: 254 KiB, without window 256 MiB"
};

class LayerPlot final : public ItemPlot {
    Q_OBJECT

public:
    LayerPlot(const QString& title, QWidget* parent);

    /// `styles` makes the fills that bars name, in the theme's colours; `axis` is the title of the scale without its
    /// unit.
    void setBars(std::vector<LayerBar> bars, std::function<std::vector<CategoryStyle>(const ThemeTokens&)> styles,
                 const QString& axis);

    QImage picture(const QSizeF& size, double dpr) const override;
    QSize minimumSizeHint() const override;
    QSize sizeHint() const override { return minimumSizeHint().expandedTo({600, 300}); }
    /// Rectangle of a row in a plot of that size, from the gutter to the right end.
    QRectF rowRect(std::size_t row, const QSizeF& size) const;

protected:
    int itemCount() const override { return static_cast<int>(bars_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    double top() const;

    std::vector<LayerBar> bars_;
    std::function<std::vector<CategoryStyle>(const ThemeTokens&)> styles_;
    QString axis_;
};

} // namespace vitrine::ui
