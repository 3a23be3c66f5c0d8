// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the plots of the Batching view show beside the slots: curves of both runs, the legend, shares of requests done.

#include <array>

#include "ui/models/batching/batch_map.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

class Chart;

struct BatchCurves {
    struct Lane {
        std::vector<Curve> curves;
        double top = 1;
        QString topText, middleText, facts;
    };
    Lane rate, queue, running, pages;
};

/// Of runs A and B, either of which may be null. The top of the rates is that of the axis' range.
BatchCurves batchCurves(const std::array<BatchMapPtr, 2>& maps, const AxisMap& axis);

std::vector<LegendItem> batchLegend(bool requests);

/// Requests done within a time from their arrival.
void showShares(Chart& chart, const BatchPair& pair);

/// "A 3,318 tokens/s, 4 queued, 16 running, 228 pages (12 shared); B ..." at a place of the axis.
QString batchWordsAt(const std::array<BatchMapPtr, 2>& maps, const AxisMap& axis, base::TimeNs place);

} // namespace vitrine::ui
