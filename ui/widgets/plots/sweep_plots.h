// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The two plots of a sweep: the loss or reward over the values of one option with a line for each value of the others,
// and the evaluations of every run over steps with the area in which the rule ends runs. Lines differ by shape, dash
// and name.

#include "ui/models/queue/queue_words.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

/// What both plots share: a picture of a sweep whose items are its runs.
class SweepPlot : public ItemPlot {
    Q_OBJECT

public:
    using ItemPlot::ItemPlot;
    void setSweep(SweepPicture sweep);
    const SweepPicture& sweep() const { return sweep_; }
    std::int64_t numberOf(int item) const;
    void setChosen(std::int64_t number);

protected:
    int itemCount() const override { return static_cast<int>(sweep_.curves.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;
    /// Where a run stands: its point, or its newest one; nothing for a run without a value.
    virtual QPointF pointOf(const SweepCurve& curve, const QSizeF& size) const = 0;
    int bestSeries() const;

    SweepPicture sweep_;
    std::int64_t chosen_ = 0;
};

class SweepValuePlot final : public SweepPlot {
    Q_OBJECT

public:
    explicit SweepValuePlot(QWidget* parent);
    QImage picture(const QSizeF& size, double dpr) const override;

protected:
    QPointF pointOf(const SweepCurve& curve, const QSizeF& size) const override;

private:
    void paintLines(QPainter& painter, const QSizeF& size) const;
    void paintPoint(QPainter& painter, const SweepCurve& curve, const QSizeF& size) const;
    void paintWaiting(QPainter& painter, const QSizeF& size) const;
};

class SweepStepPlot final : public SweepPlot {
    Q_OBJECT

public:
    explicit SweepStepPlot(QWidget* parent);
    QImage picture(const QSizeF& size, double dpr) const override;

protected:
    QPointF pointOf(const SweepCurve& curve, const QSizeF& size) const override;

private:
    QPointF place(double step, double value, const QSizeF& size) const;
    void paintRule(QPainter& painter, const QSizeF& size) const;
    void paintCurve(QPainter& painter, const SweepCurve& curve, const QSizeF& size) const;
};

} // namespace vitrine::ui
