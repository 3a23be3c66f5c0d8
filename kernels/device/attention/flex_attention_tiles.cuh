// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the portable kernels of FlexAttention share (mma.sync, sm_80 and later; bf16 or f16): tiles in shared memory,
// the walk over the blocks that a mask leaves, scores. "device/generated/program.cuh" is written for each pair of
// programs (kernels/program/emitter.h):
//   bool maskMod(int b, int h, int q_idx, int kv_idx, const Captures& c)
//   void intervalRows(int b, int h, int q_idx, const Captures& c, int& low, int& high)
//   float scoreMod(float score, int b, int h, int q_idx, int kv_idx, const Captures& c)
//   float scoreGradient(float score, float upstream, int b, int h, int q_idx, int kv_idx, const Captures& c)
//   void captureGradients(the same, Sink&& sink), which calls sink(gradient, offset, term)
// VT_MASK: 0 none, 1 runs of blocks with maskMod in the partial ones, 2 an interval of keys for each row, 3 an interval
// that holds what a row sees, and maskMod in those of its tiles that are not seen whole (attention_seen.cuh).

#include "device/abi/flex_attention.h"
#include "device/lib/mma.cuh"
#include "device/lib/pdl.cuh"
#include "device/lib/warp.cuh"
#include "device/program/program.cuh"

