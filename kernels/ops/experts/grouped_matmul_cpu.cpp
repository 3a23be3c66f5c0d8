// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/grouped_matmul.h"

#include <algorithm>
#include <utility>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/experts/grouped_products.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

namespace {

struct RowRange {
    std::int64_t begin = 0, end = 0;
};

RowRange rowsOf(const TensorView& starts, std::int64_t expert) {
    const std::int32_t* at = starts.as<const std::int32_t>() + expert;
    return {at[0], at[1]};
}

/// product(expert) gives the product of an expert, whose tiles are shared out over the pool.
template <class ProductOf>
void multiplyGroups(CpuContext& context, std::int64_t experts, std::int64_t outputs, bool wide,
                    const ProductOf& productOf) {
    const SimdLevel simd = context.simd();
    const std::int64_t tiles = (outputs + kTileOutputs - 1) / kTileOutputs;
    context.pool().parallelFor(experts * tiles, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t index = begin; index < end; ++index) {
            const Product product = productOf(index / tiles);
            const std::int64_t out = index % tiles * kTileOutputs;
            const std::int64_t outCount = std::min(kTileOutputs, outputs - out);
            for (std::int64_t row = 0; row < product.rows; row += kTileRows) {
                const std::int64_t rowCount = std::min(kTileRows, product.rows - row);
                if (wide) {
                    multiplyDouble(product, row, rowCount, out, outCount);
                } else {
                    multiplyTile(simd, product, row, rowCount, out, outCount);
                }
            }
        }
    });
}

template <class C> void addWeightedRows(const GroupedBiasGradient& op, std::int64_t expert) {
    const auto [first, last] = rowsOf(op.starts, expert);
    const std::int64_t n = op.gradOut.shape[1];
    const float* weights = op.weights.as<const float>();
    forPieces(n, [&](std::int64_t begin, std::int64_t count) {
        C sums[kRowPiece];
        C values[kRowPiece];
        loadFloats(op.gradBias.dtype, op.gradBias.data, expert * n + begin, count, sums);
        for (std::int64_t row = first; row < last; ++row) {
            loadFloats(op.gradOut.dtype, op.gradOut.data, row * op.gradOut.stride0() + begin, count, values);
            const C weight = weights == nullptr ? C(1) : static_cast<C>(weights[row]);
            for (std::int64_t i = 0; i < count; ++i) {
                sums[i] += weight * values[i];
            }
        }
        storeFloats(op.gradBias.dtype, sums, count, op.gradBias.data, expert * n + begin);
    });
}

template <class C> void addDot(const GroupedDots& op, std::int64_t row, std::int64_t expert) {
    C sum = 0;
    loadFloats(op.out.dtype, op.out.data, row, 1, &sum);
    forPieces(op.x.shape[1], [&](std::int64_t begin, std::int64_t count) {
        C x[kRowPiece];
        C vector[kRowPiece];
        loadFloats(op.x.dtype, op.x.data, row * op.x.stride0() + begin, count, x);
        loadFloats(op.vectors.dtype, op.vectors.data, expert * op.vectors.stride0() + begin, count, vector);
        for (std::int64_t i = 0; i < count; ++i) {
            sum += x[i] * vector[i];
        }
    });
    storeFloats(op.out.dtype, &sum, 1, op.out.data, row);
}

} // namespace

void execute(CpuContext& context, const GroupedMatmul& op) {
    if (!op.linear.adapter.empty()) {
        GroupedAdapterProducts(op, ScratchLayout(op.scratch.data), DeviceTraits{})
            .forEach([&](const GroupedMatmul& part) { execute(context, part); });
        return;
    }
    const WeightView& weight = op.linear.weight;
    multiplyGroups(context, weight.experts(), weight.outFeatures(), op.x.dtype == DType::F64, [&](std::int64_t expert) {
        const auto [begin, end] = rowsOf(op.starts, expert);
        Product product;
        product.matrix = matrixOf(weight, expert);
        product.x = sliceRows(op.x, begin, end);
        product.out = sliceRows(op.out, begin, end);
        product.residual = op.accumulate ? product.out : TensorView{};
        product.bias = op.linear.bias.empty() ? TensorView{} : sliceRows(op.linear.bias, expert, expert + 1);
        product.scale = op.scale;
        product.rows = end - begin;
        return product;
    });
}

void execute(CpuContext& context, const GroupedInputGradient& op) {
    if (!op.low.empty()) {
        GroupedInputGradient base = op;
        base.low = {};
        execute(context, base);
        execute(context, GroupedInputGradient{op.low, op.starts, denseWeight(op.adapterA), 1, true, op.gradX});
        return;
    }
    multiplyGroups(context, op.weight.experts(), op.weight.inFeatures(), op.gradOut.dtype == DType::F64,
                   [&](std::int64_t expert) {
                       const auto [begin, end] = rowsOf(op.starts, expert);
                       Product product;
                       product.matrix = matrixOf(op.weight, expert);
                       std::swap(product.matrix.out, product.matrix.in);
                       product.matrix.transposed = !product.matrix.transposed;
                       product.x = sliceRows(op.gradOut, begin, end);
                       product.out = sliceRows(op.gradX, begin, end);
                       product.residual = op.accumulate ? product.out : TensorView{};
                       product.scale = op.scale;
                       product.rows = end - begin;
                       return product;
                   });
}

void execute(CpuContext& context, const GroupedWeightGradient& op) {
    multiplyGroups(context, op.gradWeight.shape[0], op.x.shape[1], op.gradOut.dtype == DType::F64,
                   [&](std::int64_t expert) {
                       const auto [begin, end] = rowsOf(op.starts, expert);
                       TensorView gradient = sliceRows(op.gradWeight, expert, expert + 1);
                       gradient = reshaped(gradient, Shape{op.gradOut.shape[1], op.x.shape[1]});
                       return weightGradientProduct(sliceRows(op.x, begin, end), sliceRows(op.gradOut, begin, end),
                                                    gradient, op.accumulate);
                   });
}

void execute(CpuContext& context, const GroupedBiasGradient& op) {
    const std::int64_t experts = op.gradBias.shape[0];
    forRows(context, experts, op.gradOut.shape.count() / std::max<std::int64_t>(1, experts), [&](std::int64_t expert) {
        if (op.gradBias.dtype == DType::F64) {
            addWeightedRows<double>(op, expert);
        } else {
            addWeightedRows<float>(op, expert);
        }
    });
}

void execute(CpuContext& context, const GroupedDots& op) {
    const std::int32_t* starts = op.starts.as<const std::int32_t>();
    const std::int64_t experts = op.vectors.shape[0];
    forRows(context, op.x.shape[0], op.x.shape[1], [&](std::int64_t row) {
        const std::int64_t expert =
            std::upper_bound(starts, starts + experts + 1, static_cast<std::int32_t>(row)) - starts - 1;
        if (op.x.dtype == DType::F64) {
            addDot<double>(op, row, expert);
        } else {
            addDot<float>(op, row, expert);
        }
    });
}

} // namespace vitrine::kernels
