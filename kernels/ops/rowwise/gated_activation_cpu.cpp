// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"

#include <algorithm>
#include <cstdint>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/rowwise/gated_rows.h"

namespace vitrine::kernels {

namespace {

template <class C> void silu(C* gate, const C* up, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        gate[i] = gate[i] * sigmoid(gate[i]) * up[i];
    }
}

template <class C> void geluTanh(C* gate, const C* up, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        const C g = gate[i];
        gate[i] = g * sigmoid(kGeluTwice<C> * (g + kGeluCube<C> * g * g * g)) * up[i];
    }
}

template <class C> void clampedSwiglu(C* gate, const C* up, std::int64_t count, C alpha, C limit) {
    for (std::int64_t i = 0; i < count; ++i) {
        const C g = std::min(gate[i], limit);
        const C u = std::max(-limit, std::min(up[i], limit));
        gate[i] = (u + C(1)) * (g * sigmoid(alpha * g));
    }
}

template <class C>
void activatePiece(const GatedActivation& op, std::int64_t row, std::int64_t begin, std::int64_t count) {
    C gate[kRowPiece];
    C up[kRowPiece];
    loadGateUp(op.gateUp, op.layout, row, begin, count, gate, up);
    switch (op.activation) {
    case Activation::Silu:
        silu(gate, up, count);
        break;
    case Activation::GeluTanh:
        geluTanh(gate, up, count);
        break;
    case Activation::ClampedSwiglu:
        clampedSwiglu(gate, up, count, static_cast<C>(op.alpha), static_cast<C>(op.limit));
        break;
    }
    storeFloats(op.out.dtype, gate, count, op.out.data, row * op.out.stride0() + begin);
}

} // namespace

void execute(CpuContext& context, const GatedActivation& op) {
    forRows(context, op.out.shape[0], op.out.shape[1] * 8, [&](std::int64_t row) {
        forPieces(op.out.shape[1], [&](std::int64_t begin, std::int64_t count) {
            if (op.gateUp.dtype == DType::F64) {
                activatePiece<double>(op, row, begin, count);
            } else {
                activatePiece<float>(op, row, begin, count);
            }
        });
    });
}

} // namespace vitrine::kernels
