// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the KV cache's curve is made of: areas of both kinds of layers, the formula, the line without windows, the
// measured dots, and the legend that says so.

#include <vector>

#include "ui/models/kv_cache/kv_limits.h"
#include "ui/models/kv_cache/kv_pool.h"
#include "ui/models/kv_cache/kv_summary.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

/// The two shades of the category: full layers have its colour, sliding ones a darker one with a hatch.
CategoryStyle kvShade(const ThemeTokens& theme, bool sliding);

struct KvCurveWidgets {
    bool predicted = true;
    bool noWindow = true;
};

struct KvCurveChart {
    ChartAxis x, y;
    std::vector<ChartSeries> series;
    std::vector<ChartMark> marks;
    std::vector<ChartNote> notes;
};

/// `facts` must not be empty.
KvCurveChart kvCurveChart(const KvSummary& facts, KvCurveWidgets parts);
/// The first tokens, where the windows fill up: pages by the layout of the cache, tokens kept, and without windows.
KvCurveChart kvLensChart(const KvSummary& facts);
/// Up to where the lens goes; 0: there is nothing to enlarge.
double kvLensEnd(const KvSummary& facts);
/// How far the cache could grow: to the model's limit and to what memory is left. `facts` must have a geometry.
KvCurveChart kvLimitChart(const KvSummary& facts, const KvRoom& room);
/// The same over time, for batches, whose tokens come and go: seconds since the run began.
KvCurveChart kvCurveChart(const KvPool& pool, KvCurveWidgets parts);
/// What the cursor says at such a second.
QString kvText(const KvPool& pool, double seconds);
base::TimeNs kvPoolTime(const KvPool& pool, double seconds);
std::vector<LegendItem> kvLegend(const KvSummary& facts, KvCurveWidgets parts);
/// Some layers keep a window only.
bool kvSlides(const KvSummary& facts);
/// What the cursor says at a number of tokens.
QString kvText(const KvSummary& facts, double tokens);

} // namespace vitrine::ui
