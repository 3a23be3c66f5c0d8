// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experts of one token; see expert_stream.cuh. `mxfp4_gate_up` writes the activations of the k chosen experts,
// `mxfp4_down` their weighted sum. The ids are written by the kernel before mxfp4_gate_up, and mxfp4_gate_up lets its
// successor start only after its own wait: so mxfp4_down may read the ids, and bring weights, before it waits.

#include "device/abi/mxfp4_gemv.h"
#include "device/activation.cuh"
#include "device/expert_stream.cuh"

namespace vt {

using Mxfp4GemvParams = vitrine::kernels::abi::Mxfp4GemvParams;

namespace experts {

inline constexpr int kDim = VT_DIM;     ///< of the token
inline constexpr int kWidth = VT_WIDTH; ///< of an expert
inline constexpr int kChosen = VT_CHOSEN;
inline constexpr int kHalfUnit = kUnitRows / 2;
inline constexpr int kUnitsOfExpert = ceilDiv(kWidth, kHalfUnit);
inline constexpr int kRowsTogether = kUnitRows / kChosen; ///< rows of the sum in a unit of mxfp4_down
static_assert(kWidth % kHalfUnit == 0 && kChosen <= 8, "units of eight pairs; a column for each expert");

using Bias = StorageOf<VT_BIAS_DTYPE>;
using Residual = StorageOf<VT_RESIDUAL_DTYPE>;

__device__ __forceinline__ int loadFresh(const int* from) {
    int out;
    asm volatile("ld.global.cg.s32 %0, [%1];" : "=r"(out) : "l"(from));
    return out;
}

/// Row r of a gate-up unit: pairs of gate and up rows as they lie (layout 1), or eight gate rows, then eight up rows.
__device__ __forceinline__ i64 gateUpRow(int unit, int r) {
    return VT_LAYOUT == 1 ? unit * kUnitRows + r : unit * kHalfUnit + r % kHalfUnit + r / kHalfUnit * kWidth;
}

} // namespace experts

extern "C" __global__ void __launch_bounds__(experts::kThreads, 1)
    mxfp4_gate_up(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    using S = Shape<kDim>;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ Ring<VT_SLOTS> ring;
    using Rows = SharedRows<kDim, kWarps * 32>;
    __shared__ HalfRows::Scratch scratch;
    __shared__ float factors[1];
    __shared__ float parts[kTeams][2][kTeamWarps][kUnitRows];
    const u32 x = sharedAddress(memory) + VT_SLOTS * S::kSlotBytes;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    constexpr i64 kUnits = static_cast<i64>(kChosen) * kUnitsOfExpert;
    const int begin = static_cast<int>(kUnits * blockIdx.x / gridDim.x);
    const int end = static_cast<int>(kUnits * (blockIdx.x + 1) / gridDim.x);
    beginRing(ring);
    pdl::wait();
    pdl::launchDependents();
    const int id = lane < kChosen ? loadFresh(p.ids + lane) : 0;
    if (warp == kWarps) {
        RingPlace<VT_SLOTS> place;
        for (int at = begin; at < end; ++at) {
            const i64 expert = __shfl_sync(kAllLanes, id, at / kUnitsOfExpert);
            const int unit = at % kUnitsOfExpert;
            const i64 base = expert * 2 * kWidth;
            UnitPiece piece;
            if (lane < kUnitRows) {
                piece.row = p.gateUpBlocks + (base + gateUpRow(unit, lane)) * (kDim / 2);
            } else if (lane < kUnitRows + 2) {
                const int half = lane - kUnitRows;
                piece.scales = p.gateUpScales + (base + gateUpRow(unit, half * kHalfUnit)) * S::kGroups;
                piece.scaleBytes = kHalfUnit * S::kGroups;
                piece.scalesTo = static_cast<u32>(half * kHalfUnit * S::kGroups);
            }
            copyUnit<kDim>(ring, sharedAddress(memory), place, piece);
        }
        return;
    }
    // A warp finishes every kTeamWarps-th unit of its team and asks for its biases long before, without waiting for them.
    const int team = teamOf();
    const int member = memberOf();
    Bias bias{};
    const auto requestBias = [&](int turn) {
        const int at = begin + turn * kTeams + team;
        const int inside = at < end ? at : end - 1;
        const i64 expert = __shfl_sync(kAllLanes, id, inside / kUnitsOfExpert);
        if (p.gateUpBias != nullptr) {
            bias = static_cast<const Bias*>(
                p.gateUpBias)[expert * 2 * kWidth + gateUpRow(inside % kUnitsOfExpert, lane % kUnitRows)];
        }
    };
    requestBias(member);
    Rows::load(1, [&](int) { return static_cast<const bf16*>(p.x); }, HalfRows(scratch, factors), x);
    namedBarrier(1, kWarps * 32);
    Columns<kDim, 1, false> columns; // one row is read at once by all lanes: cheap where it is
    columns.load(x, 1);
    const float factor = factors[0];
    const int g = lane / 4;
    const int low = g * S::kGroups;
    const int high = (g + kHalfUnit) * S::kGroups;
    RingPlace<VT_SLOTS> place;
    for (int at = begin; at < end; ++at, place.advance()) {
        const int pair = at / kUnitsOfExpert;
        const int unit = at % kUnitsOfExpert;
        const int turn = (at - begin) / kTeams;
        if ((at - begin) % kTeams != team) {
            continue;
        }
        float c[1][4] = {};
        multiplyUnit<kDim>(ring, sharedAddress(memory), columns, place, low, high, c);
        if (lane % 4 == 0) {
            parts[team][turn % 2][member][g] = c[0][0];
            parts[team][turn % 2][member][g + 8] = c[0][2];
        }
        teamBarrier();
        if (turn % kTeamWarps == member) {
            float sum = 0;
#pragma unroll
            for (int i = 0; i < kTeamWarps; ++i) {
                sum += parts[team][turn % 2][i][lane % kUnitRows];
            }
            sum = sum * factor + (p.gateUpBias != nullptr ? toFloat(bias) : 0.0F);
            requestBias(turn + kTeamWarps);
            // The lane of the gate row finishes the pair.
            const float up = __shfl_down_sync(kAllLanes, sum, VT_LAYOUT == 1 ? 1 : kHalfUnit);
            if (VT_LAYOUT == 1 ? lane < kUnitRows && lane % 2 == 0 : lane < kHalfUnit) {
                const int number = VT_LAYOUT == 1 ? lane / 2 : lane;
                static_cast<bf16*>(p.active)[static_cast<i64>(pair) * kWidth + unit * kHalfUnit + number] =
                    fromFloat<bf16>(gatedActivation<VT_ACTIVATION>(sum, up, p.alpha, p.limit));
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(experts::kThreads, 1)
    mxfp4_down(const __grid_constant__ Mxfp4GemvParams p) {
    using namespace experts;
    using S = Shape<kWidth>;
    extern __shared__ __align__(128) u8 memory[];
    __shared__ Ring<VT_DOWN_SLOTS> ring;
    using Rows = SharedRows<kWidth, kWarps * 32>;
    __shared__ HalfRows::Scratch scratch;
    __shared__ float factors[kChosen];
    __shared__ float parts[kTeams][2][kTeamWarps][kUnitRows];
    const u32 x = sharedAddress(memory) + VT_DOWN_SLOTS * S::kSlotBytes;
    constexpr int kSegment =
        ceilDiv(kRowsTogether * S::kGroups + 15, 16) * 16; ///< bytes of an expert's scales, aligned
    static_assert(kChosen * kSegment <= S::kScaleBytes, "room for the scales");
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int begin = static_cast<int>(static_cast<i64>(kDim) * blockIdx.x / gridDim.x);
    const int end = static_cast<int>(static_cast<i64>(kDim) * (blockIdx.x + 1) / gridDim.x);
    beginRing(ring);
    pdl::launchDependents();
    const int id = lane < kChosen ? loadFresh(p.ids + lane) : 0;
    if (warp == kWarps) {
        RingPlace<VT_DOWN_SLOTS> place;
        const i64 rowExpert = __shfl_sync(kAllLanes, id, lane / kRowsTogether);
        const auto pieceAt = [&](int first) {
            const int row = first + lane % kRowsTogether;
            UnitPiece piece;
            if (lane < kChosen * kRowsTogether && row < end) {
                piece.row = p.downBlocks + (rowExpert * kDim + row) * (kWidth / 2);
            }
            if (lane < kChosen) {
                // Whole 16-byte pieces around the segment; the stack of scales is a multiple of 16 long.
                const int rows = end - first < kRowsTogether ? end - first : kRowsTogether;
                const i64 at = (static_cast<i64>(id) * kDim + first) * S::kGroups;
                const i64 aligned = at / 16 * 16;
                piece.scales = p.downScales + aligned;
                piece.scaleBytes = static_cast<u32>((at + rows * S::kGroups + 15) / 16 * 16 - aligned);
                piece.scalesTo = static_cast<u32>(lane * kSegment);
            }
            return piece;
        };
        for (int first = begin; first < end; first += kRowsTogether) {
            copyUnit<kWidth>(ring, sharedAddress(memory), place, pieceAt(first));
        }
        pdl::wait();
        return;
    }
    pdl::wait();
    const auto* active = static_cast<const bf16*>(p.active);
    const int team = teamOf();
    const int member = memberOf();
    const int expertOfLane = lane / kRowsTogether < kChosen ? lane / kRowsTogether : 0;
    const i64 expert = __shfl_sync(kAllLanes, id, expertOfLane);
    const bool used = lane < kChosen * kRowsTogether;
    Bias bias{};
    Residual residual{};
    const auto request = [&](int turn) {
        const int row = begin + (turn * kTeams + team) * kRowsTogether + lane % kRowsTogether;
        const int inside = row < end ? row : end - 1;
        if (p.downBias != nullptr) {
            bias = static_cast<const Bias*>(p.downBias)[expert * kDim + inside];
        }
        if (p.residual != nullptr) {
            residual = static_cast<const Residual*>(p.residual)[inside];
        }
    };
    request(member);
    const float share = used ? p.weights[expertOfLane] : 0.0F;
    Rows::load(
        kChosen, [&](int column) { return active + static_cast<i64>(column) * kWidth; }, HalfRows(scratch, factors), x);
    namedBarrier(1, kWarps * 32);
    Columns<kWidth, 1> columns;
    columns.load(x, kChosen);
    // Row m of a unit is row m % kRowsTogether of expert m / kRowsTogether, which is column m / kRowsTogether of x.
    const int g = lane / 4;
    const float factor = factors[expertOfLane];
    const int lowExpert = g / kRowsTogether < kChosen ? g / kRowsTogether : 0;
    const int highExpert = (g + 8) / kRowsTogether < kChosen ? (g + 8) / kRowsTogether : 0;
    const i64 lowId = __shfl_sync(kAllLanes, id, lowExpert);
    const i64 highId = __shfl_sync(kAllLanes, id, highExpert);
    RingPlace<VT_DOWN_SLOTS> place;
    int unit = 0;
    for (int first = begin; first < end; first += kRowsTogether, ++unit, place.advance()) {
        const int turn = unit / kTeams;
        if (unit % kTeams != team) {
            continue;
        }
        const int row = first + lane % kRowsTogether;
        const bool inside = used && row < end;
        const int low = lowExpert * kSegment + static_cast<int>((lowId * kDim + first) * S::kGroups % 16) +
                        g % kRowsTogether * S::kGroups;
        const int high = highExpert * kSegment + static_cast<int>((highId * kDim + first) * S::kGroups % 16) +
                         (g + 8) % kRowsTogether * S::kGroups;
        float c[1][4] = {};
        multiplyUnit<kWidth>(ring, sharedAddress(memory), columns, place, low, high, c);
        // Of a row's eight sums the one of its own expert counts.
        if (lane % 4 == lowExpert / 2) {
            parts[team][turn % 2][member][g] = lowExpert % 2 == 0 ? c[0][0] : c[0][1];
        }
        if (lane % 4 == highExpert / 2) {
            parts[team][turn % 2][member][g + 8] = highExpert % 2 == 0 ? c[0][2] : c[0][3];
        }
        teamBarrier();
        if (turn % kTeamWarps == member) {
            float value = 0;
            if (inside) {
#pragma unroll
                for (int i = 0; i < kTeamWarps; ++i) {
                    value += parts[team][turn % 2][i][lane];
                }
                value = value * factor + (p.downBias != nullptr ? toFloat(bias) : 0.0F);
                value = toFloat(fromFloat<bf16>(value)) * share;
            }
            float sum = 0;
#pragma unroll
            for (int j = 0; j < kChosen; ++j) {
                sum += __shfl_sync(kAllLanes, value, j * kRowsTogether + lane % kRowsTogether);
            }
            if (inside && lane < kRowsTogether) {
                using Out = StorageOf<VT_OUT_DTYPE>;
                static_cast<Out*>(p.out)[row] =
                    fromFloat<Out>(sum + (p.residual != nullptr ? toFloat(residual) : 0.0F));
            }
            request(turn + kTeamWarps);
        }
    }
}

} // namespace vt
