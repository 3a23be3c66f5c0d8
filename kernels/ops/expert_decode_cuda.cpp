// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>

#include "kernels/device/abi/mxfp4_gemv.h"
#include "kernels/ops/block_plans.h"
#include "kernels/ops/cuda_call.h"
#include "kernels/ops/decode_cuda.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kMaxTokens = 64;
constexpr std::int64_t kMaxPairs = 512;
constexpr std::int64_t kTeams = 2, kTeamWarps = 6; ///< of mxfp4_gemv's variants
constexpr std::int64_t kUnitRows = 16;
constexpr std::int64_t kStatic = 8192; ///< shared memory that is not in the expressions

/// How expert_stream.cuh lays out shared memory.
std::int64_t slotBytes(std::int64_t in) {
    const std::int64_t groups = in / 32;
    const std::int64_t rowBytes = in / 8 % 16 != 0 ? in / 2 : (groups | 1) * 16;
    return kUnitRows * rowBytes + kUnitRows * groups + 256;
}
std::int64_t rowBytesOfX(std::int64_t in) {
    return (in * 2 + 63) / 128 * 128 + 64;
}
std::int64_t slotsBeside(std::int64_t in, std::int64_t fixed, std::int64_t limit) {
    constexpr std::int64_t kMaxSlots = 8;
    const std::int64_t fit = std::clamp<std::int64_t>((limit - kStatic - fixed) / slotBytes(in), 0, kMaxSlots);
    return fit / kTeams * kTeams; // the same number for every team
}

struct ExpertLayout {
    std::int64_t tiles = 1, slots = 0, downSlots = 0, upBytes = 0, downBytes = 0;

    ExpertLayout(std::int64_t dim, std::int64_t width, std::int64_t tokens, std::int64_t chosen, std::int64_t limit) {
        if (tokens == 1) {
            slots = slotsBeside(dim, rowBytesOfX(dim), limit);
            downSlots = slotsBeside(width, chosen * rowBytesOfX(width), limit);
            upBytes = slots * slotBytes(dim) + rowBytesOfX(dim);
            downBytes = downSlots * slotBytes(width) + chosen * rowBytesOfX(width);
            return;
        }
        tiles = tokens <= kFewTokens ? 1 : 2;
        const std::int64_t sums = 2 * kTeams * kTeamWarps * tiles * kUnitRows * 8 * 4;
        const std::int64_t up = sums + 8 * tiles * rowBytesOfX(dim);
        const std::int64_t down = sums + 8 * tiles * rowBytesOfX(width);
        slots = std::min(slotsBeside(dim, up, limit), slotsBeside(width, down, limit));
        downSlots = slots;
        upBytes = slots * slotBytes(dim) + up;
        downBytes = slots * slotBytes(width) + down;
    }

private:
    /// Up to here eight rows hold nearly every expert's tokens.
    static constexpr std::int64_t kFewTokens = 24;
};

bool packedStack(const WeightView& weight) {
    return weight.quantized() && startsAligned(weight.mxfp4.blocks) && startsAligned(weight.mxfp4.scales);
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
    const ExpertMlpPlan plan(op, ScratchLayout(op.scratch.data));
    const std::int64_t dim = op.x.shape[1];
    const std::int64_t width = op.down.weight.inFeatures();
    abi::Mxfp4GemvParams params{};
    params.x = op.x.data;
    params.ids = op.ids.as<const int>();
    params.weights = op.weights.as<const float>();
    params.gateUpBlocks = op.gateUp.weight.mxfp4.blocks.as<const unsigned char>();
    params.gateUpScales = op.gateUp.weight.mxfp4.scales.as<const unsigned char>();
    params.gateUpBias = op.gateUp.bias.data;
    params.downBlocks = op.down.weight.mxfp4.blocks.as<const unsigned char>();
    params.downScales = op.down.weight.mxfp4.scales.as<const unsigned char>();
    params.downBias = op.down.bias.data;
    params.active = plan.activation.out.data;
    params.results = plan.combine.x.data;
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
    const ExpertLayout layout(dim, width, tokens, chosen, context.device().sharedPerBlock);
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
