// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/step_anatomy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "profiler/analysis/memory_groups.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/analysis/step_copies.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {

using base::TimeNs;

namespace {

/// What the names of a step's layer scopes stand for. A recompute begins the backward pass of its layer.
std::optional<TrainingPhase> phaseOf(std::string_view scope) {
    static constexpr std::array<std::pair<std::string_view, TrainingPhase>, 7> kScopes{
        {{"merge", TrainingPhase::Merge},
         {"quantize", TrainingPhase::Quantize},
         {"forward layer", TrainingPhase::Forward},
         {"loss chunk", TrainingPhase::Loss},
         {"recompute", TrainingPhase::Backward},
         {"backward layer", TrainingPhase::Backward},
         {"optimizer", TrainingPhase::Optimizer}}};
    const auto found = std::ranges::find(kScopes, scope, [](const auto& pair) { return pair.first; });
    return found == kScopes.end() ? std::nullopt : std::optional(found->second);
}

MemoryColumn peakIn(const RunTimeline& timeline, TimeNs begin, TimeNs end) {
    return timeline.memory().peak(begin, std::max(end, begin + 1));
}

class Anatomist {
public:
    Anatomist(const RunTimeline& timeline, const ScopeRow& step) : timeline_(timeline) {
        out_.step = step.index;
        out_.tokens = step.tokens;
        out_.begin = step.begin;
        out_.end = scopeEnd(timeline, step);
        for (const ScopeRow& layer :
             childScopes(timeline, step.id, base::ScopeKind::Layer, step.begin, std::max(step.begin, out_.end))) {
            take(layer);
        }
    }

    StepAnatomy finish() {
        if (out_.items.empty()) {
            return {};
        }
        closePhases();
        out_.passes = pass_ + 1;
        addParts();
        addPeaks();
        addCopies(timeline_, out_);
        return std::move(out_);
    }

private:
    void take(const ScopeRow& layer) {
        const std::string_view name = timeline_.text(layer.name);
        const auto kind = phaseOf(name);
        if (!kind) {
            return;
        }
        const TimeNs end = scopeEnd(timeline_, layer);
        if (name == "recompute") {
            out_.parts.push_back({StepPartKind::Recompute, layer.index, 0, layer.begin, end});
        } else if (name == "backward layer") {
            backwards_.push_back(layer);
        }
        if (out_.phases.empty() || out_.phases.back().kind != *kind) {
            beginPhase(*kind, layer.begin);
        }
        StepItem* last = out_.phases.back().items > 0 ? &out_.items.back() : nullptr;
        if (last != nullptr && name == "backward layer" && last->index == layer.index) {
            last->end = end; // it was recomputed before
            return;
        }
        out_.items.push_back({*kind, pass_, layer.index, layer.begin, end, {}});
        ++out_.phases.back().items;
    }

    void beginPhase(TrainingPhase kind, TimeNs at) {
        if (kind == TrainingPhase::Forward && seenBackward_) {
            ++pass_;
        }
        seenBackward_ = kind == TrainingPhase::Backward || (seenBackward_ && kind != TrainingPhase::Forward);
        StepPhase phase;
        phase.kind = kind;
        phase.pass = isOfMicroBatch(kind) ? pass_ : 0;
        phase.begin = out_.phases.empty() ? out_.begin : at;
        phase.firstItem = out_.items.size();
        out_.phases.push_back(phase);
    }

    void closePhases() {
        for (std::size_t i = 0; i < out_.phases.size(); ++i) {
            StepPhase& phase = out_.phases[i];
            phase.end = i + 1 < out_.phases.size() ? out_.phases[i + 1].begin : out_.end;
            phase.peak = peakIn(timeline_, phase.begin, phase.end);
        }
        for (StepItem& item : out_.items) {
            item.peak = peakIn(timeline_, item.begin, item.end);
        }
    }