namespace vt {

using vitrine::kernels::abi::FlexAttentionParams;
using vitrine::kernels::abi::FlexRun;
using vitrine::kernels::abi::FlexTensor;

namespace flex {

#include "device/generated/program.cuh"

using T = StorageOf<VT_DTYPE>;
inline constexpr int kDim = VT_HEAD_DIM;
inline constexpr int kDimSteps = kDim / 16;
inline constexpr int kDimTiles = kDim / 8;
inline constexpr int kPitch = kDim * 2 + 16; ///< bytes between rows in shared memory: no bank conflicts
inline constexpr int kPieces = kDim / 8;     ///< 16-byte pieces of a row
inline constexpr float kLog2e = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

__device__ __forceinline__ float minusInfinity() {
    return __int_as_float(static_cast<int>(0xFF800000));
}
__device__ __forceinline__ float exp2Fast(float x) {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}
__device__ __forceinline__ float quadMax(float x) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
    return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ __forceinline__ float quadSum(float x) {
    x += __shfl_xor_sync(kAllLanes, x, 1);
    return x + __shfl_xor_sync(kAllLanes, x, 2);
}

__device__ __forceinline__ T* rowsOf(const FlexTensor& tensor, int batch, int head) {
    return static_cast<T*>(tensor.data) + batch * tensor.batchStride + head * tensor.headStride;
}

/// Address of this lane's row for ldmatrix of a 16 x 16 block: rows in the order of B fragments (two tiles of 8 rows).
__device__ __forceinline__ u32 rowMatrixOffset(int lane) {
    return static_cast<u32>((lane % 8 + lane / 16 * 8) * kPitch + lane / 8 % 2 * 16);
}
/// The same for a B operand whose contracted axis runs along the rows: to be transposed.
__device__ __forceinline__ u32 contractedMatrixOffset(int lane) {
    return static_cast<u32>((lane % 8 + lane / 8 % 2 * 8) * kPitch + lane / 16 * 16);
}
/// For A fragments: 16 rows.
__device__ __forceinline__ u32 operandMatrixOffset(int lane) {
    return static_cast<u32>(lane % 16 * kPitch + lane / 16 * 16);
}

/// `kRows` rows from `begin` on into shared memory; rows from `end` on are zeros. Of narrow heads there may be fewer
/// pieces than threads.
template <int kRows, int kThreads>
__device__ __forceinline__ void loadRows(const T* from, i64 stride, int begin, int end, u32 to) {
#pragma unroll
    for (int i = 0; i < ceilDiv(kRows * kPieces, kThreads); ++i) {
        const int piece = i * kThreads + static_cast<int>(threadIdx.x);
        if (kRows * kPieces % kThreads != 0 && piece >= kRows * kPieces) {
            break;
        }
        const int row = piece / kPieces;
        const bool inside = begin + row < end;
        const T* address = from + (inside ? (begin + row) * stride : 0) + piece % kPieces * 8;
        copyAsync16(to + static_cast<u32>(row * kPitch + piece % kPieces * 16), address, inside);
    }
}

/// Tiles of kTile rows (or keys) of the blocks in a list of runs, in order; kBackwards: the last first.
template <int kTile, bool kBackwards = false> class RunWalk {
public:
    __device__ __forceinline__ RunWalk(const FlexRun* runs, i64 begin, i64 end, int blockSize, int limit)
        : run_(runs + (kBackwards ? end - 1 : begin)), end_(runs + (kBackwards ? begin - 1 : end)),
          tiles_(blockSize / kTile), limit_(limit) {
        open();
    }
    __device__ __forceinline__ bool done() const { return run_ == end_; }
    __device__ __forceinline__ int begin() const { return tile_ * kTile; }
    __device__ __forceinline__ bool partial() const { return partial_; }
    __device__ __forceinline__ void next() {
        tile_ += kStep;
        if (tile_ == last_) {
            run_ += kStep;
            open();
        }
    }

private:
    static constexpr int kStep = kBackwards ? -1 : 1;

    __device__ __forceinline__ void open() {
        if (run_ != end_) {
            const FlexRun run = *run_;
            partial_ = run.count < 0;
            const int first = run.first * tiles_;
            const int exist = (limit_ + kTile - 1) / kTile; // the last block may be cut
            const int end = min((run.first + (partial_ ? -run.count : run.count)) * tiles_, exist);
            tile_ = kBackwards ? end - 1 : first;
            last_ = kBackwards ? first - 1 : end;
        }
    }

    const FlexRun* run_;
    const FlexRun* end_;
    int tiles_, limit_;
    int tile_ = 0, last_ = 0;
    bool partial_ = false;
};

/// The list of runs of a row of blocks.
__device__ __forceinline__ i64 rowList(const FlexAttentionParams& p, int batch, int head, int query) {
    const i64 blocks = (p.queries + p.queryBlock - 1) / p.queryBlock;
    return ((p.maskBatch == 1 ? 0 : batch) * static_cast<i64>(p.maskHeads) + (p.maskHeads == 1 ? 0 : head)) * blocks +
           query / p.queryBlock;
}

template <int kTile, bool kBackwards = false>
__device__ __forceinline__ RunWalk<kTile, kBackwards> walkRow(const FlexAttentionParams& p, int batch, int head,
                                                              int query) {
    const i64 list = rowList(p, batch, head, query);
    return {p.rowRuns, p.rowOffsets[list], p.rowOffsets[list + 1], p.keyBlock, p.keys};
}
template <int kTile>
__device__ __forceinline__ RunWalk<kTile> walkColumn(const FlexAttentionParams& p, int batch, int head, int key) {
    const i64 blocks = (p.keys + p.keyBlock - 1) / p.keyBlock;
    const i64 list =
        ((p.maskBatch == 1 ? 0 : batch) * static_cast<i64>(p.maskHeads) + (p.maskHeads == 1 ? 0 : head)) * blocks +
        key / p.keyBlock;
    return {p.columnRuns, p.columnOffsets[list], p.columnOffsets[list + 1], p.queryBlock, p.queries};
}

/// Tiles of an interval of keys; those inside [fullLow, fullHigh] need no test. kBackwards: the last first.
template <int kTile, bool kBackwards = false> class IntervalWalk {
public:
    static constexpr int kKeys = kTile;
    static constexpr int kStep = kBackwards ? -1 : 1; ///< the direction

    __device__ __forceinline__ IntervalWalk(int low, int high, int fullLow, int fullHigh)
        : fullLow_(fullLow), fullHigh_(fullHigh) {
        const int first = low / kTile;
        const int end = high < low ? first : high / kTile + 1;
        tile_ = kBackwards ? end - 1 : first;
        last_ = kBackwards ? first - 1 : end;
    }
    __device__ __forceinline__ bool done() const { return tile_ == last_; }
    __device__ __forceinline__ int begin() const { return tile_ * kTile; }
    __device__ __forceinline__ bool partial() const { return begin() < fullLow_ || begin() + kTile - 1 > fullHigh_; }
    __device__ __forceinline__ void next() { tile_ += kStep; }
    /// `tiles` further, but not past the end.
    __device__ __forceinline__ void skip(int tiles) {
        tile_ = kBackwards ? max(tile_ - tiles, last_) : min(tile_ + tiles, last_);
    }

private:
    int tile_, last_, fullLow_, fullHigh_;
};

/// products = A B^T over headDim: B's rows lie in shared memory at bAt, `fragments(k, a)` gives A's of step k.
template <int kRowTiles, int kTiles, class Fragments>
__device__ __forceinline__ void multiplyRows(float (&products)[kRowTiles][kTiles][4], u32 bAt, Fragments fragments) {
    const u32 mine = bAt + rowMatrixOffset(static_cast<int>(threadIdx.x) % 32);
#pragma unroll
    for (int k = 0; k < kDimSteps; ++k) {
        u32 a[kRowTiles][4];
        fragments(k, a);
#pragma unroll
        for (int j = 0; j < kTiles; j += 2) {
            u32 b[4];
            loadMatrix4(b, mine + static_cast<u32>(j * 8 * kPitch + k * 32));
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
                if (k == 0) {
                    mmaFirst<T>(products[r][j], a[r], b[0], b[1]);
                    mmaFirst<T>(products[r][j + 1], a[r], b[2], b[3]);
                } else {
                    mma16816<T>(products[r][j], a[r], b[0], b[1]);
                    mma16816<T>(products[r][j + 1], a[r], b[2], b[3]);
                }
            }
        }
    }
}

/// A's fragments straight from shared memory: `at` is this lane's address (operandMatrixOffset).
struct SharedFragments {
    u32 at;
    template <int kRowTiles> __device__ __forceinline__ void operator()(int k, u32 (&a)[kRowTiles][4]) const {
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
            loadMatrix4(a[r], at + static_cast<u32>(r * 16 * kPitch + k * 32));
        }
    }
};

