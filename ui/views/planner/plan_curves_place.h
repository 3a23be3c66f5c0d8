// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the values of PlanCurves lie in its pixels, for the files that paint it.

#include <QRectF>
#include <QSizeF>
#include <algorithm>
#include <cmath>
#include <vector>

#include "ui/views/planner/plan_curves.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

struct PlanCurves::Place {
    static constexpr double kTopAir = 16, kAxisHeight = 20;
    PlanAxis x;
    double top = kTopAir, bottom = 0, valueTop = 1;

    Place(const PlanPicture& picture, const QSizeF& size)
        : x{size.width(), picture.axisTop}, bottom(size.height() - kAxisHeight) {
        const std::vector<double> ticks = roundTicks(std::max(picture.device, 1e-6), 5);
        const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1;
        valueTop = (std::floor(picture.device / step) + 1) * step; // one step above the device
        valueTop = valueTop < picture.device * 1.05 ? valueTop + step : valueTop;
    }
    double yOf(double gib) const { return bottom - gib / valueTop * (bottom - top); }
    QRectF plot() const { return {PlanAxis::kLeft, top, x.width - PlanAxis::kLeft - PlanAxis::kRight, bottom - top}; }
};

} // namespace vitrine::ui
