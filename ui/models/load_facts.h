// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two loads side by side: what each held over time by part of the model, its stages, and what is known of the runs that
// used the loaded weights. Pure functions over immutable timelines; any thread. Times are since the begin of each load.

#include <QString>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "profiler/analysis/load_stages.h"
#include "profiler/memory_timeline.h"
#include "sessions/session_file.h"
#include "ui/models/flat_tree.h"
#include "ui/models/stack_model.h"

namespace vitrine::ui {

/// Bottom to top.
enum class LoadPart : std::uint8_t { Untracked, Experts, Embedding, Attention, Mlp, Small, Workspace, Other };
inline constexpr std::size_t kLoadParts = 8;
using PartBytes = std::array<std::uint64_t, kLoadParts>;
QString loadPartName(LoadPart part);
StackLayer loadPartLayer(LoadPart part);

enum class LoadGrouping : std::uint8_t { Category, Part };

/// What is held from `time` on.
struct LoadStep {
    base::TimeNs time = 0;
    PartBytes parts{};
    base::CategoryBytes categories{};
    std::uint64_t total() const;
};

struct LoadSide {
    sessions::RunId run = 0;
    QString title;   ///< "Quantized", "Dequantized", or the run's name
    QString weights; ///< "quantized", "dequantized"; empty: not known
    base::TimeNs length = 0;
    double seconds = 0;                      ///< as the run reports it: the median of its repeats; else the length
    std::vector<LoadStep> steps;             ///< by time; the last holds on
    std::vector<profiler::LoadStage> stages; ///< times since the load's begin
    std::vector<base::SpanEvent> spans;      ///< the same
    std::vector<QString> spanLanes;          ///< of each span
    PartBytes resident{};
    base::CategoryBytes residentCategories{};
    std::uint64_t peak = 0, transient = 0;
    base::TimeNs peakTime = 0;
    std::optional<std::uint64_t> bytesRead, pinned, budget;
    int repeats = 1;

    std::uint64_t residentWeights() const; ///< all parts that are weights
    const LoadStep& at(base::TimeNs time) const;
    const profiler::LoadStage* stage(const char* name) const;
};

struct LoadPair {
    std::optional<LoadSide> a, b;
    bool fromOneRun = false;
};

/// The loads that the view shows for runs A and B: the two variants of a load run with both weights, else the first load of
/// each run. `timelineOf` gives the timeline of a run or null.
struct LoadChoice {
    sessions::RunId a = 0, b = 0;
    std::size_t indexA = 0, indexB = 0;
    bool oneRun = false;
};
LoadChoice chooseLoads(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b);
LoadSide loadSide(const sessions::RunInfo& run, const profiler::MemoryTimeline& timeline, std::size_t variant);

/// Number of loads that the run's metrics speak of.
std::size_t loadVariants(const sessions::RunInfo& run);

/// Columns of the stack: in each the step with the largest total. Zero before the load begins.
StackModelPtr loadStack(const LoadSide& side, LoadGrouping grouping, const AxisMap& axis, int columns);
/// Total after each column, for lines; nothing before the load.
std::vector<std::optional<double>> loadTotals(const LoadSide& side, const AxisMap& axis, int columns);

/// What runs of the same model say about decoding and prefill after each load.
struct AfterLoad {
    std::optional<double> decode, decode16, prefill, context; ///< tokens/s, with batch 16, tokens/s, tokens
    std::vector<std::int64_t> ids;                            ///< of a greedy run
    std::string prompt;                                       ///< to tell whether two runs had the same one
    std::int64_t promptTokens = 0;
};
AfterLoad afterLoad(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& load, const QString& weights);

/// "3.04x" and the sentence below it.
struct LoadWords {
    QString number, sentence, cost;
};
LoadWords loadWords(const LoadPair& pair, const AfterLoad& a, const AfterLoad& b);

/// Name, A, B, A to B: the inspector's tables. Null where there is no row.
FlatTreePtr loadTable(const LoadPair& pair);
FlatTreePtr loadMemoryTable(const LoadPair& pair);
FlatTreePtr afterLoadTable(const AfterLoad& a, const AfterLoad& b);
FlatTreePtr agreementTable(const AfterLoad& a, const AfterLoad& b);
/// The twin of the pictures: part or stage, A, B, A to B.
FlatTreePtr loadTwin(const LoadPair& pair);

/// "▼ 1.53x": A against B; -1 in `better` when A is better, 0 equal, 1 worse. `lowerIsBetter` nothing: unknown direction.
FlatCell ratioCell(std::optional<double> a, std::optional<double> b, std::optional<bool> lowerIsBetter,
                   double noise = 0.0005);

} // namespace vitrine::ui
