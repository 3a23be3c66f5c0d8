// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Peak memory over context: a line for each set of techniques, the device's line, and where they meet. The bars under
// it share its axis.

#include <QByteArray>
#include <QPointF>
#include <cstdint>
#include <optional>
#include <vector>

#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

class LabelPlaces;

/// A set of techniques as a line.
struct PlanCurve {
    QString name;
    std::vector<QPointF> points; ///< tokens and GiB, by tokens
    double slope = 0;            ///< GiB a token behind the last point
    std::int64_t longest = 0;    ///< 0: not known, or nothing fits
    bool chosen = false;

    double at(double tokens) const; ///< GiB
};

struct PlanPicture {
    std::vector<PlanCurve> curves;
    double device = 0; ///< GiB
    std::int64_t context = 0;
    std::int64_t axisTop = 1; ///< tokens
    double band = 0;          ///< part of the chosen line, on either side
    /// The curve that is shown at the context beside the chosen one: what changes are offered for. Without one it is
    /// curves.size().
    std::size_t beside = 0;
};

/// The axis of tokens that the curves and the bars share, in the pixels of a widget.
struct PlanAxis {
    static constexpr double kLeft = 60, kRight = 12;
    double width = 0;
    std::int64_t top = 1;

    double xOf(double tokens) const { return kLeft + tokens / static_cast<double>(top) * (width - kLeft - kRight); }
    double tokensAt(double x) const { return (x - kLeft) / (width - kLeft - kRight) * static_cast<double>(top); }
};

/// The square with a set's number.
void drawSetNumber(QPainter& painter, QPointF at, std::size_t set, bool chosen);

class PlanCurves final : public PicturePlot {
    Q_OBJECT

public:
    explicit PlanCurves(QWidget* parent);

    void setPicture(PlanPicture picture);
    const PlanPicture& shown() const { return picture_; }
    QImage picture(const QSizeF& size, double dpr) const override;
    QByteArray svg() const; ///< as it is shown, without the pointer
    QString spoken() const override;
    QSize sizeHint() const override { return {600, 276}; }

signals:
    void contextPicked(qint64 tokens);

protected:
    void paintOver(QPainter& painter) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    struct Place;
    void drawGrid(QPainter& painter, const Place& place) const;
    void drawLine(QPainter& painter, const Place& place, std::size_t curve) const;
    void paintPlot(QPainter& painter, const QSizeF& size) const;
    void drawLimits(QPainter& painter, const Place& place, LabelPlaces& places) const;
    void drawName(QPainter& painter, const Place& place, std::size_t curve, LabelPlaces& places) const;
    void drawContext(QPainter& painter, const Place& place, LabelPlaces& places) const;
    void drawPlan(QPainter& painter, const Place& place, LabelPlaces& places) const;
    void drawBeside(QPainter& painter, const Place& place, LabelPlaces& places) const;
    QString wordsAt(double tokens) const;

    PlanPicture picture_;
    std::optional<double> hover_; ///< tokens
};

class LimitBars final : public ItemPlot {
    Q_OBJECT

public:
    explicit LimitBars(QWidget* parent);
    void setPicture(const PlanPicture& picture);
    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {300, sizeHint().height()}; }

protected:
    int itemCount() const override { return static_cast<int>(picture_.curves.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    PlanPicture picture_;
};

} // namespace vitrine::ui
