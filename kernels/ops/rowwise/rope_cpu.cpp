// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rope.h"

#include <cmath>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

/// One piece of the half dimension of every head of a token: cos and sin are made once and used for all heads.
template <class C>
void rotatePiece(const Rope& op, std::int64_t token, float position, std::int64_t begin, std::int64_t count) {
    const std::int64_t headDim = op.x.shape[2];
    const float* inverse = op.inverseFrequency.as<const float>() + begin;
    C cosines[kRowPiece];
    C sines[kRowPiece];
    C low[kRowPiece];
    C high[kRowPiece];
    C rotated[kRowPiece];
    for (std::int64_t i = 0; i < count; ++i) {
        const float angle = position * inverse[i];
        cosines[i] = static_cast<C>(std::cos(angle) * op.attentionScale);
        sines[i] = static_cast<C>(std::sin(angle) * op.attentionScale);
    }
    roundFloats(op.x.dtype, cosines, count);
    roundFloats(op.x.dtype, sines, count);
    for (std::int64_t head = 0; head < op.x.shape[1]; ++head) {
        const std::int64_t lowAt = token * op.x.stride0() + head * headDim + begin;
        const std::int64_t highAt = lowAt + headDim / 2;
        loadFloats(op.x.dtype, op.x.data, lowAt, count, low);
        loadFloats(op.x.dtype, op.x.data, highAt, count, high);
        for (std::int64_t i = 0; i < count; ++i) {
            rotated[i] = low[i] * cosines[i] - high[i] * sines[i];
        }
        storeFloats(op.x.dtype, rotated, count, op.x.data, lowAt);
        for (std::int64_t i = 0; i < count; ++i) {
            rotated[i] = high[i] * cosines[i] + low[i] * sines[i];
        }
        storeFloats(op.x.dtype, rotated, count, op.x.data, highAt);
    }
}

} // namespace

void execute(CpuContext& context, const Rope& op) {
    const std::int32_t* positions = op.positions.as<const std::int32_t>();
    forRows(context, op.x.shape[0], op.x.shape[1] * op.x.shape[2] * 2, [&](std::int64_t token) {
        // The rotation by the negative angle is the transposed one.
        const auto position = static_cast<float>(positions[token]) * (op.inverse ? -1.0F : 1.0F);
        forPieces(op.x.shape[2] / 2, [&](std::int64_t begin, std::int64_t count) {
            if (op.x.dtype == DType::F64) {
                rotatePiece<double>(op, token, position, begin, count);
            } else {
                rotatePiece<float>(op, token, position, begin, count);
            }
        });
    });
}

} // namespace vitrine::kernels
