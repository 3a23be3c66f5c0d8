// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/grouped_matmul.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "kernels/cuda/cuda_tensor_map.h"
#include "kernels/device/abi/grouped_matmul.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/experts/grouped_products.h"
#include "kernels/ops/linear/few_rows_cuda.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/linear/weights_device.h"

namespace vitrine::kernels {

namespace {

/// One product as the kernels take it, without adapter.
struct GroupedProduct {
    TensorView x, starts;
    WeightView weight;
    TensorView bias;
    float scale = 1;
    bool accumulate = false;
    bool contracted = false; ///< the weight's rows as stored are the contracted axis
    TensorView out;
    TensorView extraRows;   ///< of a second product that is added, or empty. Tensor cores only, with scale 1
    TensorView extraMatrix; ///< its stack, stored as the weight is

    std::int64_t in() const { return x.shape[1]; }
    std::int64_t width() const { return out.shape[1]; }
};

bool rowsForTensorMap(const TensorView& rows) {
    return rows.dtype == DType::BF16 && rowsAligned(rows);
}

/// Boxes of 64 rows of 64 columns; \p matrices 0: one matrix.
void encodeRows(const TensorView& rows, abi::TensorMap& map) {
    const std::array extents = {static_cast<std::uint64_t>(rows.shape[1]), static_cast<std::uint64_t>(rows.shape[0])};
    const std::array strides = {static_cast<std::uint64_t>(rows.stride0())};
    constexpr std::array<std::uint32_t, 2> kBox = {64, 64};
    encodeTensorMap({rows.data, rows.dtype, extents, strides, kBox}, map.bytes);
}

void encodeStack(const TensorView& stack, abi::TensorMap& map) {
    const std::array extents = {static_cast<std::uint64_t>(stack.shape[2]), static_cast<std::uint64_t>(stack.shape[1]),
                                static_cast<std::uint64_t>(stack.shape[0])};
    const std::array strides = {extents[0], extents[0] * extents[1]};
    constexpr std::array<std::uint32_t, 3> kBox = {64, 64, 1};
    encodeTensorMap({stack.data, stack.dtype, extents, strides, kBox}, map.bytes);
}

/// Tiles of the tensor-core form.
struct TileShape {
    std::int64_t columns;       ///< of the result
    std::int64_t rowBlocks = 1; ///< of 64 rows that a warpgroup makes
    std::int64_t stages = 8;    ///< that fit beside each other into shared memory
};

/// Narrow results are bound by memory, others by how often tiles are read from the second-level cache: the larger they
/// are, the less. 192 columns divide the widths of common models.
TileShape productTiles(std::int64_t width) {
    for (const std::int64_t columns : {16, 32, 64}) {
        if (width <= columns) {
            return {columns};
        }
    }
    if (width % 192 == 0) {
        return {192, 2, 4};
    }
    return width % 256 == 0 ? TileShape{256, 1, 4} : TileShape{128, 2, 4};
}

TileShape gradientTiles(std::int64_t width) {
    TileShape shape = productTiles(width);
    shape.rowBlocks = 1;
    shape.stages = shape.columns >= 256 ? 4 : shape.columns >= 192 ? 5 : shape.columns >= 128 ? 6 : 8;
    return shape;
}

bool stackForTensorMap(const TensorView& stack) {
    return stack.dtype == DType::BF16 && startsAligned(stack);
}

/// Whether the tensor-core form multiplies these rows by a stack that has a tensor map.
bool fitsTensorCores(const CudaContext& context, const GroupedProduct& product) {
    return context.device().major == 9 && rowsForTensorMap(product.x) && rowsForTensorMap(product.out) &&
           product.in() > 0 && product.in() % 8 == 0 && product.width() % 8 == 0 &&
           product.weight.experts() <= abi::kGroupedMatmulExperts;
}

void launchProduct(CudaContext& context, const GroupedProduct& product) {
    const std::int64_t rows = product.x.shape[0];
    if (rows == 0 || product.width() == 0) {
        return;
    }
    const bool tensorCores =
        fitsTensorCores(context, product) && !product.weight.quantized() && stackForTensorMap(product.weight.data);
    const std::int64_t extra = product.extraRows.empty() ? 0 : product.extraRows.shape[1];
    abi::GroupedMatmulParams params{};
    if (tensorCores) {
        encodeRows(product.x, params.rowMap);
        encodeStack(product.weight.data, params.weightMap);
    }
    if (extra > 0) {
        encodeRows(product.extraRows, params.extraRowMap);
        encodeStack(product.extraMatrix, params.extraWeightMap);
    }
    params.x = product.x.data;
    params.starts = product.starts.as<const int>();
    params.dense = WeightPointers(product.weight).dense;
    params.packed = packedForDevice(product.weight);
    params.bias = product.bias.data;
    params.result = product.out.data;
    params.xStride = product.x.stride0();
    params.biasStride = product.bias.empty() ? 0 : product.bias.stride0();
    params.resultStride = product.out.stride0();
    params.experts = static_cast<int>(product.weight.experts());
    params.in = toInt(product.in(), GroupedMatmul::kName, "x");
    params.out = toInt(product.width(), GroupedMatmul::kName, "out");
    params.extra = static_cast<int>(extra);
    params.scale = product.scale;
    const TileShape tiles = productTiles(product.width());
    launchFamily(context, "grouped_matmul", abi::kGroupedMatmulAbi, params,
                 {{"x_dtype", dtypeNumber(product.x)},
                  {"w_format", formatNumber(product.weight)},
                  {"w_dtype", denseNumber(product.weight)},
                  {"bias_dtype", optionalDtype(product.bias)},
                  {"out_dtype", dtypeNumber(product.out)},
                  {"contracted", product.contracted ? 1 : 0},
                  {"accumulate", product.accumulate ? 1 : 0},
                  {"tensor_cores", tensorCores ? 1 : 0},
                  {"in", product.in()},
                  {"out", product.width()},
                  {"rows", rows},
                  {"experts", product.weight.experts()},
                  {"extra", extra},
                  {"columns", tiles.columns},
                  {"row_blocks", tiles.rowBlocks},
                  {"stages", tiles.stages}});
}

/// Some experts at a time, whose weights become BF16 before.
void launchExpanded(CudaContext& context, const GroupedProduct& product, const TensorView& scratch) {
    const ExpandedExperts expanded(product.weight, ScratchLayout(scratch.data));
    const std::int64_t experts = product.weight.experts();
    for (std::int64_t begin = 0; begin < experts; begin += expanded.together) {
        const std::int64_t end = std::min(begin + expanded.together, experts);
        Dequantize expand;
        expand.weight = sliceExperts(product.weight, begin, end);
        expand.out = sliceRows(expanded.values, 0, end - begin);
        execute(context, expand);
        GroupedProduct part = product;
        part.weight = denseWeight(expand.out);
        part.starts = slice(product.starts, 0, begin, end + 1);
        if (!product.bias.empty()) {
            part.bias = sliceRows(product.bias, begin, end);
        }
        if (!product.extraMatrix.empty()) {
            part.extraMatrix = sliceRows(product.extraMatrix, begin, end);
        }
        launchProduct(context, part);
    }
}

/// Whether the stack becomes BF16 in scratch.
bool expandsExperts(const GroupedProduct& product, const TensorView& scratch) {
    return product.in() > 0 && ExpandedExperts::fits(product.weight, product.x.dtype, product.out.dtype) &&
           !scratch.empty() && scratch.bytes() >= ExpandedExperts(product.weight, ScratchLayout()).bytes;
}

void multiplyGroups(CudaContext& context, const GroupedProduct& product, const TensorView& scratch) {
    if (expandsExperts(product, scratch)) {
        launchExpanded(context, product, scratch);
    } else {
        launchProduct(context, product);
    }
}

/// The adapter's part of a product: low[r] times the matrix of row r's expert.
struct LowProduct {
    TensorView low;    ///< (rows, rank)
    TensorView matrix; ///< a stack of dense matrices
    bool contracted;   ///< as in GroupedProduct
};

/// An adapter of more values takes more stages than reading and writing the result again costs.
constexpr std::int64_t kMostExtra = 64;

/// Whether one launch makes both: the second product is then neither read nor written by itself.
bool addsInside(const CudaContext& context, const GroupedProduct& product, const LowProduct& adapter,
                const TensorView& scratch) {
    const std::int64_t rank = adapter.low.shape[1];
    const bool stack =
        product.weight.quantized() ? expandsExperts(product, scratch) : stackForTensorMap(product.weight.data);
    return stack && fitsTensorCores(context, product) && product.scale == 1 &&
           product.contracted == adapter.contracted && rowsForTensorMap(adapter.low) &&
           stackForTensorMap(adapter.matrix) && rank > 0 && rank % 8 == 0 && rank <= kMostExtra;
}

void multiplyWithAdapter(CudaContext& context, GroupedProduct product, const LowProduct& adapter,
                         const TensorView& scratch) {
    if (addsInside(context, product, adapter, scratch)) {
        product.extraRows = adapter.low;
        product.extraMatrix = adapter.matrix;
        multiplyGroups(context, product, scratch);
        return;
    }
    multiplyGroups(context, product, scratch);
    GroupedProduct second;
    second.x = adapter.low;
    second.starts = product.starts;
    second.weight = denseWeight(adapter.matrix);
    second.accumulate = true;
    second.contracted = adapter.contracted;
    second.out = product.out;
    launchProduct(context, second);
}

GroupedProduct productOf(const GroupedMatmul& op) {
    GroupedProduct product;
    product.x = op.x;
    product.starts = op.starts;
    product.weight = op.linear.weight;
    product.bias = op.linear.bias;
    product.scale = op.scale;
    product.accumulate = op.accumulate;
    product.contracted = op.linear.weight.transposed;
    product.out = op.out;
    return product;
}

} // namespace

void execute(CudaContext& context, const GroupedMatmul& op) {
    if (op.linear.adapter.empty()) {
        multiplyGroups(context, productOf(op), op.scratch);
        return;
    }
    const GroupedAdapterProducts products(op, ScratchLayout(op.scratch.data), context.traits());
    execute(context, products.down);
    multiplyWithAdapter(context, productOf(products.base), {products.down.out, op.linear.adapter.b, false},
                        products.base.scratch);
}

void execute(CudaContext& context, const GroupedInputGradient& op) {
    GroupedProduct product;
    product.x = op.gradOut;
    product.starts = op.starts;
    product.weight = op.weight;
    product.scale = op.scale;
    product.accumulate = op.accumulate;
    product.contracted = !op.weight.transposed;
    product.out = op.gradX;
    if (op.low.empty()) {
        multiplyGroups(context, product, op.scratch);
    } else {
        multiplyWithAdapter(context, product, {op.low, op.adapterA, true}, op.scratch);
    }
}

void execute(CudaContext& context, const GroupedWeightGradient& op) {
    if (op.gradWeight.shape.count() == 0) {
        return;
    }
    // The wider side gives the tile its 128 rows.
    const bool swapped = op.x.shape[1] > op.gradOut.shape[1];
    const TensorView& a = swapped ? op.x : op.gradOut;
    const TensorView& b = swapped ? op.gradOut : op.x;
    const bool tensorCores = rowsForTensorMap(a) && rowsForTensorMap(b) && op.gradWeight.dtype == DType::F32 &&
                             a.shape[1] % 8 == 0 && b.shape[1] % 8 == 0 && a.shape[0] > 0 &&
                             context.device().major == 9;
    abi::GroupedWeightGradientParams params{};
    if (tensorCores) {
        encodeRows(a, params.aMap);
        encodeRows(b, params.bMap);
    }
    params.a = a.data;
    params.b = b.data;
    params.starts = op.starts.as<const int>();
    params.result = op.gradWeight.data;
    params.aStride = a.stride0();
    params.bStride = b.stride0();
    params.experts = static_cast<int>(op.gradWeight.shape[0]);
    params.m = toInt(a.shape[1], GroupedWeightGradient::kName, "x");
    params.n = toInt(b.shape[1], GroupedWeightGradient::kName, "gradOut");
    const TileShape tiles = gradientTiles(b.shape[1]);
    launchFamily(context, "grouped_weight_gradient", abi::kGroupedWeightGradientAbi, params,
                 {{"a_dtype", dtypeNumber(a)},
                  {"b_dtype", dtypeNumber(b)},
                  {"out_dtype", dtypeNumber(op.gradWeight)},
                  {"swapped", swapped ? 1 : 0},
                  {"accumulate", op.accumulate ? 1 : 0},
                  {"tensor_cores", tensorCores ? 1 : 0},
                  {"m", a.shape[1]},
                  {"n", b.shape[1]},
                  {"experts", op.gradWeight.shape[0]},
                  {"columns", tiles.columns},
                  {"row_blocks", tiles.rowBlocks},
                  {"stages", tiles.stages}});
}

namespace {

void launchRows(CudaContext& context, std::string_view family, const TensorView& rows, const TensorView& starts,
                abi::GroupedRowsParams params, const TensorView& vectors) {
    params.rows = rows.data;
    params.rowStride = rows.stride0();
    params.starts = starts.as<const int>();
    params.count = toInt(rows.shape[0], GroupedDots::kName, "x");
    params.experts = static_cast<int>(starts.shape[0]) - 1;
    params.width = toInt(rows.shape[1], GroupedDots::kName, "x");
    launchFamily(context, family, abi::kGroupedRowsAbi, params,
                 {{"x_dtype", dtypeNumber(rows)},
                  {"vector_dtype", dtypeOrBf16(vectors)},
                  {"rows", rows.shape[0]},
                  {"experts", starts.shape[0] - 1},
                  {"width", rows.shape[1]}});
}

void requireFloat32(const TensorView& sums, std::string_view op) {
    if (sums.dtype != DType::F32) {
        throw base::Unsupported(std::string(op) + ": on a GPU its sums must be float32; choose the CPU");
    }
}

} // namespace

void execute(CudaContext& context, const GroupedBiasGradient& op) {
    requireFloat32(op.gradBias, GroupedBiasGradient::kName);
    if (op.gradOut.shape.count() == 0) {
        return;
    }
    abi::GroupedRowsParams params{};
    params.weights = op.weights.as<const float>();
    params.result = op.gradBias.as<float>();
    launchRows(context, "grouped_sums", op.gradOut, op.starts, params, {});
}

void execute(CudaContext& context, const GroupedDots& op) {
    requireFloat32(op.out, GroupedDots::kName);
    if (op.x.shape[0] == 0) {
        return;
    }
    abi::GroupedRowsParams params{};
    params.vectors = op.vectors.data;
    params.vectorStride = op.vectors.stride0();
    params.result = op.out.as<float>();
    launchRows(context, "grouped_dots", op.x, op.starts, params, op.vectors);
}

} // namespace vitrine::kernels
