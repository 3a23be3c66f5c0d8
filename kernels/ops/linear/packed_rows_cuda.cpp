// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/packed_rows_cuda.h"

#include <algorithm>
#include <array>

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/packed_rows.h"
#include "kernels/ops/linear/weights_device.h"

namespace vitrine::kernels {

namespace {

/// How the kernel's variable `gate` names a PackedGate.
std::int64_t gateNumber(const PackedProduct& product) {
    if (!product.gate) {
        return 0;
    }
    return product.count > 1 ? 3 : product.gate->layout == GateLayout::Halves ? 1 : 2;
}

/// Results of a row that a target's matrix makes.
std::int64_t featuresOf(const PackedProduct& product, const PackedTarget& target) {
    return target.weight.outFeatures() / (product.gate && product.count == 1 ? 2 : 1);
}

/// How a launch divides its work. Two blocks of few rows share a multiprocessor, so that one loads while the other
/// ends; sums of more rows take the registers of both.
struct PackedLaunch {
    std::int64_t tiles = 1;    ///< of 8 rows, at a time
    std::int64_t rowTiles = 2; ///< of 16 outputs, in a block
    std::int64_t warps = 8;
    std::int64_t blocks = 2; ///< of a multiprocessor

    PackedLaunch(const PackedProduct& product, int multiprocessors) {
        const WeightView& weight = product.targets[0].weight;
        const bool manyNumbers = weight.group < 128 || !weight.zeros.empty(); // of groups, for the registers
        if (product.rows > 8) {
            tiles = product.rows > 16 ? 4 : 2;
            blocks = 1;
        }
        // What the registers hold: numbers of groups beside sums and addresses.
        const std::int64_t groupBytes =
            static_cast<std::int64_t>(bytesOf(weight.scales.dtype, 1)) + (weight.zeros.empty() ? 0 : 1);
        const bool plain = !product.gate && product.rowsOf == abi::PackedOfRows;
        const bool twoWeights = product.gate && product.count > 1; // the addresses of both
        if ((tiles > 2 && (manyNumbers || twoWeights)) ||
            (!plain && std::max<std::int64_t>(1, 128 / weight.group) * groupBytes > 12)) {
            rowTiles = 1;
        }
        if (product.rowsOf == abi::PackedOfSums) {
            // One block of a multiprocessor has the work of all experts: more of its loads are under way.
            rowTiles = 1;
            warps = 16;
            blocks = 1;
        }
        // Blocks that are too tall leave multiprocessors without work.
        std::int64_t outputs = 0;
        for (int i = 0; i < product.count; ++i) {
            outputs += product.targets[static_cast<std::size_t>(i)].weight.outFeatures();
        }
        outputs *= product.rowsOf == abi::PackedOfTiles ? std::min(product.jobs, weight.experts()) : product.jobs;
        while (rowTiles > 1 && outputs / (16 * rowTiles) < multiprocessors * 3 / 4) {
            rowTiles /= 2;
        }
    }

