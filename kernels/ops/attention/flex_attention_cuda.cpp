// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_attention.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "kernels/cuda/cuda_tensor_map.h"
#include "kernels/device/abi/flex_attention.h"
#include "kernels/ops/attention/flex_call.h"
#include "kernels/ops/attention/flex_device_scratch.h"
#include "kernels/ops/attention/flex_source.h"
#include "kernels/ops/attention/program_captures.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

namespace {

abi::FlexTensor tensorOf(const TensorView& tensor) {
    if (tensor.empty()) {
        return {};
    }
    return {tensor.data, tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

/// Whether the rows of every head begin at multiples of 16 bytes.
bool headsAligned(const TensorView& tensor) {
    const auto whole = [&](int dim) {
        return tensor.shape[dim] <= 1 || bytesOf(tensor.dtype, tensor.stride(dim)) % 16 == 0;
    };
    return startsAligned(tensor) && whole(0) && whole(1) && whole(2);
}

/// What the Hopper forms copy tiles by; others ignore it.
abi::TensorMap mapOf(const TensorView& tensor) {
    abi::TensorMap map{};
    constexpr std::uint32_t kBoxColumns = 64;
    constexpr std::uint32_t kBoxRows = 64;
    const auto at = [&](int dim) { return static_cast<std::uint64_t>(tensor.shape[dim]); };
    const std::uint64_t extents[] = {at(3), at(2), at(1), at(0)};
    // A dimension of one element has no neighbours: any stride that the driver takes will do.
    const auto apart = [&](int dim) {
        return tensor.shape[dim] > 1 ? static_cast<std::uint64_t>(tensor.stride(dim)) : at(3);
    };
    const std::uint64_t strides[] = {apart(2), apart(1), apart(0)};
    const std::uint32_t box[] = {kBoxColumns, kBoxRows, 1, 1};
    encodeTensorMap({tensor.data, tensor.dtype, extents, strides, box}, map.bytes);
    return map;
}

constexpr std::string_view kUnaligned = "q, k, v, out and gradients: on a GPU the rows of every head must begin at "
                                        "multiples of 16 bytes; pad the rows of the "
                                        "projection";

void checkForDevice(const FlexAttention& op) {
    const auto refuse = [](std::string_view what) { throw base::Unsupported(fmt::format("FlexAttention: {}", what)); };
    if (op.q.dtype == DType::F64) {
        refuse("q: on a GPU it must be float32, bfloat16 or float16; convert it, or choose the CPU");
    }
    if (op.q.shape[3] % 16 != 0 || op.q.shape[3] > 256) {
        refuse("q: headDim must be a multiple of 16 up to 256 on a GPU; pad it with zeros, or choose the CPU");
    }
    for (const TensorView* tensor : {&op.q, &op.k, &op.v, &op.out}) {
        if (!headsAligned(*tensor)) {
            refuse(kUnaligned);
        }
    }
    if (op.blocks != nullptr &&
        (op.blocks->shape.queryBlock % kFlexTileRows != 0 || op.blocks->shape.keyBlock % kFlexTileRows != 0)) {
        refuse("blocks: on a GPU a BlockMask needs blocks that are multiples of 128; build it with 128");
    }
    if (op.scale <= 0) {
        refuse("scale: it must be positive on a GPU");
    }
}

FlexDeviceRuns upload(CudaContext& context, const FlexDeviceRuns& to, const std::vector<std::int64_t>& offsets,
                      const std::vector<BlockRun>& runs) {
    std::vector<abi::FlexRun> pairs;
    pairs.reserve(runs.size());
    for (const BlockRun& run : runs) {
        pairs.push_back({run.first, run.full ? run.count : -run.count});
    }
    context.copyToDevice(offsets.data(), to.offsets.data, offsets.size() * sizeof(std::int64_t));
    if (!pairs.empty()) {
        context.copyToDevice(pairs.data(), to.pairs.data, pairs.size() * sizeof(abi::FlexRun));
    }
    return to;
}

abi::FlexAttentionParams parametersOf(const FlexAttention& op, bool maps) {
    abi::FlexAttentionParams out{};
    constexpr std::string_view kName = FlexAttention::kName;
    if (maps) {
        out.queryMap = mapOf(op.q);
        out.keyMap = mapOf(op.k);
        out.valueMap = mapOf(op.v);
    }
    out.q = tensorOf(op.q);
    out.k = tensorOf(op.k);
    out.v = tensorOf(op.v);
    out.out = tensorOf(op.out);
    out.sinks = op.sinks.data;
    out.lse = op.lse.as<float>();
    out.batch = toInt(op.q.shape[0], kName, "q");
    out.heads = toInt(op.q.shape[1], kName, "q");
    out.kvHeads = toInt(op.k.shape[1], kName, "k");
    out.queries = toInt(op.q.shape[2], kName, "q");
    out.keys = toInt(op.k.shape[2], kName, "k");
    out.scale = op.scale;
    out.scoreCaptures = capturesOf(op.score, kName);
    out.maskCaptures = capturesOf(op.mask, kName);
    if (op.blocks != nullptr) {
        const BlockMaskShape& shape = op.blocks->shape;
        out.maskBatch = static_cast<int>(shape.batch);
        out.maskHeads = static_cast<int>(shape.heads);
        out.queryBlock = static_cast<int>(shape.queryBlock);
        out.keyBlock = static_cast<int>(shape.keyBlock);
    }
    return out;
}

void setRows(abi::FlexAttentionParams& to, const FlexDeviceRuns& runs) {
    to.rowOffsets = runs.offsets.as<const long long>();
    to.rowRuns = static_cast<const abi::FlexRun*>(runs.pairs.data);
}

/// Where blocks take work as they become free: a counter at 0, then the tiles of queries, those that see the most
/// first.
std::vector<std::int32_t> workOf(const FlexAttention& op) {
    const BlockMask& mask = *op.blocks;
    const std::int64_t rows = (mask.shape.queries + mask.shape.queryBlock - 1) / mask.shape.queryBlock;
    std::vector<std::int64_t> seen(static_cast<std::size_t>(rows));
    for (std::size_t list = 0; list + 1 < mask.rowOffsets.size(); ++list) {
        for (std::int64_t i = mask.rowOffsets[list]; i < mask.rowOffsets[list + 1]; ++i) {
            const BlockRun& run = mask.rowRuns[static_cast<std::size_t>(i)];
            seen[list % seen.size()] += run.count * (run.full ? 1 : 2);
        }
    }
    const std::int64_t tiles = (op.q.shape[2] + kFlexTileRows - 1) / kFlexTileRows;
    std::vector<std::int32_t> work(static_cast<std::size_t>(tiles) + 1);
    std::iota(work.rbegin(), work.rend() - 1, 0);
    const auto seenBy = [&](std::int32_t tile) {
        return seen[static_cast<std::size_t>(tile * kFlexTileRows / mask.shape.queryBlock)];
    };
    std::stable_sort(work.begin() + 1, work.end(),
                     [&](std::int32_t a, std::int32_t b) { return seenBy(a) > seenBy(b); });
    return work;
}

/// The variables that all families of FlexAttention have.
std::vector<KernelVariable> variablesOf(const FlexAttention& op, const FlexSource& source) {
    const bool aligned = headsAligned(op.q) && headsAligned(op.k) && headsAligned(op.v) && headsAligned(op.out);
    return {{"dtype", dtypeNumber(op.q)},
            {"sinks_dtype", op.sinks.empty() ? static_cast<std::int64_t>(DType::F32) : dtypeNumber(op.sinks)},
            {"head_dim", op.q.shape[3]},
            {"mask", static_cast<std::int64_t>(source.mask)},
            {"score", source.hasScore ? 1 : 0},
            {"aligned", aligned ? 1 : 0},
            {"queries", op.q.shape[2]},
            {"keys", op.k.shape[2]},
            {"batch_heads", op.q.shape[0] * op.q.shape[1]},
            {"batch_kv_heads", op.q.shape[0] * op.k.shape[1]}};
}

FlexTiles backwardTiles(std::int64_t headDim) {
    if (headDim <= 64) {
        return {1, 64, 2, 2};
    }
    return headDim == 128 ? FlexTiles{1, 32, 2, 1} : FlexTiles{1, 16, headDim < 128 ? 2 : 1, 1};
}

template <class Params>
void launchWith(CudaContext& context, std::string_view family, int abiVersion, const Params& parameters,
                const std::vector<KernelVariable>& variables, const GeneratedSource* generated) {
    KernelCall call = callOf(family, abiVersion, parameters, variables);
    call.generated = generated;
    context.launch(call);
}

/// Terms of a gradient are counted so that all of them together stay below 2^62.
int bitsFor(const FlexAttention& op) {
    const auto terms = static_cast<std::uint64_t>(op.q.shape[0] * op.q.shape[1]) *
                       static_cast<std::uint64_t>(op.q.shape[2]) * static_cast<std::uint64_t>(op.k.shape[2]);
    return std::clamp(62 - static_cast<int>(std::bit_width(terms)), 16, 40);
}

/// The portable passes of the backward kernels: dq, then dk and dv.
void launchPasses(CudaContext& context, const FlexAttentionBackward& op, const FlexSource& source,
                  const abi::FlexAttentionParams& parameters) {
    std::vector<KernelVariable> variables = variablesOf(op.forward, source);
    variables.push_back({"capture_gradients", static_cast<std::int64_t>(source.gradients.size())});
    backwardTiles(op.forward.q.shape[3]).addTo(variables);
    launchWith(context, "flex_attention_dq", abi::kFlexAttentionAbi, parameters, variables, &source.text);
    // Sums of dk and dv do not fit into registers together for wide heads.
    const bool together = op.forward.q.shape[3] <= 128;
    for (const int results : together ? std::vector<int>{3} : std::vector<int>{1, 2}) {
        std::vector<KernelVariable> all = variables;
        all.push_back({"results", results});
        launchWith(context, "flex_attention_dkv", abi::kFlexAttentionAbi, parameters, all, &source.text);
    }
}

/// Float32, without tensor cores. Pass 0: forward; 1: dq; 2: dk and dv.
void launchRows(CudaContext& context, const FlexAttention& op, const FlexSource& source,
                const abi::FlexAttentionParams& parameters, int pass) {
    const TensorView& own = pass == 2 ? op.k : op.q;
    std::vector<KernelVariable> variables = variablesOf(op, source);
    variables.insert(variables.end(), {{"capture_gradients", static_cast<std::int64_t>(source.gradients.size())},
                                       {"rows", own.shape[2]},
                                       {"row_heads", own.shape[0] * own.shape[1]},
                                       {"pass", pass}});
    launchWith(context, "flex_attention_rows", abi::kFlexAttentionAbi, parameters, variables, &source.text);
}

/// Tiles of 128 queries that see the same 128 keys.
struct ColumnSpread {
    std::int64_t longest = 0;
    std::int64_t drop = 0; ///< how much shorter keys' columns are than those after them, at most
};

ColumnSpread columnFacts(const FlexAttention& op) {
    if (op.blocks == nullptr) {
        return {(op.q.shape[2] + kFlexTileRows - 1) / kFlexTileRows, 0};
    }
    const BlockMaskShape& shape = op.blocks->shape;
    const std::vector<std::int64_t>& offsets = op.blocks->columnOffsets;
    const std::int64_t columns = (shape.keys + shape.keyBlock - 1) / shape.keyBlock;
    ColumnSpread analysis;
    std::int64_t before = 0;
    for (std::size_t list = 0; list + 1 < offsets.size(); ++list) {
        std::int64_t tiles = 0;
        for (std::int64_t i = offsets[list]; i < offsets[list + 1]; ++i) {
            tiles += op.blocks->columnRuns[static_cast<std::size_t>(i)].count * (shape.queryBlock / kFlexTileRows);
        }
        analysis.longest = std::max(analysis.longest, tiles);
        if (static_cast<std::int64_t>(list) % columns != 0) {
            analysis.drop = std::max(analysis.drop, tiles - before);
        }
        before = tiles;
    }
    return analysis;
}

/// Into how many pieces of work the heads that share 128 keys are divided: a guess at which number takes least time,
/// counted in tiles of 128 queries. Pieces come in rounds; the longest come last; parts of dk and dv cost about two.
std::int64_t groupPartsOf(const FlexAttention& op, const ColumnSpread& columns, std::int64_t pieces,
                          std::int64_t multiprocessors) {
    constexpr double kAddition = 2;
    const std::int64_t group = op.q.shape[1] / op.k.shape[1];
    const double mean = computedElements(op) / static_cast<double>(kFlexTileRows * kFlexTileRows * pieces);
    const auto longest = static_cast<double>(columns.longest * group);
    std::int64_t best = 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t parts = 1; parts <= group; ++parts) {
        if (group % parts != 0) {
            continue;
        }
        const std::int64_t wholeRounds = (pieces * parts + multiprocessors - 1) / multiprocessors;
        const auto rounds = static_cast<double>(wholeRounds);
        const double time = (rounds * mean + std::max(longest - mean, 0.0) / 2) / static_cast<double>(parts) +
                            (parts > 1 ? rounds * kAddition : 0.0);
        if (time < least) {
            least = time;
            best = parts;
        }
    }
    return best;
}

/// The Hopper form: everything in one pass; one before it finds the unit of captured tensors' gradients.
void launchHopper(CudaContext& context, const FlexAttentionBackward& op, const FlexSource& source,
                  const FlexBackwardScratch& scratch, abi::FlexAttentionParams& parameters) {
    const std::int64_t pieces = scratch.keyTiles * op.forward.k.shape[0] * op.forward.k.shape[1];
    const ColumnSpread columns = columnFacts(op.forward);
    const std::int64_t parts = groupPartsOf(op.forward, columns, pieces, context.device().multiprocessors);
    constexpr std::int64_t kMostDrop = 4;
    parameters.headsInside = source.gradients.empty() && parameters.maskHeads <= 1 && columns.drop > kMostDrop ? 1 : 0;
    parameters.sums = scratch.sums.as<float>();
    parameters.sumTurns = scratch.sumTurns.as<int>();
    parameters.groupParts = toInt(parts, FlexAttentionBackward::kName, "q");
    std::vector<KernelVariable> variables = variablesOf(op.forward, source);
    variables.insert(variables.end(), {{"capture_gradients", static_cast<std::int64_t>(source.gradients.size())},
                                       {"pieces", pieces * parts},
                                       {"sum_tiles", scratch.queryTiles + (parts > 1 ? scratch.keySumTiles : 0)}});
    for (int pass = source.gradients.empty() ? 2 : 1; pass <= 2; ++pass) {
        std::vector<KernelVariable> all = variables;
        all.push_back({"pass", pass});
        parameters.workCounter = scratch.workCounters.as<int>() + (pass - 1);
        launchWith(context, "flex_attention_backward", abi::kFlexAttentionAbi, parameters, all, &source.text);
    }
    launchWith(context, "flex_attention_sums", abi::kFlexAttentionAbi, parameters, variables, nullptr);
}

void finishCaptures(CudaContext& context, const FlexAttentionBackward& op, const FlexSource& source,
                    const abi::FlexAttentionParams& parameters) {
    for (std::size_t capture = 0; capture < op.dCaptures.size(); ++capture) {
        const TensorView& out = op.dCaptures[capture];
        if (out.empty()) {
            continue;
        }
        abi::FlexCaptureParams finish{};
        for (std::size_t g = 0; g < source.gradients.size(); ++g) {
            if (source.gradients[g].capture == static_cast<std::int32_t>(capture)) {
                finish.sums[finish.loads] = parameters.captureSums[g];
                finish.largest[finish.loads] = parameters.captureLargest + g;
                ++finish.loads;
            }
        }
        finish.out = out.data;
        finish.count = out.shape.count();
        finish.bits = parameters.captureBits;
        finish.isDouble = out.dtype == DType::F64 ? 1 : 0;
        launchFamily(context, "flex_capture_gradient", abi::kFlexCaptureAbi, finish, {{"count", finish.count}});
    }
}

} // namespace

void execute(CudaContext& context, const FlexAttention& op) {
    if (op.q.shape.count() == 0) {
        return;
    }
    checkForDevice(op);
    const std::shared_ptr<const FlexSource> source = forwardSource(op);
    const FlexForwardScratch scratch(op, op.scratch.data);
    if (scratch.bytes > 0 && op.scratch.bytes() < scratch.bytes) {
        throw base::Internal("FlexAttention: scratch: it is smaller than scratch() says");
    }
    const bool wide = op.q.dtype == DType::F32;
    abi::FlexAttentionParams parameters =
        parametersOf(op, !wide && hasHopperForward(context.device().major, op.q.shape[3]));
    if (source->mask == FlexMask::Blocks) {
        setRows(parameters, upload(context, scratch.rows, op.blocks->rowOffsets, op.blocks->rowRuns));
        const std::vector<std::int32_t> work = workOf(op);
        context.copyToDevice(work.data(), scratch.work.data, work.size() * sizeof(std::int32_t));
        parameters.workCounter = scratch.work.as<int>();
        parameters.tileOrder = parameters.workCounter + 1;
    }
    if (wide) {
        launchRows(context, op, *source, parameters, 0);
        return;
    }
    std::vector<KernelVariable> variables = variablesOf(op, *source);
    forwardTiles(op.q.shape[3], *source).addTo(variables);
    launchWith(context, "flex_attention", abi::kFlexAttentionAbi, parameters, variables, &source->text);
}

void execute(CudaContext& context, const FlexAttentionBackward& op) {
    const FlexAttention& forward = op.forward;
    if (forward.q.shape.count() == 0) {
        return;
    }
    checkForDevice(forward);
    for (const TensorView* tensor : {&op.gradOut, &op.dq, &op.dk, &op.dv}) {
        if (!headsAligned(*tensor)) {
            throw base::Unsupported(fmt::format("FlexAttention: {}", kUnaligned));
        }
    }
    if (!op.dSinks.empty() && op.dSinks.dtype != DType::F32) {
        throw base::Unsupported("FlexAttention: dSinks: on a GPU it must be float32");
    }
    const std::shared_ptr<const FlexSource> source = backwardSource(op);
    if (source->gradients.size() > abi::kFlexCaptureGradients) {
        throw base::Unsupported("FlexAttention: score: it reads captures that need gradients in more than 16 places");
    }
    const bool hopper = hasHopperForm(context.device().major, forward);
    const FlexBackwardScratch scratch(op, hopper, op.scratch.data);
    if (op.scratch.empty() || op.scratch.bytes() < scratch.bytes) {
        throw base::Internal("FlexAttentionBackward: scratch: it is smaller than scratch() says");
    }
    abi::FlexAttentionParams parameters = parametersOf(forward, hopper);
    if (hopper) {
        parameters.gradOutMap = mapOf(op.gradOut);
    }
    parameters.gradOut = tensorOf(op.gradOut);
    parameters.dq = tensorOf(op.dq);
    parameters.dk = tensorOf(op.dk);
    parameters.dv = tensorOf(op.dv);
    parameters.dSinks = op.dSinks.as<float>();
    parameters.delta = scratch.delta.as<float>();
    parameters.offsets = scratch.offsets.as<float>();
    parameters.paddedQueries = static_cast<int>(scratch.paddedQueries);
    parameters.captureBits = bitsFor(forward);
    parameters.captureLargest = scratch.largest.as<unsigned>();
    for (std::size_t g = 0; g < source->gradients.size(); ++g) {
        parameters.captureSums[g] = scratch.captureSums.at(g).as<unsigned long long>();
    }
    if (source->mask == FlexMask::Blocks) {
        setRows(parameters, upload(context, scratch.rows, forward.blocks->rowOffsets, forward.blocks->rowRuns));
        const FlexDeviceRuns columns =
            upload(context, scratch.columns, forward.blocks->columnOffsets, forward.blocks->columnRuns);
        parameters.columnOffsets = columns.offsets.as<const long long>();
        parameters.columnRuns = static_cast<const abi::FlexRun*>(columns.pairs.data);
    }
    context.fill(static_cast<std::byte*>(op.scratch.data) + scratch.zeroed, 0, scratch.bytes - scratch.zeroed);
    std::vector<KernelVariable> rows = variablesOf(forward, *source);
    rows.push_back({"padded_queries", scratch.paddedQueries});
    rows.push_back({"heads", op.dSinks.empty() ? 0 : forward.q.shape[1]});
    launchWith(context, "flex_attention_delta", abi::kFlexAttentionAbi, parameters, rows, nullptr);
    if (hopper) {
        launchHopper(context, op, *source, scratch, parameters);
    } else if (forward.q.dtype == DType::F32) {
        launchRows(context, forward, *source, parameters, 1);
        launchRows(context, forward, *source, parameters, 2);
    } else {
        launchPasses(context, op, *source, parameters);
    }
    finishCaptures(context, op, *source, parameters);
}

} // namespace vitrine::kernels
