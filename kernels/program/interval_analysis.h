// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a program can be over a box of inputs: decides blocks of a mask without looking at their elements, and bounds
// integers for the emitter. Sound, not exact: "undecided" is always allowed.

#include <memory>
#include <optional>

#include "kernels/program/program.h"

namespace vitrine::kernels {

/// Closed intervals.
struct ProgramBox {
    std::int64_t batchLow = 0, batchHigh = 0;
    std::int64_t headLow = 0, headHigh = 0;
    std::int64_t queryLow = 0, queryHigh = 0;
    std::int64_t keyLow = 0, keyHigh = 0;
};

enum class MaskVerdict : std::uint8_t { Empty, Full, Undecided };

/// Captured integer tensors enter by the minimum and maximum of the index range (a table of ranges per tensor, built
/// once here; boundaries where the values change are kept for sorted tensors such as document ids). One thread each.
class IntervalAnalysis {
public:
    IntervalAnalysis(const Program& program, const CaptureBinding& binding);
    ~IntervalAnalysis();
    IntervalAnalysis(IntervalAnalysis&&) noexcept;
    IntervalAnalysis& operator=(IntervalAnalysis&&) noexcept;
    IntervalAnalysis(const IntervalAnalysis&) = delete; // see forAnotherThread
    IntervalAnalysis& operator=(const IntervalAnalysis&) = delete;
    /// For another thread: shares the tables.
    IntervalAnalysis forAnotherThread() const;

    MaskVerdict mask(const ProgramBox& box);

    struct Range {
        double low = 0, high = 0; ///< of the last mask() call; Bool: 0 and 1
    };
    Range range(std::int32_t node) const;

private:
    IntervalAnalysis(const IntervalAnalysis& from, int threadTag);
    struct State;
    std::unique_ptr<State> state_;
};

/// The closed form of a mask: row q allows exactly the keys lo(b, h, q) .. hi(b, h, q) (none when lo > hi), cut to the
/// keys that exist. Found by structure: comparisons that are linear in the key, intersections, unions of half-lines to
/// one side. Both programs have the mask's captures, in its order. Sums of positions and captured numbers are taken not
/// to wrap.
struct IntervalRows {
    Program low;                                      ///< Int64, without Key
    Program high;                                     ///< Int64, without Key
    bool lowUnbounded = false, highUnbounded = false; ///< then `low` is 0, `high` the largest int32
};
/// None when the mask has another shape or the analysis cannot see it.
std::optional<IntervalRows> intervalRows(const Program& mask);
/// An interval that holds every key a row may see, for any mask: that of the parts which have a closed form ("causal"
/// of "causal and document"), at worst all keys. `exact`: the mask allows nothing else, as intervalRows says.
IntervalRows hullRows(const Program& mask, bool& exact);

} // namespace vitrine::kernels
