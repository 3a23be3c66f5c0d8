// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Scores of FlexAttention on the CPU, a row and a stretch of keys at a time. One thread each.

#include <memory>
#include <optional>
#include <vector>

#include "kernels/ops/flex_attention.h"
#include "kernels/program/interpreter.h"
#include "kernels/program/interval_analysis.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kFlexKeys = kInterpreterWidth; ///< keys of one stretch, at multiples of it

enum class FlexAllowed : std::uint8_t { None, Some, All };

/// Which keys a row may see.
class FlexMaskRows {
public:
    FlexMaskRows(const FlexAttention& op, const std::optional<IntervalRows>& closedForm);

    /// Writes 0 or 1 for keys [key, key + count), count <= kFlexKeys.
    FlexAllowed read(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed);
    /// False when no row of [query0, query1) of this head sees a key of [key0, key1).
    bool any(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t query1, std::int64_t key0,
             std::int64_t key1);

private:
    struct Reach {
        std::int64_t low = 0, high = -1;
    };
    Reach reach(const ProgramRow& row);
    FlexAllowed readBlocks(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed);
    void evaluate(const ProgramRow& row, std::int64_t key, std::int64_t end, std::uint8_t* allowed);

    const FlexAttention& op_;
    std::optional<Interpreter<double>> low_, high_;
    std::optional<Interpreter<float>> exact_;
};

/// Whether a run of a BlockMask row touches blocks [begin, end).
bool anyRun(std::span<const BlockRun> runs, std::int64_t begin, std::int64_t end);

} // namespace vitrine::kernels
