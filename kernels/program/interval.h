// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Interval arithmetic of program nodes: closed ranges that hold every value a node can take, integers in the width of
// their type (what could wrap becomes the whole type), floats widened by their rounding.

#include <cstdint>

#include "kernels/program/program.h"

namespace vitrine::kernels {

struct ValueRange {
    std::int64_t low = 0, high = 0;   ///< Bool (0 and 1) and Int types
    double realLow = 0, realHigh = 0; ///< Float
    bool maybeNan = false;            ///< Float
    bool single() const { return low == high; }
    bool certain(bool value) const { return low == (value ? 1 : 0) && high == low; }
};

ValueRange exactRange(std::int64_t value);
ValueRange integerRange(std::int64_t low, std::int64_t high);
ValueRange wholeRange(ProgramType type);
/// What holds both.
ValueRange hull(ProgramType type, const ValueRange& a, const ValueRange& b);

/// Of an operation with one or two operands of type `from`; `to` is the node's type.
ValueRange rangeOf(ProgramOp op, ProgramType to, ProgramType from, const ValueRange& a, const ValueRange& b);
ValueRange castRange(ProgramType to, ProgramType from, const ValueRange& a);

} // namespace vitrine::kernels