    /// The backward pass of an attention begins with the gradient of its heads, that of each tile of an MLP with the
    /// gradient of the tile's normed input.
    void addParts() {
        const auto rows = timeline_.memory().allocations();
        std::size_t next = firstBornFrom(timeline_, out_.begin);
        for (const ScopeRow& layer : backwards_) {
            const TimeNs end = scopeEnd(timeline_, layer);
            StepPart mlp{StepPartKind::Mlp, layer.index, 0, layer.begin, end};
            for (; next < rows.size(); ++next) {
                const AllocationRow row = rows[next];
                if (row.born > end) {
                    break;
                }
                if (row.born < layer.begin || row.category != base::MemoryCategory::Gradients) {
                    continue;
                }
                const std::string_view name = timeline_.text(row.name);
                mlp.tiles += name == "mlp.normed.gradient" ? 1 : 0;
                mlp.end = name == "attention.gradient" ? row.born : mlp.end;
            }
            if (mlp.end > mlp.begin) {
                out_.parts.push_back(mlp);
            }
            if (mlp.end < end) {
                out_.parts.push_back({StepPartKind::AttentionBackward, layer.index, 0, mlp.end, end});
            }
        }
        std::ranges::stable_sort(out_.parts, {}, &StepPart::begin);
    }

    void addPeaks() {
        out_.peak = peakIn(timeline_, out_.begin, out_.end);
        for (std::size_t i = 0; i < out_.phases.size(); ++i) {
            if (out_.phases[i].peak.maxTotal > out_.phases[out_.peakPhase].peak.maxTotal) {
                out_.peakPhase = i;
            }
        }
        const TrainingPhase kind = out_.phases[out_.peakPhase].kind;
        for (std::size_t i = 0; i < out_.phases.size(); ++i) {
            const bool higher =
                !out_.nextPhase || out_.phases[i].peak.maxTotal > out_.phases[*out_.nextPhase].peak.maxTotal;
            if (out_.phases[i].kind != kind && higher) {
                out_.nextPhase = i;
            }
        }
        if (out_.peak.maxTotal > 0) {
            out_.held = heldSets(timeline_, out_.peak, out_.nextPhase ? &out_.phases[*out_.nextPhase].peak : nullptr);
        }
    }

    const RunTimeline& timeline_;
    StepAnatomy out_;
    std::vector<ScopeRow> backwards_;
    std::int32_t pass_ = 0;
    bool seenBackward_ = false;
};

/// How many events came before the state with the largest total: several may share its instant.
std::uint64_t eventOf(const RunTimeline& timeline, const MemoryColumn& peak) {
    const std::uint64_t last = timeline.memory().eventsBefore(peak.maxTime + 1);
    for (std::uint64_t count = timeline.memory().eventsBefore(peak.maxTime); count <= last; ++count) {
        if (totalBytes(timeline.memory().atEvent(count)) == peak.maxTotal) {
            return count;
        }
    }
    return last;
}

/// The parts of all categories; the logits and their gradient are one.
std::vector<HeldSet> setsAt(const RunTimeline& timeline, const MemoryColumn& peak) {
    std::vector<HeldSet> out;
    for (const MemoryGroup& group : groupAliveAtEvent(timeline, eventOf(timeline, peak), GroupBy::Category).children) {
        HeldSet whole{group.name, group.kind, group.most, group.bytes, 0, group.blocks, 0};
        for (const MemoryGroup& part : group.children) {
            HeldSet one{part.name, part.kind, group.most, part.bytes, 0, part.blocks, 0};
            if (!part.rows.empty()) {
                const AllocationRow row = timeline.memory().allocations()[part.rows.front()];
                one.rows = row.dimensions > 0 ? row.shape[0] : 0;
            }
            whole.rows = std::max(whole.rows, one.rows);
            if (group.most != base::MemoryCategory::Logits) {
                out.push_back(std::move(one));
            }
        }
        if (group.most == base::MemoryCategory::Logits) {
            out.push_back(std::move(whole));
        }
    }
    return out;
}

} // namespace

