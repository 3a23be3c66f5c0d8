// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cstdint>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/rowwise/gated_activation.h"
#include "kernels/ops/rowwise/gated_rows.h"
#include "kernels/ops/rowwise/lane_sum.h"

namespace vitrine::kernels {

namespace {

/// A piece of a row: gates and ups become the slopes of out in them.
template <class C> struct GatedPiece {
    C gate[kRowPiece];
    C up[kRowPiece];
    C out[kRowPiece];
};

template <class C> void siluSlopes(GatedPiece<C>& piece, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        const C g = piece.gate[i];
        const C u = piece.up[i];
        const C s = sigmoid(g);
        piece.out[i] = g * s * u;
        piece.gate[i] = u * (s + g * s * (C(1) - s));
        piece.up[i] = g * s;
    }
}

template <class C> void geluTanhSlopes(GatedPiece<C>& piece, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        const C g = piece.gate[i];
        const C u = piece.up[i];
        const C s = sigmoid(kGeluTwice<C> * (g + kGeluCube<C> * g * g * g));
        const C inner = kGeluTwice<C> * (C(1) + 3 * kGeluCube<C> * g * g);
        piece.out[i] = g * s * u;
        piece.gate[i] = u * (s + g * s * (C(1) - s) * inner);
        piece.up[i] = g * s;
    }
}

template <class C> void clampedSwigluSlopes(GatedPiece<C>& piece, std::int64_t count, C alpha, C limit) {
    for (std::int64_t i = 0; i < count; ++i) {
        const C g = std::min(piece.gate[i], limit);
        const C u = std::max(-limit, std::min(piece.up[i], limit));
        const C s = sigmoid(alpha * g);
        const bool gateCut = piece.gate[i] > limit;
        const bool upCut = piece.up[i] > limit || piece.up[i] < -limit;
        piece.out[i] = (u + C(1)) * (g * s);
        piece.gate[i] = gateCut ? C(0) : (u + C(1)) * (s + alpha * g * s * (C(1) - s));
        piece.up[i] = upCut ? C(0) : g * s;
    }
}

template <class C> void makeSlopes(const GatedActivation& op, GatedPiece<C>& piece, std::int64_t count) {
    switch (op.activation) {
    case Activation::Silu:
        siluSlopes(piece, count);
        break;
    case Activation::GeluTanh:
        geluTanhSlopes(piece, count);
        break;
    case Activation::ClampedSwiglu:
        clampedSwigluSlopes(piece, count, static_cast<C>(op.alpha), static_cast<C>(op.limit));
        break;
    }
}

template <class C> void activateRowBack(const GatedActivationBackward& op, std::int64_t row) {
    const GatedActivation& forward = op.forward;
    const C weight = op.rowWeights.empty() ? C(1) : static_cast<C>(op.rowWeights.as<const float>()[row]);
    GatedPiece<C> piece;
    C grad[kRowPiece];
    LaneSum<C> dots;
    forPieces(op.gradOut.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadGateUp(forward.gateUp, forward.layout, row, begin, count, piece.gate, piece.up);
        loadFloats(op.gradOut.dtype, op.gradOut.data, row * op.gradOut.stride0() + begin, count, grad);
        makeSlopes(forward, piece, count);
        dots.add(piece.out, grad, count);
        for (std::int64_t i = 0; i < count; ++i) {
            const C weighted = grad[i] * weight;
            piece.gate[i] *= weighted;
            piece.up[i] *= weighted;
        }
        storeGateUp(op.gradGateUp, forward.layout, row, begin, count, piece.gate, piece.up);
        if (!forward.out.empty()) {
            storeFloats(forward.out.dtype, piece.out, count, forward.out.data, row * forward.out.stride0() + begin);
        }
    });
    if (!op.rowDots.empty()) {
        const C dot = dots.total();
        storeFloats(op.rowDots.dtype, &dot, 1, op.rowDots.data, row);
    }
}

} // namespace

void execute(CpuContext& context, const GatedActivationBackward& op) {
    const bool wide = op.forward.gateUp.dtype == DType::F64 || op.gradOut.dtype == DType::F64;
    forRows(context, op.gradOut.shape[0], op.gradOut.shape[1] * 16, [&](std::int64_t row) {
        if (wide) {
            activateRowBack<double>(op, row);
        } else {
            activateRowBack<float>(op, row);
        }
    });
}

} // namespace vitrine::kernels
