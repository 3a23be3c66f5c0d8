// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changes scores and which keys a row may see. The closed form: the allowed keys of query position q are the
// interval [lo(q), hi(q)], so no mask data exist. All inference uses it; general programs (a typed IR and a BlockMask)
// join this struct with the attention language.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace vitrine::kernels {

struct AttentionProgram {
    static constexpr std::int64_t kNoWindow = std::numeric_limits<std::int64_t>::max();

    bool causal = true;
    std::int64_t window = kNoWindow; ///< keys q - window + 1 .. q (a window of W holds W keys, itself included)
    float softCap = 0;               ///< 0: none; else score = cap * tanh(score / cap) before the mask

    /// First and last key position that query position q may see.
    std::int64_t lo(std::int64_t q) const {
        return window == kNoWindow ? 0 : std::max<std::int64_t>(0, q - window + 1);
    }
    std::int64_t hi(std::int64_t q) const { return causal ? q : std::numeric_limits<std::int64_t>::max(); }
};

} // namespace vitrine::kernels
