// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load/load_summary.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "profiler/analysis/memory_groups.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;
using base::MemoryCategory;

LoadShare partOf(const profiler::AllocationRow& row, std::string_view name) {
    switch (row.category) {
    case MemoryCategory::Untracked:
        return LoadShare::Untracked;
    case MemoryCategory::Workspace:
        return LoadShare::Workspace;
    case MemoryCategory::Weights:
        break;
    default:
        return LoadShare::Other;
    }
    if (name.ends_with("bias")) {
        return LoadShare::Small;
    }
    const std::string part = profiler::weightPart(name, {});
    return part.starts_with("experts")  ? LoadShare::Experts
           : part.starts_with("embedd") ? LoadShare::Embedding
           : part == "attention"        ? LoadShare::Attention
           : part == "dense MLP"        ? LoadShare::Mlp
                                        : LoadShare::Small;
}

/// One birth or death.
struct Change {
    base::TimeNs time = 0;
    std::int64_t bytes = 0;
    LoadShare part = LoadShare::Other;
    std::size_t category = 0;
};

struct LoadStretch {
    std::uint64_t scope = 0;
    base::TimeNs begin = 0, end = 0;
};

std::vector<LoadStretch> phasesOf(const profiler::RunTimeline& timeline) {
    std::vector<LoadStretch> phases;
    for (const profiler::ScopeRow& row : profiler::scopesOfKind(timeline, base::ScopeKind::Phase)) {
        if (timeline.text(row.name) == "load") {
            phases.push_back({row.id, row.begin, row.end < 0 ? timeline.end() : row.end});
        }
    }
    return phases;
}

/// Blocks that the load made, and what the device held before it. A block that outlives the load holds on: the model
/// that the next load replaces is not freed in this picture.
std::vector<Change> changesOf(const profiler::RunTimeline& timeline, const LoadStretch& phase) {
    std::vector<Change> changes;
    profiler::ScopePlaces places(timeline);
    for (const profiler::AllocationRow& row : timeline.memory().allocations()) {
        if (row.born > phase.end) {
            break;
        }
        if (row.space != base::MemorySpace::Device) {
            continue;
        }
        const bool made =
            row.scope != 0 && (row.scope == phase.scope || places.of(row.scope).phaseScope == phase.scope);
        const bool before = !made && row.category == MemoryCategory::Untracked && row.born <= phase.begin &&
                            (row.freed < 0 || row.freed > phase.end);
        if (!made && !before) {
            continue;
        }
        const auto bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(row.bytes, INT64_MAX));
        const LoadShare part = partOf(row, timeline.text(row.name));
        const auto category = static_cast<std::size_t>(row.category);
        changes.push_back({before ? 0 : std::max<base::TimeNs>(0, row.born - phase.begin), bytes, part, category});
        const bool stays = row.category == MemoryCategory::Weights ? row.freed >= phase.end : row.freed > phase.end;
        if (row.freed >= 0 && !stays) {
            changes.push_back({std::max<base::TimeNs>(0, row.freed - phase.begin), -bytes, part, category});
        }
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
    return changes;
}

void fillSteps(LoadSide& side, const std::vector<Change>& changes) {
    LoadPoint now;
    side.steps.push_back(now);
    for (const Change& change : changes) {
        const auto part = static_cast<std::size_t>(change.part);
        now.time = change.time;
        now.parts[part] += static_cast<std::uint64_t>(change.bytes); // wraps back on deaths
        now.categories[change.category] += static_cast<std::uint64_t>(change.bytes);
        const std::uint64_t total = now.total();
        if (total > side.peak) {
            side.peak = total;
            side.peakTime = now.time;
        }
        side.transient = std::max(side.transient, now.parts[static_cast<std::size_t>(LoadShare::Workspace)]);
        if (side.steps.back().time == now.time && side.steps.back().total() <= total) {
            side.steps.back() = now;
        } else {
            side.steps.push_back(now);
        }
    }
    side.resident = now.parts;
    side.residentCategories = now.categories;
}

/// Packed weights that the load made and left, by their format.
std::vector<FormatBytes> formatsOf(const profiler::RunTimeline& timeline, const LoadStretch& phase) {
    std::map<std::string, std::uint64_t> bytes;
    profiler::ScopePlaces places(timeline);
    for (const profiler::AllocationRow& row : timeline.memory().allocations()) {
        if (row.born > phase.end) {
            break;
        }
        const bool made = row.scope == phase.scope || places.of(row.scope).phaseScope == phase.scope;
        if (row.scope != 0 && made && row.category == MemoryCategory::Weights &&
            row.space == base::MemorySpace::Device && (row.freed < 0 || row.freed >= phase.end)) {
            if (std::string format = profiler::formatText(timeline, row); !format.empty()) {
                bytes[std::move(format)] += row.bytes;
            }
        }
    }
    std::vector<FormatBytes> formats;
    formats.reserve(bytes.size());
    for (const auto& [name, size] : bytes) {
        formats.push_back({QString::fromStdString(name), size});
    }
    std::ranges::stable_sort(formats, std::greater{}, &FormatBytes::bytes);
    return formats;
}

