// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A low-rank addition to a weight (LoRA, Hu et al. 2021): the product with W is followed by one with scale * B A.

#include <cstdint>

#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Elements of an adapter's input that are dropped while it is trained; the fields are those of the op Dropout.
struct AdapterDropout {
    float probability = 0;
    std::uint64_t seed = 0, stream = 0;
    std::int64_t firstRow = 0;
};

/// The weight itself stays as it is stored, dense or packed. Of a stack there is one adapter for each expert. A view
/// owns nothing. Empty: there is no adapter.
struct AdapterView {
    TensorView a;    ///< (rank, in), or (experts, rank, in)
    TensorView b;    ///< (out, rank), or (experts, out, rank)
    float scale = 1; ///< alpha / rank
    AdapterDropout dropout;

    bool empty() const { return a.empty(); }
    std::int64_t rank() const { return a.shape[a.shape.rank() - 2]; }
};

} // namespace vitrine::kernels
