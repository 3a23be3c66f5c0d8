// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One recorded training step: its phases, their layers and parts of layers, the memory of each at its peak, and the
// copies of its offload. Pure function over an immutable timeline; any thread.
//
// The phases follow each other without a gap, from the begin of the step to its end. A step of several micro-batches
// has forward, loss and backward once for each of them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

class RunTimeline;

enum class TrainingPhase : std::uint8_t { Forward, Loss, Backward, Optimizer, Merge, Quantize };
inline constexpr int kTrainingPhaseCount = 6;
/// Whether each micro-batch has it, and not the step as a whole.
bool isOfMicroBatch(TrainingPhase phase);

/// A layer of a phase, or a chunk of the loss. The backward pass of a layer begins with its recompute.
struct StepItem {
    TrainingPhase phase = TrainingPhase::Forward;
    std::int32_t pass = 0;   ///< number of the micro-batch
    std::int32_t index = -1; ///< of the layer or chunk; -1: none
    base::TimeNs begin = 0, end = 0;
    MemoryColumn peak; ///< the largest total in it
};

enum class StepPartKind : std::uint8_t { Recompute, Mlp, AttentionBackward };

/// What the backward pass of a layer does one after the other.
struct StepPart {
    StepPartKind kind = StepPartKind::Recompute;
    std::int32_t layer = -1;
    std::int32_t tiles = 0; ///< of an MLP; 0: not known
    base::TimeNs begin = 0, end = 0;
};

struct StepPhase {
    TrainingPhase kind = TrainingPhase::Forward;
    std::int32_t pass = 0;
    base::TimeNs begin = 0, end = 0;
    std::size_t firstItem = 0, items = 0; ///< of StepAnatomy::items
    MemoryColumn peak;
};

/// The same phase of all micro-batches.
struct PhaseSum {
    TrainingPhase kind = TrainingPhase::Forward;
    base::TimeNs time = 0;
    std::size_t items = 0; ///< of one micro-batch
    MemoryColumn peak;     ///< the highest one
};

/// Tensors of one kind that were alive at an instant.
struct HeldSet {
    std::string name; ///< "layer inputs 0 to 23"
    std::string kind; ///< the same without numbers
    base::MemoryCategory category = base::MemoryCategory::Other;
    std::uint64_t bytes = 0;
    std::uint64_t elsewhere = 0; ///< bytes of this kind at the instant that it is compared with
    std::size_t tensors = 0;
    std::int64_t rows = 0; ///< first dimension of the largest one; 0: not known
};

/// The input of a layer on its way to the host or back.
struct StepCopy {
    bool toHost = false;
    std::int32_t layer = -1;
    base::TimeNs begin = 0, end = 0;
    std::uint64_t bytes = 0;
    base::TimeNs waited = 0; ///< of its time, what the ops waited for
};

struct StepAnatomy {
    std::int32_t step = -1;
    std::int64_t tokens = 0;
    std::int32_t passes = 0; ///< micro-batches
    base::TimeNs begin = 0, end = 0;
    std::vector<StepPhase> phases;
    std::vector<StepItem> items;
    std::vector<StepPart> parts;
    std::vector<StepCopy> copies;
    bool copiesTimed = false;  ///< false: the copies were not recorded; they stand where their memory was made or freed
    std::uint64_t pinned = 0;  ///< host memory that holds the inputs
    MemoryColumn peak;         ///< of the whole step
    std::size_t peakPhase = 0; ///< of `phases`
    std::optional<std::size_t> nextPhase{}; ///< the other kind of phase with the highest peak, if there is one
    std::vector<HeldSet> held;              ///< at the peak, largest first, compared with the next peak

    base::TimeNs length() const { return end - begin; }
    bool empty() const { return phases.empty(); }
    std::vector<PhaseSum> sums() const; ///< in their order in a step
    /// The item or phase at an instant; null outside of all.
    const StepItem* itemAt(base::TimeNs time) const;
    const StepPhase* phaseAt(base::TimeNs time) const;
    /// The set that is most larger at the peak than at the next one, or the largest that is no weight; null: none.
    const HeldSet* cause() const;
    base::TimeNs waited() const; ///< for all copies
};

/// The training step that begins in [begin, end]. Empty where its layers were not recorded.
StepAnatomy stepAnatomy(const RunTimeline& timeline, base::TimeNs begin, base::TimeNs end);

/// What was alive at the largest total in the windows of the first peak, compared with the second. Bytes of a category
/// that no tensor accounts for are left out.
std::vector<HeldSet> heldSets(const RunTimeline& timeline, const MemoryColumn& peak, const MemoryColumn* other);

/// "forward", "loss", "backward", "optimizer"; "merge" of adapters, "quantize" of quantization-aware training.
std::string_view phaseName(TrainingPhase phase);

} // namespace vitrine::profiler
