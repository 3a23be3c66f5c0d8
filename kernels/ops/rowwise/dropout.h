// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Dropout (Srivastava et al. 2014): elements are dropped by chance, and the rest is made larger to match.

#include <cstdint>

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// out = x / (1 - probability), or 0 with that probability. The choice comes from Philox and depends on the seed, the
/// stream and the element's place only: tiles of rows choose as the whole does, and the gradient is the same op.
struct Dropout {
    static constexpr std::string_view kName = "Dropout";
    TensorView x;          ///< (rows, n); rows may have a stride
    TensorView out;        ///< (rows, n); may be x
    float probability = 0; ///< from 0 to below 1
    std::uint64_t seed = 0;
    std::uint64_t stream = 0;  ///< names the place: layer, product, step
    std::int64_t firstRow = 0; ///< the number of x's first row in the whole
};

void check(const Dropout& op);
Cost cost(const Dropout& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const Dropout& op, const DeviceTraits& traits);
void execute(CpuContext& context, const Dropout& op);
void execute(CudaContext& context, const Dropout& op);

} // namespace vitrine::kernels
