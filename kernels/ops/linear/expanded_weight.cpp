// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/expanded_weight.h"

#include "kernels/core/device_traits.h"
#include "kernels/ops/linear/int4_product.h"
#include "kernels/ops/linear/packed_rows.h"
#include "kernels/ops/linear/vendor_product.h"

namespace vitrine::kernels {

namespace {

/// Up to here the packed weight is read by fewer blocks than it takes to expand it.
constexpr std::int64_t kRowsAsStored = 16;

} // namespace

bool expandsWeight(const Matmul& op, const DeviceTraits& traits) {
    const bool enough = op.x.shape[0] > kRowsAsStored || traits.features.exactRows;
    return op.adapter.empty() && op.weight.quantized() && enough &&
           vendorMultiplies(op.x.dtype, DType::BF16, op.out.dtype);
}

std::uint64_t expandedBytes(const Matmul& op) {
    return bytesOf(DType::BF16, op.weight.shape.count());
}

std::uint64_t expandedScratch(const Matmul& op, const DeviceTraits& traits) {
    const bool asStored =
        (takesPackedRows(op) && !traits.features.exactRows) || (traits.features.int4Tiles && takesInt4Tiles(op));
    return traits.features.kernelScratch && expandsWeight(op, traits) && !asStored ? expandedBytes(op) : 0;
}

void addExpansion(Cost& cost, const Matmul& op, const DeviceTraits& traits) {
    const std::uint64_t bytes = expandedScratch(op, traits);
    cost.bytesRead += bytes;
    cost.bytesWritten += bytes;
    cost.launches += bytes > 0 ? 1 : 0;
}

} // namespace vitrine::kernels
