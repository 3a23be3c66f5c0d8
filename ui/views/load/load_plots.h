// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Load view's plots show of a pair of loads: stages, legend, bars of resident bytes. Pure functions.

#include <vector>

#include "ui/models/load/load_summary.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/bar_plot.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

/// Read (or Fill), Copy, and Expand or Lay out.
std::vector<SpanRow> stageRows(const LoadSide& side, bool withCopy);

enum class LoadContent : std::uint8_t { Categories, Parts, Lines };
std::vector<LegendItem> loadLegend(const LoadPair& pair, LoadContent content);

/// Resident bytes by part, A over B; pair.a must be there.
std::vector<BarGroup> loadBars(const LoadPair& pair, const ThemeTokens& theme);

/// "365 ms"
QString loadTimeText(const LoadSide& side);
/// "365 ms, resident 12.82 GiB, peak 13.40 GiB"
QString sideSummary(const LoadSide& side);

/// A table of the inspector with the heads of another: whose weights A and B are.
FlatTreePtr withHeads(const FlatTreePtr& table, const FlatTreePtr& heads);

} // namespace vitrine::ui
