// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the CUDA overloads of losses over rows of logits share.

#include <cstdint>

#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// VT_ROW_THREADS: with a small vocabulary fewer threads have several pieces each.
inline std::int64_t threadsOfRow(std::int64_t vocab) {
    constexpr std::int64_t kSmallVocab = 8192;
    return vocab <= kSmallVocab ? 256 : 1024;
}

/// VT_GRADIENT: 0: none; 1: as it is; 2: narrower rows that take the place of the logits.
inline std::int64_t gradientKind(const TensorView& gradLogits, const TensorView& logits) {
    if (gradLogits.empty()) {
        return 0;
    }
    const bool narrower = bitsOf(gradLogits.dtype) < bitsOf(logits.dtype);
    return narrower && gradLogits.data == logits.data ? 2 : 1;
}

/// What kernels multiply by that do not know the temperature: the soft cap's tanh, or the logits.
template <class Op> float scaleOfLogits(const Op& op) {
    return op.softCap > 0 ? op.softCap * op.inverseTemperature : op.inverseTemperature;
}

} // namespace vitrine::kernels
