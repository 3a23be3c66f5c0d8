// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a stacked plot shows: layers from bottom to top and, for each column of the plot, the bytes of every layer at
// the instant of the column's largest total. Immutable; built on any thread.

#include <QString>
#include <memory>
#include <vector>

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/axis_map.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// The tone of what a second role has of a category, beside the first one's.
inline constexpr int kSecondRole = -1;

struct StackLayer {
    QString name;
    int category = -1; ///< colours: a category's own, or number `tone` of the row of distinct fills
    int tone = 0;      ///< with a category: 0 its own colour, 1 .. 4 steps of it for its parts, or kSecondRole
    bool idle = false; ///< memory that is held and not in use: hatched, without a fill
};

struct StackColumn {
    bool present = false; ///< false: nothing was recorded there
    std::uint64_t total = 0;
    base::TimeNs time = 0; ///< the instant that it shows
};

struct StackModel {
    std::vector<StackLayer> layers;
    std::vector<StackColumn> columns;
    std::vector<std::uint64_t> values; ///< [column * layers + layer]

    std::uint64_t value(std::size_t column, std::size_t layer) const { return values[column * layers.size() + layer]; }
    std::uint64_t largestTotal() const;
};
using StackModelPtr = std::shared_ptr<const StackModel>;

/// A run of an instant is shown as one of this length: what it held at its end stays to be seen.
inline constexpr base::TimeNs kShortestShown = 1000;

/// One layer for each category, in stacking order, from the pyramid alone. Columns outside the run are absent.
StackModelPtr categoryStack(const profiler::RunTimeline& timeline, const AxisMap& axis, int columns);

/// Layers by layer, op or dtype: the `limit` largest groups and the rest. Goes through the allocations once.
StackModelPtr groupedStack(const profiler::RunTimeline& timeline, const AxisMap& axis, int columns,
                           profiler::GroupBy groupBy, std::size_t limit = 11);

/// "bfloat16" for the number that events carry.
QString dtypeText(std::uint8_t dtype);

} // namespace vitrine::ui
