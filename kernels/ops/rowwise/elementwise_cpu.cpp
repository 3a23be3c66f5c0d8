// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

/// Rows of dimension 0 that may lie apart, the rest contiguous.
struct Rows {
    std::int64_t count = 1;
    std::int64_t size = 0;
};

Rows rowsOf(const TensorView& tensor) {
    if (tensor.shape.rank() < 2) {
        return {1, tensor.shape.count()};
    }
    const std::int64_t rows = tensor.shape[0];
    return {rows, rows == 0 ? 0 : tensor.shape.count() / rows};
}

std::int64_t strideOf(const TensorView& tensor) {
    return tensor.shape.rank() < 2 ? 0 : tensor.stride0();
}

/// body(row, begin, count) over pieces of all rows, in parallel: long rows are cut as well.
template <class Body> void forAllPieces(CpuContext& context, const TensorView& tensor, const Body& body) {
    const Rows rows = rowsOf(tensor);
    const std::int64_t pieces = (rows.size + kRowPiece - 1) / kRowPiece;
    forRows(context, rows.count * pieces, kRowPiece, [&](std::int64_t index) {
        const std::int64_t begin = index % pieces * kRowPiece;
        body(index / pieces, begin, std::min(kRowPiece, rows.size - begin));
    });
}

template <class C> void addTensors(CpuContext& context, const Add& op) {
    forAllPieces(context, op.out, [&](std::int64_t row, std::int64_t begin, std::int64_t count) {
        C a[kRowPiece];
        C b[kRowPiece];
        loadFloats(op.a.dtype, op.a.data, row * strideOf(op.a) + begin, count, a);
        loadFloats(op.b.dtype, op.b.data, row * strideOf(op.b) + begin, count, b);
        for (std::int64_t i = 0; i < count; ++i) {
            a[i] += b[i];
        }
        storeFloats(op.out.dtype, a, count, op.out.data, row * strideOf(op.out) + begin);
    });
}

template <class C> void capTensor(CpuContext& context, const SoftCap& op) {
    const C cap = static_cast<C>(op.cap);
    forAllPieces(context, op.x, [&](std::int64_t row, std::int64_t begin, std::int64_t count) {
        C x[kRowPiece];
        loadFloats(op.x.dtype, op.x.data, row * strideOf(op.x) + begin, count, x);
        for (std::int64_t i = 0; i < count; ++i) {
            x[i] = cap * std::tanh(x[i] / cap);
        }
        storeFloats(op.x.dtype, x, count, op.x.data, row * strideOf(op.x) + begin);
    });
}

template <class C> void castTensor(CpuContext& context, const Cast& op) {
    forAllPieces(context, op.x, [&](std::int64_t row, std::int64_t begin, std::int64_t count) {
        C x[kRowPiece];
        loadFloats(op.x.dtype, op.x.data, row * strideOf(op.x) + begin, count, x);
        storeFloats(op.out.dtype, x, count, op.out.data, row * strideOf(op.out) + begin);
    });
}

template <class C> void scaleRows(CpuContext& context, const ScaleRows& op) {
    forAllPieces(context, op.out, [&](std::int64_t row, std::int64_t begin, std::int64_t count) {
        const C weight = static_cast<C>(op.weights.as<const float>()[row]);
        C x[kRowPiece];
        loadFloats(op.x.dtype, op.x.data, row * op.x.stride0() + begin, count, x);
        for (std::int64_t i = 0; i < count; ++i) {
            x[i] *= weight;
        }
        storeFloats(op.out.dtype, x, count, op.out.data, row * op.out.stride0() + begin);
    });
}

} // namespace

void execute(CpuContext& context, const Add& op) {
    if (op.out.dtype == DType::F64) {
        addTensors<double>(context, op);
    } else {
        addTensors<float>(context, op);
    }
}

void execute(CpuContext& context, const SoftCap& op) {
    if (op.x.dtype == DType::F64) {
        capTensor<double>(context, op);
    } else {
        capTensor<float>(context, op);
    }
}

void execute(CpuContext& context, const Cast& op) {
    if (op.x.dtype == DType::F64) {
        castTensor<double>(context, op);
    } else {
        castTensor<float>(context, op);
    }
}

void execute(CpuContext& context, const ScaleRows& op) {
    if (op.x.dtype == DType::F64) {
        scaleRows<double>(context, op);
    } else {
        scaleRows<float>(context, op);
    }
}

void execute(CpuContext& context, const SetZero& op) {
    constexpr std::int64_t kPiece = std::int64_t{1} << 18; ///< bytes
    const auto bytes = static_cast<std::int64_t>(op.out.bytes());
    forRows(context, (bytes + kPiece - 1) / kPiece, kPiece, [&](std::int64_t piece) {
        const std::int64_t begin = piece * kPiece;
        std::memset(op.out.as<std::byte>() + begin, 0, static_cast<std::size_t>(std::min(kPiece, bytes - begin)));
    });
}

} // namespace vitrine::kernels
