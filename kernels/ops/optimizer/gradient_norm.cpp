// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/gradient_norm.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

NormParts normParts(std::int64_t n) {
    constexpr std::int64_t kLeast = 8192; ///< elements that are worth a part
    constexpr std::int64_t kMost = 1024;  ///< parts: as many blocks of threads as fill any GPU
    const std::int64_t share = std::max(kLeast, (n + kMost - 1) / kMost);
    const std::int64_t size = (share + 7) / 8 * 8;
    return {std::max<std::int64_t>(1, (n + size - 1) / size), size};
}

void check(const SquaredNorm& op) {
    const OpCheck rule(SquaredNorm::kName);
    rule.present(op.x, "x");
    rule.floating(op.x, "x");
    rule.contiguous(op.x, "x");
    rule.shape(op.out, "out", {1});
    rule.dtype(op.out, "out", DType::F64);
    rule.disjoint(op.out, "out", op.x, "x");
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const SquaredNorm& op, const DeviceTraits&) {
    Cost cost = streamingCost(op.x.bytes() + (op.accumulate ? op.out.bytes() : 0), op.out.bytes(),
                              2 * static_cast<std::uint64_t>(op.x.shape.count()), DType::F32);
    cost.launches = 2;
    return cost;
}

std::uint64_t scratch(const SquaredNorm& op, const DeviceTraits&) {
    return bytesOf(DType::F64, normParts(op.x.shape.count()).count);
}

void check(const ClipScale& op) {
    const OpCheck rule(ClipScale::kName);
    rule.shape(op.squaredNorm, "squaredNorm", {1});
    rule.dtype(op.squaredNorm, "squaredNorm", DType::F64);
    rule.require(op.maxNorm >= 0, "maxNorm", "it is negative");
    rule.shape(op.scale, "scale", {1});
    rule.dtype(op.scale, "scale", DType::F32);
    rule.shape(op.norm, "norm", {1});
    rule.dtype(op.norm, "norm", DType::F32);
    rule.disjoint(op.scale, "scale", op.squaredNorm, "squaredNorm");
    rule.disjoint(op.norm, "norm", op.squaredNorm, "squaredNorm");
    rule.disjoint(op.norm, "norm", op.scale, "scale");
}

Cost cost(const ClipScale& op, const DeviceTraits&) {
    return streamingCost(op.squaredNorm.bytes(), op.scale.bytes() + op.norm.bytes(), 4, DType::F32);
}

std::uint64_t scratch(const ClipScale&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
