// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Puts the choices of the routers of all layers into one buffer, so that a step brings them to the host in one copy.

#include "kernels/core/op.h"

namespace vitrine::kernels {

/// out[t, layer, j] = ids[t, j]; the other layers of `out` stay as they are.
struct PackExperts {
    static constexpr std::string_view kName = "PackExperts";
    TensorView ids;         ///< (tokens, k) I32, what RouterTopK gave
    TensorView out;         ///< (tokens, layers, k) U8 or U16, contiguous; every id fits into an element
    std::int64_t layer = 0; ///< among those of `out`
};

void check(const PackExperts& op);
Cost cost(const PackExperts& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const PackExperts& op, const DeviceTraits& traits);
void execute(CpuContext& context, const PackExperts& op);
void execute(CudaContext& context, const PackExperts& op);

} // namespace vitrine::kernels
