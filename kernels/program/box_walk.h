// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Decides questions about all elements of a box of a mask. Interval analysis comes first. While it cannot decide, the
// box is halved. Elements are evaluated only at the end. Each thread needs its own.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/stop.h"
#include "kernels/program/block_mask.h"
#include "kernels/program/interpreter.h"
#include "kernels/program/interval_analysis.h"

namespace vitrine::kernels {

/// Where to cut a length so that the first part is a power of two: halves then lie where ranges of captured tensors do.
inline std::int64_t halfOf(std::int64_t length) {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(length - 1)));
}

/// The elements of blocks [row0, row1) x [column0, column1), cut to the lengths.
inline ProgramBox boxOfBlocks(const BlockMaskShape& shape, std::int64_t batch, std::int64_t head, std::int64_t row0,
                              std::int64_t row1, std::int64_t column0, std::int64_t column1) {
    return {batch,
            batch,
            head,
            head,
            row0 * shape.queryBlock,
            std::min(row1 * shape.queryBlock, shape.queries) - 1,
            column0 * shape.keyBlock,
            std::min(column1 * shape.keyBlock, shape.keys) - 1};
}

/// Whether the evaluator should do `blocks` blocks.
inline bool isWorth(const BlockEvaluator& evaluator, const BlockMaskShape& shape, std::int64_t blocks) {
    const double area = static_cast<double>(std::min(shape.queryBlock, shape.queries)) *
                        static_cast<double>(std::min(shape.keyBlock, shape.keys));
    return blocks > 0 && area <= static_cast<double>(BlockEvaluator::kLargestBlock) &&
           area * static_cast<double>(blocks) >= static_cast<double>(evaluator.worthElements());
}

inline std::int64_t heightOf(const ProgramBox& box) {
    return box.queryHigh - box.queryLow + 1;
}
inline std::int64_t widthOf(const ProgramBox& box) {
    return box.keyHigh - box.keyLow + 1;
}
inline std::int64_t areaOf(const ProgramBox& box) {
    return heightOf(box) * widthOf(box);
}

/// Boxes of one batch entry and one head.
class BoxWalk {
public:
    BoxWalk(const Program& mask, const CaptureBinding& binding, const IntervalAnalysis& analysis)
        : analysis_(analysis.forAnotherThread()), interpreter_(mask, binding) {}

    MaskVerdict verdict(const ProgramBox& box) { return analysis_.mask(box); }
    /// Full when all elements are allowed, Empty when none is, else Undecided. For a box whose verdict is Undecided.
    MaskVerdict classifyUndecided(const ProgramBox& box, const base::StopToken& stop);
    /// Allowed elements.
    std::int64_t count(const ProgramBox& box, const base::StopToken& stop);

private:
    static constexpr unsigned kNothing = 0, kAllowed = 1, kBlocked = 2, kBoth = 3; ///< what a look has seen

    template <class Visit> void halves(const ProgramBox& box, const Visit& visit);
    void look(const ProgramBox& box, unsigned& seen, const base::StopToken& stop);
    void lookAtHalves(const ProgramBox& box, unsigned& seen, const base::StopToken& stop);
    void lookAtRow(const ProgramBox& box, std::int64_t query, std::int64_t keyEnd, unsigned& seen);
    std::int64_t allowedInRow(const ProgramBox& box, std::int64_t query, std::int64_t key, int count);

    IntervalAnalysis analysis_;
    Interpreter<float> interpreter_;
};

} // namespace vitrine::kernels