    /// Results of a row that a block makes.
    std::int64_t features(const PackedProduct& product) const { return 16 * rowTiles / (product.gate ? 2 : 1); }
};

/// PackedRowsMatrix::scaleFactor: 2^32 / rowGroup, rounded up so that no row falls short of its scales.
std::int64_t scaleFactorOf(const WeightView& weight) {
    constexpr std::int64_t kOne = std::int64_t{1} << 32;
    return weight.rowGroup >= weight.outFeatures() ? 0 : (kOne + weight.rowGroup - 1) / weight.rowGroup;
}

abi::PackedRowsMatrix matrixOf(const PackedTarget& target) {
    abi::PackedRowsMatrix matrix{};
    matrix.data = target.weight.data.as<const unsigned char>();
    matrix.scales = target.weight.scales.data;
    matrix.zeros = target.weight.zeros.as<const unsigned char>();
    matrix.bias = target.bias.data;
    matrix.biasStride = target.bias.empty() || target.bias.shape.rank() < 2 ? 0 : target.bias.stride0();
    matrix.scaleFactor = scaleFactorOf(target.weight);
    matrix.scaleRows =
        static_cast<int>((target.weight.outFeatures() + target.weight.rowGroup - 1) / target.weight.rowGroup);
    matrix.out = toInt(target.weight.outFeatures(), Matmul::kName, "weight");
    return matrix;
}

std::int64_t elementBits(const WeightView& weight) {
    return static_cast<std::int64_t>(8 * weight.data.bytes()) / weight.shape.count();
}

/// Without what a launch decides.
abi::PackedRowsParams packedParameters(const PackedProduct& product) {
    const WeightView& weight = product.targets[0].weight;
    abi::PackedRowsParams params{};
    params.x = product.x.data;
    params.residual = product.residual.data;
    params.tileCount = product.tileCount;
    params.tiles = product.tiles;
    params.slots = product.slots;
    params.ids = product.ids.as<const int>();
    params.weights = product.weights.as<const float>();
    params.xStride = product.x.stride0();
    params.residualStride = product.residual.empty() ? 0 : product.residual.stride0();
    params.rows = toInt(product.rows, Matmul::kName, "x");
    params.in = toInt(weight.inFeatures(), Matmul::kName, "weight");
    params.groups = static_cast<int>((weight.inFeatures() + weight.group - 1) / weight.group);
    params.pairsPerRow = static_cast<int>(product.pairsPerRow);
    params.chosen = product.ids.empty() ? 0 : static_cast<int>(product.ids.shape[1]);
    params.alpha = product.gate ? product.gate->alpha : 0;
    params.limit = product.gate ? product.gate->limit : 0;
    return params;
}

/// Whether targets may share a launch: all that specialises the kernel is the same.
bool sameKind(const PackedTarget& a, const PackedTarget& b) {
    return a.weight.format == b.weight.format && a.weight.inFeatures() == b.weight.inFeatures() &&
           a.weight.group == b.weight.group && a.weight.zeros.empty() == b.weight.zeros.empty() &&
           a.weight.scales.dtype == b.weight.scales.dtype && optionalDtype(a.bias) == optionalDtype(b.bias) &&
           a.out.dtype == b.out.dtype;
}

bool takesProduct(const PackedProduct& product) {
    for (int i = 0; i < product.count; ++i) {
        const PackedTarget& target = product.targets[static_cast<std::size_t>(i)];
        const TensorView& out = product.gate ? product.targets[0].out : target.out;
        if (!takesPackedRows(product.x.dtype, target.weight, out.dtype) || !startsAligned(target.weight.data) ||
            !sameKind(product.targets[0], target)) {
            return false;
        }
    }
    return product.ids.empty() || product.ids.shape[1] <= abi::kPackedChosen;
}

/// Whether an op may share a launch with others.
bool sharesLaunch(const Matmul& op) {
    return op.x.shape[0] > 0 && op.x.shape[0] <= packedRowsTogether(op.weight.format) && takesPackedRows(op) &&
           op.residual.empty();
}

} // namespace

bool multiplyPackedRows(CudaContext& context, const PackedProduct& product) {
    if (!takesProduct(product)) {
        return false;
    }
    const WeightView& weight = product.targets[0].weight;
    const PackedLaunch launch(product, context.device().multiprocessors);
    abi::PackedRowsParams params = packedParameters(product);
    std::int64_t outputBlocks = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(product.count); ++i) {
        const PackedTarget& target = product.targets[i];
        params.matrices[i] = matrixOf(target);
        params.matrices[i].result = target.out.data;
        params.matrices[i].resultStride = target.out.empty() ? 0 : target.out.stride0();
        if (i == 0 || !product.gate) {
            params.matrices[i].firstBlock = static_cast<int>(outputBlocks);
            const std::int64_t features = launch.features(product);
            outputBlocks += (featuresOf(product, target) + features - 1) / features;
        }
    }
    const std::array<KernelVariable, 23> variables{
        {{"w_format", formatNumber(weight)},
         {"bits", elementBits(weight)},
         {"tiles", launch.tiles},
         {"row_tiles", launch.rowTiles},
         {"warps", launch.warps},
         {"blocks", launch.blocks},
         {"whole", weight.inFeatures() % 128 == 0 ? 1 : 0},
         {"group", weight.group},
         {"zeros", weight.zeros.empty() ? 0 : 1},
         {"scale_dtype", dtypeNumber(weight.scales)},
         {"rows_of", static_cast<std::int64_t>(product.rowsOf)},
         {"gate", gateNumber(product)},
         {"activation", product.gate ? static_cast<std::int64_t>(product.gate->activation) : 0},
         {"matrices", product.count},
         {"bias_dtype", optionalDtype(product.targets[0].bias)},
         {"residual_dtype", optionalDtype(product.residual)},
         {"out_dtype", dtypeNumber(product.targets[0].out)},
         {"in", weight.inFeatures()},
         {"out", weight.outFeatures()},
         {"output_blocks", outputBlocks},
         {"rows", product.rows},
         {"jobs", product.jobs},
         {"x_aligned", rowsAligned(product.x) ? 1 : 0}}};
    return launchIfFits(context, callOf("packed_rows", abi::kPackedRowsAbi, params, variables));
}

bool multiplyPackedRows(CudaContext& context, const Matmul& op) {
    if (!takesPackedRows(op)) {
        return false;
    }
    PackedProduct product;
    product.x = op.x;
    product.targets[0] = {op.weight, op.bias, op.out};
    product.residual = op.residual;
    product.rows = op.x.shape[0];
    return multiplyPackedRows(context, product);
}

bool multiplyPackedTogether(CudaContext& context, std::initializer_list<const Matmul*> ops) {
    PackedProduct product;
    product.count = 0;
    for (const Matmul* op : ops) {
        if (!sharesLaunch(*op)) {
            return false;
        }
        product.x = op->x;
        product.rows = op->x.shape[0];
        product.targets[static_cast<std::size_t>(product.count++)] = {op->weight, op->bias, op->out};
    }
    return multiplyPackedRows(context, product);
}

bool multiplyPackedGated(CudaContext& context, const Matmul& gate, const Matmul& up, Activation activation,
                         const TensorView& active) {
    if (active.empty() || !sharesLaunch(gate) || !sharesLaunch(up)) {
        return false;
    }
    PackedProduct product;
    product.x = gate.x;
    product.rows = gate.x.shape[0];
    product.count = 2;
    product.targets[0] = {gate.weight, gate.bias, active};
    product.targets[1] = {up.weight, up.bias, active};
    product.gate = PackedGate{activation, GateLayout::Halves, 0, 0};
    return multiplyPackedRows(context, product);
}

} // namespace vitrine::kernels