Json variantOf(const Json& metrics, std::size_t index) {
    const Json& variants = engine::rowsOf(metrics, engine::result::kVariants);
    return index < variants.size() && variants[index].is_object() ? variants[index] : Json::object();
}

} // namespace

QString loadPartName(LoadShare part) {
    switch (part) {
    case LoadShare::Untracked:
        return QObject::tr("untracked");
    case LoadShare::Experts:
        return QObject::tr("experts");
    case LoadShare::Embedding:
        return QObject::tr("embedding, lm_head");
    case LoadShare::Attention:
        return QObject::tr("attention");
    case LoadShare::Mlp:
        return QObject::tr("dense MLP");
    case LoadShare::Small:
        return QObject::tr("norms, biases, router");
    case LoadShare::Workspace:
        return QObject::tr("workspace");
    case LoadShare::Other:
        break;
    }
    return QObject::tr("other");
}

StackLayer loadPartLayer(LoadShare part) {
    StackLayer layer;
    layer.name = loadPartName(part);
    layer.category = static_cast<int>(part == LoadShare::Untracked   ? MemoryCategory::Untracked
                                      : part == LoadShare::Workspace ? MemoryCategory::Workspace
                                      : part == LoadShare::Other     ? MemoryCategory::Other
                                                                     : MemoryCategory::Weights);
    layer.tone = part == LoadShare::Embedding   ? 1
                 : part == LoadShare::Attention ? 2
                 : part == LoadShare::Small     ? 3
                 : part == LoadShare::Mlp       ? 4
                                                : 0;
    return layer;
}

std::uint64_t LoadPoint::total() const {
    return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
}

std::uint64_t LoadSide::residentWeights() const {
    return residentCategories[static_cast<std::size_t>(MemoryCategory::Weights)];
}

const LoadPoint& LoadSide::at(base::TimeNs time) const {
    static const LoadPoint kNothing;
    const auto after = std::upper_bound(steps.begin(), steps.end(), time,
                                        [](base::TimeNs t, const LoadPoint& step) { return t < step.time; });
    return after == steps.begin() ? kNothing : *(after - 1);
}

const profiler::LoadStage* LoadSide::stage(const char* name) const {
    const auto found = std::find_if(stages.begin(), stages.end(), [&](const auto& s) { return s.name == name; });
    return found == stages.end() ? nullptr : &*found;
}

std::size_t loadVariants(const sessions::RunInfo& run) {
    return engine::rowsOf(base::parsedObject(run.metricsJson), engine::result::kVariants).size();
}

LoadChoice chooseLoads(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b) {
    const auto find = [&](sessions::RunId id) {
        return std::find_if(runs.begin(), runs.end(), [&](const sessions::RunInfo& run) { return run.id == id; });
    };
    const auto left = find(a), right = find(b);
    if (left != runs.end() && loadVariants(*left) >= 2) {
        return {a, a, 0, 1, true};
    }
    if (left != runs.end() && right != runs.end()) {
        return {a, b, 0, 0, false};
    }
    // Without a pair chosen, the latest load of the session that has both.
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        if (loadVariants(*run) >= 2) {
            return {run->id, run->id, 0, 1, true};
        }
    }
    return {left != runs.end() ? a : 0, 0, 0, 0, false};
}

