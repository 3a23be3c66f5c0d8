// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/adapter_products.h"

#include <algorithm>

namespace vitrine::kernels {

AdapterProducts::AdapterProducts(const Matmul& op, ScratchLayout layout, const DeviceTraits& traits) {
    base = op;
    base.adapter = {};
    const TensorView hidden = layout.take(op.x.dtype, Shape{op.x.shape[0], op.adapter.rank()});
    down.x = op.x;
    const AdapterDropout& dropout = op.adapter.dropout;
    if (dropout.probability > 0) {
        down.x = layout.take(op.x.dtype, op.x.shape);
        drop = {op.x, down.x, dropout.probability, dropout.seed, dropout.stream, dropout.firstRow};
    }
    down.weight = denseWeight(op.adapter.a);
    down.scale = op.adapter.scale;
    down.out = hidden;
    up.x = hidden;
    up.weight = denseWeight(op.adapter.b);
    up.residual = op.out;
    up.out = op.out;
    const std::uint64_t shared = std::max({scratch(base, traits), scratch(down, traits), scratch(up, traits)});
    if (shared > 0) {
        const TensorView piece = layout.takeBytes(shared);
        base.scratch = piece;
        down.scratch = piece;
        up.scratch = piece;
    }
    bytes = layout.bytes();
}

} // namespace vitrine::kernels