std::vector<HeldSet> heldSets(const RunTimeline& timeline, const MemoryColumn& peak, const MemoryColumn* other) {
    std::vector<HeldSet> out = setsAt(timeline, peak);
    if (other != nullptr && other->maxTotal > 0) {
        std::map<std::pair<base::MemoryCategory, std::string>, std::uint64_t> there;
        for (const HeldSet& set : setsAt(timeline, *other)) {
            there[{set.category, set.kind}] += set.bytes;
        }
        for (HeldSet& set : out) {
            if (const auto found = there.find({set.category, set.kind}); found != there.end()) {
                set.elsewhere = found->second;
            }
        }
    }
    std::ranges::stable_sort(out, std::greater(), &HeldSet::bytes);
    return out;
}

bool isOfMicroBatch(TrainingPhase phase) {
    return phase == TrainingPhase::Forward || phase == TrainingPhase::Loss || phase == TrainingPhase::Backward;
}

std::string_view phaseName(TrainingPhase phase) {
    static constexpr std::array<std::string_view, kTrainingPhaseCount> kNames = {"forward",   "loss",  "backward",
                                                                                 "optimizer", "merge", "quantize"};
    return kNames[static_cast<std::size_t>(phase)];
}

std::vector<PhaseSum> StepAnatomy::sums() const {
    std::vector<PhaseSum> out;
    for (int i = 0; i < kTrainingPhaseCount; ++i) {
        PhaseSum sum;
        sum.kind = static_cast<TrainingPhase>(i);
        bool found = false;
        for (const StepPhase& phase : phases) {
            if (phase.kind == sum.kind) {
                found = true;
                sum.time += phase.end - phase.begin;
                sum.items = std::max(sum.items, phase.items);
                sum.peak = phase.peak.maxTotal > sum.peak.maxTotal ? phase.peak : sum.peak;
            }
        }
        if (found) {
            out.push_back(sum);
        }
    }
    return out;
}

const StepItem* StepAnatomy::itemAt(TimeNs time) const {
    const auto next = std::ranges::upper_bound(items, time, {}, &StepItem::begin);
    return next == items.begin() || time > (next - 1)->end ? nullptr : &*(next - 1);
}

const StepPhase* StepAnatomy::phaseAt(TimeNs time) const {
    const auto next = std::ranges::upper_bound(phases, time, {}, &StepPhase::begin);
    return next == phases.begin() || time > end ? nullptr : &*(next - 1);
}

const HeldSet* StepAnatomy::cause() const {
    const HeldSet* best = nullptr;
    std::uint64_t most = 0;
    for (const HeldSet& set : held) {
        const std::uint64_t more = set.bytes > set.elsewhere ? set.bytes - set.elsewhere : 0;
        if (more > most) {
            most = more;
            best = &set;
        }
    }
    if (best != nullptr) {
        return best;
    }
    const auto other =
        std::ranges::find_if(held, [](const HeldSet& set) { return set.category != base::MemoryCategory::Weights; });
    return other != held.end() ? &*other : held.empty() ? nullptr : &held.front();
}

TimeNs StepAnatomy::waited() const {
    TimeNs sum = 0;
    for (const StepCopy& copy : copies) {
        sum += copy.waited;
    }
    return sum;
}

StepAnatomy stepAnatomy(const RunTimeline& timeline, TimeNs begin, TimeNs end) {
    const auto scopes = timeline.scopes().all();
    for (std::size_t i = scopesUpTo(timeline, begin - 1); i < scopes.size(); ++i) {
        const ScopeRow row = scopes[i];
        if (row.begin > end) {
            break;
        }
        if (row.kind == base::ScopeKind::Step && timeline.text(row.name) == "train") {
            return Anatomist(timeline, row).finish();
        }
    }
    return {};
}

} // namespace vitrine::profiler