LoadSide loadSide(const sessions::RunInfo& run, const profiler::RunTimeline& timeline, std::size_t variant) {
    LoadSide side;
    side.run = run.id;
    const Json metrics = base::parsedObject(run.metricsJson);
    const auto experiment = engine::Experiment::read(run.specJson);
    const Json facts = variantOf(metrics, variant);
    const std::vector<LoadStretch> phases = phasesOf(timeline);
    const std::size_t variants = std::max<std::size_t>(1, loadVariants(run));
    side.repeats = static_cast<int>(std::max<std::size_t>(1, phases.size() / variants));
    // Of several repeats the one in the middle of the list stands for the rest.
    const std::size_t index =
        variant * static_cast<std::size_t>(side.repeats) + static_cast<std::size_t>(side.repeats) / 2;
    side.weights = textOf(engine::textOf(facts, engine::result::kWeights));
    if (side.weights.isEmpty()) {
        side.weights = textOf(experiment ? experiment->text("weights") : std::string());
    }
    side.title = side.weights == QLatin1String("quantized")     ? QObject::tr("Quantized")
                 : side.weights == QLatin1String("dequantized") ? QObject::tr("Dequantized")
                                                                : QString::fromStdString(run.name);
    side.budget = runSummary(run).budget;
    side.predicted = runSummary(run).virtualTime || engine::textOf(metrics, engine::result::kTimeBase) == "virtual";
    if (!side.budget) {
        side.budget = engine::countOf(metrics, engine::result::kBudgetBytes);
    }
    side.bytesRead = engine::countOf(facts, engine::result::kBytesRead);
    if (!side.bytesRead) {
        side.bytesRead = engine::countOf(metrics, engine::result::kBytesRead);
    }
    side.onDisk = engine::countOf(facts, engine::result::kDiskBytes);
    side.pinned = engine::countOf(facts, engine::result::kHostPeakBytes);
    if (index >= phases.size()) {
        return side;
    }
    const LoadStretch& phase = phases[index];
    side.length = phase.end - phase.begin;
    side.seconds = engine::numberOf(facts, engine::result::kSeconds)
                       .value_or(engine::numberOf(metrics, engine::result::kLoadSeconds).value_or(side.length * 1e-9));
    if (side.repeats == 1 && side.seconds > 0) {
        // The phase goes on until the model is bound; loaded is what the report says.
        side.length = std::min(side.length, static_cast<base::TimeNs>(std::llround(std::min(side.seconds, 1e9) * 1e9)));
    }
    fillSteps(side, changesOf(timeline, phase));
    side.formats = formatsOf(timeline, phase);
    const profiler::LoadStages stages = profiler::loadStages(timeline, index);
    side.stages = stages.stages;
    for (profiler::LoadStage& stage : side.stages) {
        stage.begin -= phase.begin;
        stage.end -= phase.begin;
    }
    for (const base::SpanEvent& span : timeline.kernels().spans()) {
        if (span.begin >= phase.begin && (span.begin < phase.end || span.end <= phase.end)) {
            base::SpanEvent moved = span;
            moved.begin -= phase.begin;
            moved.end -= phase.begin;
            side.spans.push_back(moved);
            side.spanLanes.push_back(textOf(timeline.text(span.lane.value)));
        }
    }
    return side;
}

StackModelPtr loadStack(const LoadSide& side, LoadGrouping grouping, const AxisMap& axis, int columns) {
    auto model = std::make_shared<StackModel>();
    if (grouping == LoadGrouping::Part) {
        for (std::size_t part = 0; part < kLoadShares; ++part) {
            model->layers.push_back(loadPartLayer(static_cast<LoadShare>(part)));
        }
    } else {
        for (int category = 0; category < base::kCategoryCount; ++category) {
            model->layers.push_back({textOf(base::categoryName(static_cast<MemoryCategory>(category))), category, 0});
        }
    }
    const double perColumn = axis.width() / std::max(1, columns);
    std::size_t next = 0;
    for (int c = 0; c < columns; ++c) {
        const base::TimeNs begin = axis.time(c * perColumn), end = axis.time((c + 1) * perColumn);
        while (next < side.steps.size() && side.steps[next].time <= begin) {
            ++next;
        }
        const LoadPoint* best = next > 0 ? &side.steps[next - 1] : nullptr;
        for (std::size_t i = next; i < side.steps.size() && side.steps[i].time < end; ++i) {
            if (best == nullptr || side.steps[i].total() > best->total()) {
                best = &side.steps[i];
            }
        }
        const LoadPoint nothing;
        const LoadPoint& step = best != nullptr && end > 0 ? *best : nothing;
        model->columns.push_back({best != nullptr, step.total(), std::max(begin, step.time)});
        if (grouping == LoadGrouping::Part) {
            model->values.insert(model->values.end(), step.parts.begin(), step.parts.end());
        } else {
            model->values.insert(model->values.end(), step.categories.begin(), step.categories.end());
        }
    }
    return model;
}

std::vector<std::optional<double>> loadTotals(const LoadSide& side, const AxisMap& axis, int columns) {
    const StackModelPtr model = loadStack(side, LoadGrouping::Category, axis, columns);
    std::vector<std::optional<double>> totals;
    for (const StackColumn& column : model->columns) {
        totals.push_back(column.present ? std::optional(static_cast<double>(column.total)) : std::nullopt);
    }
    return totals;
}

} // namespace vitrine::ui
