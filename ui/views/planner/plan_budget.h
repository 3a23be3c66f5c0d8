// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a plan holds at its peak against its device: categories, the error band at their end, what is spare, and which
// part grows with the context.

#include <QWidget>
#include <cstdint>
#include <vector>

#include "ui/widgets/plots/budget_bar.h"

namespace vitrine::ui {

struct PlanBudgetPicture {
    std::vector<BudgetShare> parts;
    std::uint64_t reserved = 0; ///< the sum of the parts
    std::uint64_t budget = 0;
    double band = 0;         ///< part of the sum by which it may be wrong, on either side
    std::uint64_t fixed = 0; ///< bytes that do not grow with the context; 0: not known
    double slope = 0;        ///< bytes a token
};

class PlanBudget final : public QWidget {
    Q_OBJECT

public:
    explicit PlanBudget(QWidget* parent);

    void setPicture(PlanBudgetPicture picture);
    /// Without braces it is lower.
    void setBraces(bool on);
    QString spoken() const { return spoken_; }
    QSize sizeHint() const override;

signals:
    void readoutChanged(const QString& text); ///< exact bytes of the part under the pointer

protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;

private:
    double scale() const; ///< bytes of the whole width
    double xOf(double bytes) const;
    double drawDevice(QPainter& painter) const; ///< where its words begin
    void drawSpare(QPainter& painter) const;
    void drawBand(QPainter& painter, double limit) const;
    void drawBraces(QPainter& painter) const;

    PlanBudgetPicture picture_;
    QString spoken_;
    bool braces_ = true;
};

} // namespace vitrine::ui
