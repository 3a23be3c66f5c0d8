// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A low plot under a larger one: a value that holds until the next, over the same axis as the larger plot, with bands
// that name stretches of the axis.

#include <QPointF>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ui/widgets/base/plot_widget.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

struct StepStripData {
    /// A stretch with words, in a row of its own above the steps.
    struct Band {
        double from = 0, to = 0;
        QString text;
        bool strong = false; ///< the darker of two fills
    };
    /// A dashed line across the plot.
    struct Limit {
        double value = 0;
        QString text;
    };
    double begin = 0, end = 1;  ///< of the axis
    double top = 1;             ///< of the values
    std::vector<QPointF> steps; ///< each value holds from its x to the next one; the last one to `stop`
    double stop = 0;
    double period = 0; ///< of the axis; steps of one period are hatched only where it is wide enough. 0: each by itself
    std::function<CategoryStyle(const ThemeTokens&)> style;
    std::vector<std::pair<double, QString>> xTicks, yTicks;
    std::vector<Band> bands;
    std::optional<Limit> limit;
    QString text; ///< what a screen reader and the status bar say
};

class StepStrip final : public PicturePlot {
    Q_OBJECT

public:
    static constexpr int kBandRow = 17;

    /// `edges` gives the left and the right end of the axis in the strip's width; without it there is a gutter.
    StepStrip(const QString& title, QWidget* parent, std::function<std::pair<double, double>()> edges = {});

    void setData(StepStripData data);
    const StepStripData& data() const { return data_; }
    QString spoken() const override { return data_.text; }
    QImage picture(const QSizeF& size, double dpr) const override;

protected:
    void enterEvent(QEnterEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    struct Frame;
    Frame frameOf(const QSizeF& size) const;
    void paintBands(QPainter& painter, const Frame& frame) const;
    void paintSteps(QPainter& painter, const Frame& frame, double dpr) const;
    void paintTicks(QPainter& painter, const Frame& frame) const;

    StepStripData data_;
    std::function<std::pair<double, double>()> edges_;
};

} // namespace vitrine::ui
