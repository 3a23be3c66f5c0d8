// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

float exponential(float x) {
    return fastExp(x);
}
double exponential(double x) {
    return std::exp(x);
}

template <class C> C sigmoid(C x) {
    return C(1) / (C(1) + exponential(-x));
}

template <class C> void silu(C* gate, const C* up, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        gate[i] = gate[i] * sigmoid(gate[i]) * up[i];
    }
}

/// tanh(y) = 2 sigmoid(2 y) - 1, so 0.5 (1 + tanh(y)) = sigmoid(2 y).
template <class C> void geluTanh(C* gate, const C* up, std::int64_t count) {
    const C twice = static_cast<C>(2 * 0.7978845608028654); // 2 sqrt(2 / pi)
    for (std::int64_t i = 0; i < count; ++i) {
        const C g = gate[i];
        gate[i] = g * sigmoid(twice * (g + static_cast<C>(0.044715) * g * g * g)) * up[i];
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
    const std::int64_t rowAt = row * op.gateUp.stride0();
    if (op.layout == GateLayout::Halves) {
        loadFloats(op.gateUp.dtype, op.gateUp.data, rowAt + begin, count, gate);
        loadFloats(op.gateUp.dtype, op.gateUp.data, rowAt + op.out.shape[1] + begin, count, up);
    } else {
        C both[2 * kRowPiece];
        loadFloats(op.gateUp.dtype, op.gateUp.data, rowAt + 2 * begin, 2 * count, both);
        for (std::int64_t i = 0; i < count; ++i) {
            gate[i] = both[2 * i];
            up[i] = both[2 * i + 1];
        }
    }
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
