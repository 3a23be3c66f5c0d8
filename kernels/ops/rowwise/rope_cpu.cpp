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
    const std::int64_t half = op.x.shape[2] / 2;
    const float* inverse = op.inverseFrequency.as<const float>() + begin;
    C cosines[kRowPiece];
    C sines[kRowPiece];
    C low[kRowPiece];
    C high[kRowPiece];
    C pairs[2 * kRowPiece];
    for (std::int64_t i = 0; i < count; ++i) {
        const float angle = position * inverse[i];
        cosines[i] = static_cast<C>(std::cos(angle) * op.attentionScale);
        sines[i] = static_cast<C>(std::sin(angle) * op.attentionScale);
    }
    roundFloats(op.x.dtype, cosines, count);
    roundFloats(op.x.dtype, sines, count);
    for (std::int64_t head = 0; head < op.x.shape[1]; ++head) {
        const std::int64_t row = token * op.x.stride0() + head * op.x.stride(1);
        if (op.interleaved) {
            loadFloats(op.x.dtype, op.x.data, row + 2 * begin, 2 * count, pairs);
            for (std::int64_t i = 0; i < count; ++i) {
                low[i] = pairs[2 * i];
                high[i] = pairs[2 * i + 1];
            }
        } else {
            loadFloats(op.x.dtype, op.x.data, row + begin, count, low);
            loadFloats(op.x.dtype, op.x.data, row + begin + half, count, high);
        }
        for (std::int64_t i = 0; i < count; ++i) {
            const C first = low[i] * cosines[i] - high[i] * sines[i];
            high[i] = high[i] * cosines[i] + low[i] * sines[i];
            low[i] = first;
        }
        if (op.interleaved) {
            for (std::int64_t i = 0; i < count; ++i) {
                pairs[2 * i] = low[i];
                pairs[2 * i + 1] = high[i];
            }
            storeFloats(op.x.dtype, pairs, 2 * count, op.x.data, row + 2 * begin);
        } else {
            storeFloats(op.x.dtype, low, count, op.x.data, row + begin);
            storeFloats(op.x.dtype, high, count, op.x.data, row + begin + half);
        }
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
