// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The device source of a pair of programs: what kernels/device/flex_attention*.cuh include as kGeneratedHeader. Equal
// programs (and dtypes of their captures) give one source, whatever the captures hold. Made once and kept. Thread-safe.

#include <memory>
#include <vector>

#include "kernels/cuda/jit/kernel_call.h"
#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/program/derivative.h"

namespace vitrine::kernels {

/// How a kernel learns what rows may see: VT_MASK.
enum class FlexMask : std::uint8_t {
    None = 0,
    Blocks = 1,
    Intervals = 2, ///< the closed form
    Elements = 3,  ///< every key between the ends of an interval is asked
};

struct FlexSource {
    GeneratedSource text;
    FlexMask mask = FlexMask::None;
    bool hasScore = false;
    bool perHead = false; ///< the intervals depend on the head
    /// Loads of differentiable captures; the kernels number their gradients in this order. Backward only.
    std::vector<ScoreGradient::CaptureGradient> gradients;
};

/// For the forward pass: blocks when op.blocks is set, else the closed form. Throws Unsupported when the mask has
/// neither.
std::shared_ptr<const FlexSource> forwardSource(const FlexAttention& op);
/// Intervals when the mask has a closed form, else Elements.
std::shared_ptr<const FlexSource> attentionSource(const Attention& op);
/// Only the captures whose gradient is wanted count.
std::shared_ptr<const FlexSource> backwardSource(const FlexAttentionBackward& op);

/// Only `maskMod`, exact (emitter.h): what kernels/device/attention/block_counts.cuh includes.
std::shared_ptr<const FlexSource> countingSource(const BoundProgram& mask);

} // namespace vitrine::kernels
