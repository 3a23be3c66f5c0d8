// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/attention.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cuda/cuda_tensor_map.h"
#include "kernels/device/abi/attention.h"
#include "kernels/ops/attention/attention_splits.h"
#include "kernels/ops/attention/flex_call.h"
#include "kernels/ops/attention/kv_call.h"
#include "kernels/ops/attention/program_captures.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

namespace {

abi::AttentionParams parametersOf(const Attention& op, const AttentionScratch& scratch) {
    if (scratch.bytes > 0 && (op.scratch.empty() || op.scratch.bytes() < scratch.bytes)) {
        throw base::Internal("Attention: scratch: it is smaller than scratch() says");
    }
    abi::AttentionParams out{};
    out.q = op.q.data;
    out.newK = op.newK.data;
    out.newV = op.newV.data;
    out.sinks = op.sinks.data;
    out.out = op.out.data;
    out.lse = op.lse.as<float>();
    out.offsets = op.offsets.as<const int>();
    out.positions = op.positions.as<const int>();
    out.partials = op.scratch.as<float>();
    out.qStride = op.q.stride0();
    out.newKStride = op.newK.empty() ? 0 : op.newK.stride0();
    out.newVStride = op.newV.empty() ? 0 : op.newV.stride0();
    out.outStride = op.out.stride0();
    out.cache = kvParameters(op.cache, Attention::kName);
    out.tokens = toInt(op.q.shape[0], Attention::kName, "q");
    out.heads = toInt(op.q.shape[1], Attention::kName, "q");
    out.kvHeads = toInt(op.cache.keys.shape[2], Attention::kName, "cache.keys");
    out.splits = 1;
    constexpr float kLog2e = 1.4426950408889634F;
    out.scale = op.scale;
    out.scale2 = op.scale * kLog2e;
    if (scratch.tiles.words > 0) {
        out.tiles = reinterpret_cast<abi::AttentionTiles*>(op.scratch.as<std::byte>() + scratch.tilesAt);
        out.tileWords = toInt(scratch.tiles.words, Attention::kName, "cache.blockTable");
        out.tileHeads = toInt(scratch.tiles.heads, Attention::kName, "q");
    }
    return out;
}

/// Whether all rows can be read in 16-byte pieces.
bool isAligned(const Attention& op) {
    const std::int64_t headDim = op.q.shape[2];
    const bool added = op.newK.empty() || (hasPieces(op.newK, headDim) && hasPieces(op.newV, headDim));
    const auto inBytes = [&](const TensorView& pool) { return !op.cache.quantized() || pool.stride0() % 16 == 0; };
    return added && inBytes(op.cache.keys) && inBytes(op.cache.values) && hasPieces(op.q, headDim) &&
           hasPieces(op.out, headDim) && hasPieces(op.cache.keys, headDim) && hasPieces(op.cache.values, headDim);
}

std::int64_t orElse(const TensorView& tensor, const TensorView& other) {
    return dtypeNumber(tensor.empty() ? other : tensor);
}

bool capturesAnything(const Attention& op) {
    return (!op.score.empty() && !op.score.program->captures.empty()) ||
           (!op.mask.empty() && !op.mask.program->captures.empty());
}

/// `to` is what the op's programs capture, which stands after the parameters.
void setCaptures(const Attention& op, abi::AttentionProgramParams& to) {
    to.scoreCaptures = capturesOf(op.score, Attention::kName);
    to.maskCaptures = capturesOf(op.mask, Attention::kName);
}

template <class Params>
void launchWith(CudaContext& context, std::string_view family, const Params& parameters,
                const std::vector<KernelVariable>& variables, const FlexSource& source) {
    KernelCall call = callOf(family, abi::kAttentionAbi, parameters, variables);
    call.generated = &source.text;
    context.launch(call);
}

/// Launches a family of kernels for single rows: what all of them are specialised by, and its own variables.
void launchRows(CudaContext& context, std::string_view family, const Attention& op,
                const abi::AttentionParams& parameters, std::initializer_list<KernelVariable> own) {
    const std::shared_ptr<const FlexSource> source = attentionSource(op);
    const bool captured = capturesAnything(op);
    std::vector<KernelVariable> variables{{"q_dtype", dtypeNumber(op.q)},
                                          {"cache_dtype", dtypeNumber(op.cache.keys)},
                                          {"new_dtype", orElse(op.newK, op.cache.quantized() ? op.q : op.cache.keys)},
                                          {"out_dtype", dtypeNumber(op.out)},
                                          {"sinks_dtype", orElse(op.sinks, op.q)},
                                          {"mask", static_cast<std::int64_t>(source->mask)},
                                          {"score", source->hasScore ? 1 : 0},
                                          {"captured", captured ? 1 : 0},
                                          {"per_head", source->perHead ? 1 : 0},
                                          {"head_dim", op.q.shape[2]},
                                          {"group", op.q.shape[1] / op.cache.keys.shape[2]},
                                          {"aligned", isAligned(op) ? 1 : 0},
                                          {"kv_heads", op.cache.keys.shape[2]},
                                          {"tokens", op.q.shape[0]}};
    variables.insert(variables.end(), own.begin(), own.end());
    if (captured) {
        abi::AttentionProgramParams all{};
        static_cast<abi::AttentionParams&>(all) = parameters;
        setCaptures(op, all);
        launchWith(context, family, all, variables, *source);
    } else {
        launchWith(context, family, parameters, variables, *source);
    }
}

/// Finds which tiles of keys the rows see.
void runTiles(CudaContext& context, const Attention& op, const abi::AttentionParams& parameters) {
    constexpr std::int64_t kTogether = 16;
    const bool alone = op.q.shape[0] <= op.cache.blockTable.shape[0];
    launchRows(context, "attention_tiles", op, parameters,
               {{"tile_rows", alone ? 1 : kTogether},
                {"tile_heads", parameters.tileHeads},
                {"tile_words", parameters.tileWords}});
}

/// Attention in any dtype and head dim, without tensor cores.
void runPlain(CudaContext& context, const Attention& op, const abi::AttentionParams& parameters) {
    const std::int64_t headDim = op.q.shape[2];
    launchRows(context, "attention", op, parameters,
               {{"vector", pieceOf(headDim, {&op.cache.keys, &op.newK})}, {"heads", op.q.shape[1]}});
}

/// Shared memory of a row of keys, values or queries: padded against bank conflicts.
std::int64_t rowBytes(std::int64_t headDim) {
    return 2 * headDim + 16;
}

/// Stages of 64 keys and values: as many as let two blocks share an SM, so that one loads while another merges.
std::int64_t stagesFor(std::int64_t headDim, bool quantized, std::int64_t sharedPerBlock) {
    constexpr std::int64_t kOther = 4096; ///< static shared memory
    const std::int64_t ofRow = quantized ? headDim + 20 : rowBytes(headDim);
    const std::int64_t queries = headDim > 128 ? 16 * rowBytes(headDim) : 0;
    const auto fit = [&](std::int64_t bytes) { return (bytes - kOther - queries) / (128 * ofRow); };
    const std::int64_t alone = std::min<std::int64_t>(2, fit(sharedPerBlock));
    return std::clamp<std::int64_t>(std::max(fit(sharedPerBlock / 2), alone), 1, 4);
}

void runSingleRows(CudaContext& context, const Attention& op, abi::AttentionParams parameters,
                   const AttentionSplits& cut) {
    const std::int64_t headDim = op.q.shape[2];
    const std::int64_t stages = stagesFor(headDim, op.cache.quantized(), context.device().sharedPerBlock);
    parameters.splits = static_cast<int>(cut.splits);
    parameters.byRow = cut.byRow ? 1 : 0;
    if (op.cache.quantized() && !op.cache.ring) { // its pages hold the step's tokens too
        parameters.newK = nullptr;
        parameters.newV = nullptr;
    }
    launchRows(context, "attention_decode", op, parameters,
               {{"decode_stages", stages}, {"few_splits", cut.few}, {"split_blocks", cut.blocks}, {"rows", cut.rows}});
}

constexpr std::int64_t kPrefillRows = 128; ///< (row, head) pairs of a tile of the Hopper form, at most

/// Tokens of a page that one copy of a tensor map brings: of floats the largest power of two that divides a page, up to
/// 64, or 0, because copies of fewer than 8 tokens would lie in no swizzle; of bytes 32, a warp's rows, or 0 where
/// pages do not consist of them or scales lie where no copy begins.
std::int64_t pageBoxOf(const KvView& cache) {
    const std::int64_t pageTokens = cache.keys.shape[1];
    if (cache.quantized()) {
        const auto begins = [](const TensorView& scales) {
            return reinterpret_cast<std::uintptr_t>(scales.data) % 16 == 0 && scales.stride0() % 4 == 0;
        };
        return pageTokens % 32 == 0 && begins(cache.keyScales) && begins(cache.valueScales) ? 32 : 0;
    }
    const std::int64_t box = std::gcd(pageTokens, std::int64_t{64});
    return box < 8 ? 0 : box;
}

/// (headDim, heads, tokens) of a ragged tensor, in boxes of `rows` tokens of `heads` heads.
abi::TensorMap raggedMap(const TensorView& tensor, std::int64_t heads, std::int64_t rows) {
    const auto at = [&](int dim) { return static_cast<std::uint64_t>(tensor.shape[dim]); };
    const std::uint64_t extents[] = {at(2), at(1), at(0)};
    const std::uint64_t strides[] = {at(2), static_cast<std::uint64_t>(tensor.stride0())};
    const std::uint32_t box[] = {64, static_cast<std::uint32_t>(heads), static_cast<std::uint32_t>(rows)};
    abi::TensorMap map{};
    encodeTensorMap({tensor.data, tensor.dtype, extents, strides, box}, map.bytes);
    return map;
}

/// (headDim, kvHeads, pageTokens, pages) of a pool, in boxes of `tokens` of one head: 64 columns, of bytes all. Pages
/// lie anywhere at multiples of the stride, so the map reaches as far as a device's memory may.
abi::TensorMap poolMap(const TensorView& pool, std::int64_t tokens) {
    constexpr std::uint64_t kFarthest = std::uint64_t{1} << 37; // elements: 256 GiB
    const auto at = [&](int dim) { return static_cast<std::uint64_t>(pool.shape[dim]); };
    const auto stride = static_cast<std::uint64_t>(pool.stride0());
    const std::uint64_t pages = std::clamp<std::uint64_t>(kFarthest / stride, at(0), std::uint64_t{1} << 31);
    const std::uint64_t extents[] = {at(3), at(2), at(1), pages};
    const std::uint64_t strides[] = {at(3), at(2) * at(3), stride};
    const std::int64_t columns = isQuantizedKv(pool.dtype) ? pool.shape[3] : 64;
    const std::uint32_t box[] = {static_cast<std::uint32_t>(columns), 1, static_cast<std::uint32_t>(tokens), 1};
    abi::TensorMap map{};
    encodeTensorMap({pool.data, pool.dtype, extents, strides, box}, map.bytes);
    return map;
}

/// What the Hopper form copies tiles by.
void setMaps(const Attention& op, abi::AttentionPrefillParams& to) {
    const std::int64_t group = op.q.shape[1] / op.cache.keys.shape[2];
    to.queryMap = raggedMap(op.q, group, kPrefillRows / group);
    if (const std::int64_t box = pageBoxOf(op.cache); box > 0) {
        to.keyMap = poolMap(op.cache.keys, box);
        to.valueMap = poolMap(op.cache.values, box);
    }
    if (!op.newK.empty()) {
        to.newKeyMap = raggedMap(op.newK, 1, 64);
        to.newValueMap = raggedMap(op.newV, 1, 64);
    }
}

void runManyRows(CudaContext& context, const Attention& op, const abi::AttentionParams& parameters) {
    const std::shared_ptr<const FlexSource> source = attentionSource(op);
    const std::int64_t headDim = op.q.shape[2];
    const std::int64_t group = op.q.shape[1] / op.cache.keys.shape[2];
    abi::AttentionPrefillParams all{};
    static_cast<abi::AttentionParams&>(all) = parameters;
    all.byRow = context.traits().features.exactRows ? 1 : 0;
    setCaptures(op, all);
    const std::int64_t pageBox = pageBoxOf(op.cache);
    std::vector<KernelVariable> variables{{"dtype", dtypeNumber(op.q)},
                                          {"cache_dtype", dtypeNumber(op.cache.keys)},
                                          {"out_dtype", dtypeNumber(op.out)},
                                          {"sinks_dtype", orElse(op.sinks, op.q)},
                                          {"mask", static_cast<std::int64_t>(source->mask)},
                                          {"score", source->hasScore ? 1 : 0},
                                          {"head_dim", headDim},
                                          {"group", group},
                                          {"page_box", pageBox},
                                          {"added", op.newK.empty() ? 0 : 1},
                                          {"aligned", isAligned(op) ? 1 : 0},
                                          {"kv_heads", op.cache.keys.shape[2]},
                                          {"tokens", op.q.shape[0]},
                                          {"sequences", op.cache.blockTable.shape[0]}};
    if (hasHopperForward(context.device().major, headDim) && group <= kPrefillRows && isAligned(op)) {
        setMaps(op, all);
    }
    FlexTiles tiles = forwardTiles(headDim, *source);
    tiles.rowTiles = headDim > 64 ? 1 : tiles.rowTiles; // pairs take registers
    tiles.addTo(variables);
    launchWith(context, "attention_prefill", all, variables, *source);
}

} // namespace

void execute(CudaContext& context, const Attention& op) {
    const std::int64_t tokens = op.q.shape[0];
    if (tokens == 0) {
        return;
    }
    const abi::AttentionParams parameters = parametersOf(op, AttentionScratch(op, context.traits()));
    if (parameters.tiles != nullptr) {
        runTiles(context, op, parameters);
    }
    if (!AttentionSplits::onTensorCores(op) || !isAligned(op)) {
        runPlain(context, op, parameters);
        return;
    }
    // Sequences of one row go the same way beside prefills as alone, so that their results do not change.
    const AttentionSplits cut(op, context.traits());
    if (cut.rows > 0) {
        runSingleRows(context, op, parameters, cut);
    }
    if (!cut.byRow) {
        runManyRows(context, op, parameters);
    }
}

} // namespace vitrine::kernels
