// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Programs as CUDA C++: one __device__ __forceinline__ function each, over scalars, that tile kernels inline.

#include <span>
#include <string>
#include <string_view>

#include "kernels/program/derivative.h"
#include "kernels/program/interval_analysis.h"
#include "kernels/program/program.h"

namespace vitrine::kernels {

/// The version of the emitted text. It is part of the keys of compiled kernels: raise it when the text changes.
inline constexpr int kEmitterVersion = 3;

struct EmitOptions {
    bool fastTanh = true; ///< tanh.approx.f32 (one instruction, 5e-4 relative); false: by exponentials (2e-7 absolute)
    bool exact = false;   ///< sums and products of floats are rounded each for itself, as on the CPU
    bool reciprocals = false; ///< a float divided by a constant is multiplied by its reciprocal (rounded twice)
};

/// Whether an exact program gives the same values as the CPU: it has no float function that a device rounds
/// differently.
bool isExactOnDevice(const Program& program);

/// `bool NAME(int b, int h, int q_idx, int kv_idx, const Captures& c)` for a mask,
/// `float NAME(float score, int b, int h, int q_idx, int kv_idx, const Captures& c)` for a score.
/// The text calls device/program/program.cuh. `Captures` is abi::ProgramCaptures (kernels/device/abi/program.h): for
/// every capture a pointer; its dtype is part of the text (`dtypes`, in the order of captures), its extents and stride
/// are read from c. Int32 arithmetic is 32-bit.
std::string emitProgram(const Program& program, std::span<const DType> dtypes, std::string_view name,
                        const EmitOptions& options = {});

/// `float NAME(float score, float upstream, int b, ..., const Captures& c)`: d loss / d score; and
/// `void CAPTURENAME(float score, ..., const Captures& c, Sink&& sink)`, which calls `sink(g, offset, value)` for every
/// gradient.captures[g]: `value` belongs to element `offset` (long long) of the contiguous capture.
std::string emitGradient(const ScoreGradient& gradient, std::span<const DType> dtypes, std::string_view name,
                         std::string_view captureName, const EmitOptions& options = {});

/// `void NAME(int b, int h, int q_idx, const Captures& c, int& low, int& high)` of a closed form (interval_analysis.h).
std::string emitIntervalRows(const IntervalRows& rows, std::span<const DType> dtypes, std::string_view name);

/// `vt::span::Span NAME(b, h, q_idx, kv_idx, const Captures& c)` over spans of inputs (device/program/span.cuh): what a
/// mask can be there, 0 and 1. A warp calls it together. Sound as IntervalAnalysis is, not exact.
std::string emitMaskSpan(const Program& mask, std::span<const DType> dtypes, std::string_view name);

/// One node as Python text, with the least parentheses: "q_idx - kv_idx <= window".
std::string printNode(const Program& program, std::int32_t node);
/// The whole program as a Python function that means the same.
std::string printProgram(const Program& program, std::string_view name);

} // namespace vitrine::kernels
