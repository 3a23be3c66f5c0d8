// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two loads side by side: what each held over time by part of the model, and its stages. Pure functions over immutable
// timelines; any thread. Times are since the begin of each load.

#include <QString>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "profiler/analysis/load_stages.h"
#include "profiler/timeline/timeline_rows.h"
#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/stack_model.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// Bottom to top.
enum class LoadShare : std::uint8_t { Untracked, Experts, Embedding, Attention, Mlp, Small, Workspace, Other };
inline constexpr std::size_t kLoadShares = 8;
using PartBytes = std::array<std::uint64_t, kLoadShares>;
QString loadPartName(LoadShare part);
StackLayer loadPartLayer(LoadShare part);

enum class LoadGrouping : std::uint8_t { Category, Part };

/// What is held from `time` on.
struct LoadPoint {
    base::TimeNs time = 0;
    PartBytes parts{};
    base::CategoryBytes categories{};
    std::uint64_t total() const;
};

/// Weights that are stored in one way: "INT4, groups of 128".
struct FormatBytes {
    QString name;
    std::uint64_t bytes = 0;
};

struct LoadSide {
    sessions::RunId run = 0;
    QString title;   ///< "Quantized", "Dequantized", or the run's name
    QString weights; ///< "quantized", "dequantized"; empty: not known
    base::TimeNs length = 0;
    double seconds = 0;                      ///< as the run reports it: the median of its repeats; else the length
    std::vector<LoadPoint> steps;            ///< by time; the last holds on
    std::vector<profiler::LoadStage> stages; ///< times since the load's begin
    std::vector<base::SpanEvent> spans;      ///< the same
    std::vector<QString> spanLanes;          ///< of each span
    PartBytes resident{};
    base::CategoryBytes residentCategories{};
    std::uint64_t peak = 0, transient = 0;
    base::TimeNs peakTime = 0;
    std::optional<std::uint64_t> onDisk, bytesRead, pinned, budget;
    std::vector<FormatBytes> formats; ///< of the packed weights among them, the largest first
    int repeats = 1;
    bool predicted = false; ///< on a virtual clock: times and rates are a plan's

    std::uint64_t residentWeights() const; ///< all parts that are weights
    const LoadPoint& at(base::TimeNs time) const;
    const profiler::LoadStage* stage(const char* name) const;
};

struct LoadPair {
    std::optional<LoadSide> a, b;
    std::optional<LoadSide> c; ///< a third format of other runs than A and B
    bool fromOneRun = false;
};

/// The loads that the view shows for runs A and B: the two variants of a load run with both weights, else the first
/// load of each run. `timelineOf` gives the timeline of a run or null.
struct LoadChoice {
    sessions::RunId a = 0, b = 0;
    std::size_t indexA = 0, indexB = 0;
    bool oneRun = false;
};
LoadChoice chooseLoads(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b);
LoadSide loadSide(const sessions::RunInfo& run, const profiler::RunTimeline& timeline, std::size_t variant);

/// Number of loads that the run's metrics speak of.
std::size_t loadVariants(const sessions::RunInfo& run);

/// Columns of the stack: in each the step with the largest total. Zero before the load begins.
StackModelPtr loadStack(const LoadSide& side, LoadGrouping grouping, const AxisMap& axis, int columns);
/// Total after each column, for lines; nothing before the load.
std::vector<std::optional<double>> loadTotals(const LoadSide& side, const AxisMap& axis, int columns);

} // namespace vitrine::ui
