// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>

#include "kernels/device/abi/mxfp4_gemv.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/decode_cuda.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kMaxTokens = 128;
constexpr std::int64_t kMaxPairs = 512;
constexpr std::int64_t kMaxSlots = 8;
constexpr std::int64_t kUnitRows = 16;

std::int64_t ceilDiv(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}
/// shared_rows.cuh
std::int64_t rowBytesOfX(std::int64_t in) {
    return (in * 2 + 63) / 128 * 128 + 64;
}

struct ExpertLayout {
    std::int64_t tiles = 1, slots = 0, downSlots = 0, upBytes = 0, downBytes = 0;
};

/// How expert_stream.cuh lays out shared memory for one token: the ring, then rows of x.
ExpertLayout layoutOfToken(std::int64_t dim, std::int64_t width, std::int64_t chosen, std::int64_t limit) {
    constexpr std::int64_t kTeams = 2;     // of the variant
    constexpr std::int64_t kStatic = 8192; // shared memory that is not in the expressions
    const auto slotBytes = [](std::int64_t in) {
        const std::int64_t groups = in / 32;
        const std::int64_t rowBytes = in / 8 % 16 != 0 ? in / 2 : (groups | 1) * 16;
        return kUnitRows * rowBytes + kUnitRows * groups + 256;
    };
    const auto slotsBeside = [&](std::int64_t in, std::int64_t rows) {
        const std::int64_t fit =
            std::clamp<std::int64_t>((limit - kStatic - rows * rowBytesOfX(in)) / slotBytes(in), 0, kMaxSlots);
        return fit / kTeams * kTeams; // the same number for every team
    };
    ExpertLayout out;
    out.slots = slotsBeside(dim, 1);
    out.downSlots = slotsBeside(width, chosen);
    out.upBytes = out.slots * slotBytes(dim) + rowBytesOfX(dim);
    out.downBytes = out.downSlots * slotBytes(width) + chosen * rowBytesOfX(width);
    return out;
}

/// How expert_rows.cuh lays out shared memory for items of up to 8 * tiles rows: the ring, then sums. No slots: it does
/// not fit.
ExpertLayout layoutOfBatch(std::int64_t dim, std::int64_t width, std::int64_t experts, std::int64_t tiles,
                           std::int64_t limit) {
    constexpr std::int64_t kWarps = 12, kBuffers = 4; // of the variant
    constexpr std::int64_t kMostSteps = 16;           // of a warp, for all tiles: what its registers hold of x
    const std::int64_t fixed = 3072 + 12 * experts;   // shared memory that is not in the expressions
    const std::int64_t sums = kBuffers * kWarps * tiles * 512;
    const auto slotBytes = [](std::int64_t in) {
        const std::int64_t run = in / 2 % 128 == 0 ? 1 : in / 2 % 64 == 0 ? 2 : 4; // rows between gaps of 16 bytes
        return kUnitRows * (in / 2) + kUnitRows / run * 16 + kUnitRows * (in / 32);
    };
    const auto slotsFor = [&](std::int64_t in) -> std::int64_t {
        const std::int64_t fit = std::min((limit - fixed - sums) / slotBytes(in), kMaxSlots);
        const std::int64_t rows = std::clamp<std::int64_t>(slotBytes(in) / rowBytesOfX(in), 1, 8); // of x in a slot
        const bool held = tiles * ceilDiv(in / 32, kWarps) <= kMostSteps;
        return held && fit >= ceilDiv(8 * tiles, rows) ? fit : 0;
    };
    ExpertLayout out;
    out.tiles = tiles;
    out.slots = std::min(slotsFor(dim), slotsFor(width));
    out.downSlots = out.slots;
    out.upBytes = out.slots * slotBytes(dim) + sums;
    out.downBytes = out.slots * slotBytes(width) + sums;
    return out;
}

ExpertLayout layoutOf(const ExpertMlp& op, const CudaDeviceInfo& device) {
    /// Up to here eight rows hold most experts' tokens: reading a few twice costs less than two tiles for all.
    constexpr std::int64_t kFewTokens = 44;
    const std::int64_t limit = device.sharedPerBlock;
    const std::int64_t dim = op.x.shape[1];
    const std::int64_t width = op.down.weight.inFeatures();
    const std::int64_t experts = op.gateUp.weight.experts();
    if (op.x.shape[0] == 1) {
        return layoutOfToken(dim, width, op.ids.shape[1], limit);
    }
    if (op.x.shape[0] > kFewTokens && device.major == 9) { // the only form of two tiles
        const ExpertLayout wide = layoutOfBatch(dim, width, experts, 2, limit);
        if (wide.slots > 0) {
            return wide;
        }
    }
    return layoutOfBatch(dim, width, experts, 1, limit);
}

