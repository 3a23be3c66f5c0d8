// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A batch laid along an axis of time or of steps, ready to be asked what each pixel column shows: the costs of an
// answer are those of its columns, not of the steps, slots and requests that they stand for. Immutable; any thread.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "profiler/analysis/slot_holders.h"
#include "ui/models/batching/batch_curve.h"
#include "ui/models/batching/batch_summary.h"
#include "ui/models/common/axis_map.h"

namespace vitrine::ui {

enum class BatchAxis : std::uint8_t { Time, Steps };

/// Neighbouring columns of a slot that show the same.
struct SlotRun {
    int from = 0, to = 0; ///< columns, `to` not included
    base::SlotState state = base::SlotState::Idle;
    std::int32_t request = -1; ///< -1: none, or several that are too short to distinguish
    bool several = false;
};

class BatchMap {
public:
    static std::shared_ptr<const BatchMap> make(BatchSidePtr side, BatchAxis axis);

    const BatchSide& side() const { return *side_; }
    BatchAxis axis() const { return axis_; }
    base::TimeNs length() const { return length_; } ///< of everything, on the axis

    base::TimeNs place(base::TimeNs time) const;   ///< where an instant lies on the axis
    base::TimeNs timeAt(base::TimeNs place) const; ///< and back

    /// What a slot did in neighbouring columns of the axis; columns without anything are left out. A column in which
    /// several things happened shows what took most of it.
    void slotRuns(std::int32_t slot, const AxisColumns& columns, std::vector<SlotRun>& out) const;
    /// Index in side().spans of what the slot did there.
    std::optional<std::size_t> spanAt(std::int32_t slot, base::TimeNs place) const;
    TimeRange spanRange(std::size_t span) const { return {begins_[span], ends_[span]}; }
    /// Spans in which a request was worked on, by slot and begin.
    std::span<const std::size_t> spansOf(std::int32_t request) const;
    /// Of them those that touch a range of the axis, found by bisection: a piece for each slot that has any.
    std::vector<std::span<const std::size_t>> spansOf(std::int32_t request, TimeRange range) const;

    std::span<const RequestPiece> pieces(std::int32_t request) const; ///< at their places

    /// Numbers of the requests that run at a place, ascending; costs are those of the slots.
    std::vector<std::int32_t> runningAt(base::TimeNs place) const;

    /// Tokens a second, of the bins of a grid so wide that about `bins` of them fill the axis' range.
    std::vector<std::optional<double>> rateColumns(const AxisMap& axis, int columns, int bins) const;
    double mostRate(const AxisMap& axis, int bins) const;
    const BatchCurve& queue() const { return queue_; }
    const BatchCurve& running() const { return running_; }
    const BatchCurve& usedPages() const { return used_; }
    const BatchCurve& heldPages() const { return held_; } ///< used or kept for prefixes

private:
    void placeSpans();
    void placePieces();
    void makeCurves();
    double tokensUntil(base::TimeNs place) const;
    void crowd(std::size_t first, std::size_t last, TimeRange piece, SlotRun& out) const;

    BatchSidePtr side_;
    BatchAxis axis_ = BatchAxis::Time;
    base::TimeNs length_ = 0;
    std::vector<base::TimeNs> begins_, ends_; ///< of side().spans
    std::vector<std::array<base::TimeNs, base::kSlotStateCount>>
        before_; ///< length in each state before a span, slot by slot
    std::vector<std::size_t> requestSpans_, requestSpanBegins_;
    std::vector<RequestPiece> pieces_;
    std::vector<base::TimeNs> stepBegins_, stepEnds_; ///< at their places
    std::vector<double> tokensBefore_;
    BatchCurve queue_, running_, used_, held_;
    profiler::SlotHolders holders_;
};
using BatchMapPtr = std::shared_ptr<const BatchMap>;

} // namespace vitrine::ui
