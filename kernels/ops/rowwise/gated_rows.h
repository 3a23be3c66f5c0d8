// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the CPU's gated activation and its gradient share: the sigmoid, and pieces of gate and up.

#include <cmath>
#include <cstdint>

#include "kernels/core/floats.h"
#include "kernels/core/layer_forms.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

inline float exponential(float x) {
    return fastExp(x);
}
inline double exponential(double x) {
    return std::exp(x);
}

template <class C> C sigmoid(C x) {
    return C(1) / (C(1) + exponential(-x));
}

/// Twice the factor of gelu_tanh: tanh(y) = 2 sigmoid(2 y) - 1, so 0.5 (1 + tanh(y)) = sigmoid(2 y).
template <class C> inline constexpr C kGeluTwice = static_cast<C>(2 * 0.7978845608028654); // 2 sqrt(2 / pi)
template <class C> inline constexpr C kGeluCube = static_cast<C>(0.044715);

/// Elements begin .. begin + count - 1 of a row's gates and ups; at most kRowPiece.
template <class C>
void loadGateUp(const TensorView& gateUp, GateLayout layout, std::int64_t row, std::int64_t begin, std::int64_t count,
                C* gate, C* up) {
    const std::int64_t rowAt = row * gateUp.stride0();
    if (layout == GateLayout::Halves) {
        loadFloats(gateUp.dtype, gateUp.data, rowAt + begin, count, gate);
        loadFloats(gateUp.dtype, gateUp.data, rowAt + gateUp.shape[1] / 2 + begin, count, up);
        return;
    }
    C both[2 * kRowPiece];
    loadFloats(gateUp.dtype, gateUp.data, rowAt + 2 * begin, 2 * count, both);
    for (std::int64_t i = 0; i < count; ++i) {
        gate[i] = both[2 * i];
        up[i] = both[2 * i + 1];
    }
}

/// The reverse.
template <class C>
void storeGateUp(const TensorView& gateUp, GateLayout layout, std::int64_t row, std::int64_t begin, std::int64_t count,
                 const C* gate, const C* up) {
    const std::int64_t rowAt = row * gateUp.stride0();
    if (layout == GateLayout::Halves) {
        storeFloats(gateUp.dtype, gate, count, gateUp.data, rowAt + begin);
        storeFloats(gateUp.dtype, up, count, gateUp.data, rowAt + gateUp.shape[1] / 2 + begin);
        return;
    }
    C both[2 * kRowPiece];
    for (std::int64_t i = 0; i < count; ++i) {
        both[2 * i] = gate[i];
        both[2 * i + 1] = up[i];
    }
    storeFloats(gateUp.dtype, both, 2 * count, gateUp.data, rowAt + 2 * begin);
}

} // namespace vitrine::kernels
