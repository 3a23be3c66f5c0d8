// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How Dropout chooses, the same on every backend.

#include <cmath>
#include <cstdint>

#include "base/philox.h"
#include "kernels/ops/rowwise/dropout.h"

namespace vitrine::kernels {

/// A Philox block serves four neighbouring elements: word e % 4 of block e / 4, with the counter (block, stream). The
/// key's second half keeps these numbers apart from those of sampling and of random weights.
struct DropoutChoice {
    base::PhiloxKey key;
    std::uint32_t threshold; ///< words below it drop their element
    float factor;            ///< of the others
};

inline DropoutChoice choiceOf(const Dropout& op) {
    constexpr std::uint32_t kDropoutKey = 0x64726F70U;
    return {base::philoxKey(op.seed, kDropoutKey),
            static_cast<std::uint32_t>(std::llround(static_cast<double>(op.probability) * 0x1.0p32)),
            1.0F / (1.0F - op.probability)};
}

} // namespace vitrine::kernels