/// sums += W B: W in the accumulator layout, rounded to T; B's rows (the contracted axis) lie in shared memory at bAt.
template <int kRowTiles, int kTiles>
__device__ __forceinline__ void accumulateRows(float (&sums)[kRowTiles][kDimTiles][4],
                                               const float (&weights)[kRowTiles][kTiles][4], u32 bAt) {
    const u32 mine = bAt + contractedMatrixOffset(static_cast<int>(threadIdx.x) % 32);
#pragma unroll
    for (int j = 0; j < kTiles; j += 2) {
        u32 a[kRowTiles][4];
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
            a[r][0] = packPair<T>(weights[r][j][0], weights[r][j][1]);
            a[r][1] = packPair<T>(weights[r][j][2], weights[r][j][3]);
            a[r][2] = packPair<T>(weights[r][j + 1][0], weights[r][j + 1][1]);
            a[r][3] = packPair<T>(weights[r][j + 1][2], weights[r][j + 1][3]);
        }
#pragma unroll
        for (int d = 0; d < kDimTiles; d += 2) {
            u32 b[4];
            loadMatrix4Transposed(b, mine + static_cast<u32>(j * 8 * kPitch + d * 16));
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
                mma16816<T>(sums[r][d], a[r], b[0], b[1]);
                mma16816<T>(sums[r][d + 1], a[r], b[2], b[3]);
            }
        }
    }
}

template <int kRowTiles> __device__ __forceinline__ void clear(float (&sums)[kRowTiles][kDimTiles][4]) {
#pragma unroll
    for (int i = 0; i < kRowTiles * kDimTiles * 4; ++i) {
        sums[i / (kDimTiles * 4)][i / 4 % kDimTiles][i % 4] = 0;
    }
}

/// Rows from `begin` on (those before `end`) of an accumulator times `factor`.
template <int kRowTiles>
__device__ __forceinline__ void storeRows(const float (&sums)[kRowTiles][kDimTiles][4], T* to, i64 stride, int begin,
                                          int end, float factor) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = begin + r * 16 + half * 8 + lane / 4;
            if (row < end) {
                T* out = to + row * stride + lane % 4 * 2;
#pragma unroll
                for (int d = 0; d < kDimTiles; ++d) {
                    *reinterpret_cast<u32*>(out + d * 8) =
                        packPair<T>(sums[r][d][half * 2] * factor, sums[r][d][half * 2 + 1] * factor);
                }
            }
        }
    }
}

/// Two neighbouring elements of a row.
template <class Out> __device__ __forceinline__ void storePair(Out* to, float low, float high) {
    if constexpr (sizeof(Out) == 2) {
        *reinterpret_cast<u32*>(to) = packPair<Out>(low, high);
    } else {
        to[0] = low;
        to[1] = high;
    }
}

} // namespace flex

} // namespace vt