bool packedStack(const WeightView& weight) {
    return weight.format == WeightFormat::Mxfp4 && startsAligned(weight.data) && startsAligned(weight.scales);
}
bool packedBias(const TensorView& bias) {
    return bias.empty() || bias.stride0() == bias.shape[1];
}

} // namespace

bool runExpertsOfFewTokens(CudaContext& context, const ExpertMlp& op) {
    const std::int64_t tokens = op.x.shape[0];
    const std::int64_t chosen = op.ids.shape[1];
    if (tokens == 0 || tokens > kMaxTokens || tokens * chosen > kMaxPairs || !packedStack(op.gateUp.weight) ||
        !packedStack(op.down.weight) || !packedBias(op.gateUp.bias) || !packedBias(op.down.bias)) {
        return false;
    }
    const ExpertMlpPrimitives primitives(op, ScratchLayout(op.scratch.data), context.traits());
    const std::int64_t dim = op.x.shape[1];
    const std::int64_t width = op.down.weight.inFeatures();
    abi::Mxfp4GemvParams params{};
    params.x = op.x.data;
    params.ids = op.ids.as<const int>();
    params.weights = op.weights.as<const float>();
    params.gateUpBlocks = op.gateUp.weight.data.as<const unsigned char>();
    params.gateUpScales = op.gateUp.weight.scales.as<const unsigned char>();
    params.gateUpBias = op.gateUp.bias.data;
    params.downBlocks = op.down.weight.data.as<const unsigned char>();
    params.downScales = op.down.weight.scales.as<const unsigned char>();
    params.downBias = op.down.bias.data;
    params.active = primitives.activation.out.data;
    params.results = primitives.combine.x.data;
    params.residual = op.residual.data;
    params.out = op.out.data;
    params.xStride = op.x.stride0();
    params.residualStride = op.residual.empty() ? 0 : op.residual.stride0();
    params.outStride = op.out.stride0();
    params.tokens = static_cast<int>(tokens);
    params.k = static_cast<int>(chosen);
    params.experts = static_cast<int>(op.gateUp.weight.experts());
    params.alpha = op.alpha;
    params.limit = op.limit;
    const bool aligned = rowsAligned(op.x) && rowsAligned(op.residual) && rowsAligned(op.out);
    const std::int64_t gateUpBias = optionalDtype(op.gateUp.bias);
    const std::int64_t downBias = optionalDtype(op.down.bias);
    const std::int64_t biasType = dtypeOrBf16(op.gateUp.bias.empty() ? op.down.bias : op.gateUp.bias);
    const bool sameBias = (gateUpBias == 0 || gateUpBias == biasType) && (downBias == 0 || downBias == biasType);
    const ExpertLayout layout = layoutOf(op, context.device());
    const std::array<KernelVariable, 18> variables{{{"x_dtype", dtypeNumber(op.x)},
                                                    {"bias_dtype", biasType},
                                                    {"residual_dtype", dtypeOrBf16(op.residual)},
                                                    {"out_dtype", dtypeNumber(op.out)},
                                                    {"dim", dim},
                                                    {"width", width},
                                                    {"chosen", chosen},
                                                    {"experts", op.gateUp.weight.experts()},
                                                    {"activation", static_cast<std::int64_t>(op.activation)},
                                                    {"layout", static_cast<std::int64_t>(op.layout)},
                                                    {"tokens", tokens},
                                                    {"tiles", layout.tiles},
                                                    {"slots", layout.slots},
                                                    {"down_slots", layout.downSlots},
                                                    {"up_bytes", layout.upBytes},
                                                    {"down_bytes", layout.downBytes},
                                                    {"same_bias", sameBias ? 1 : 0},
                                                    {"aligned", aligned ? 1 : 0}}};
    return launchIfFits(context, callOf("mxfp4_gemv", abi::kMxfp4GemvAbi, params, variables));
}

} // namespace vitrine::kernels
