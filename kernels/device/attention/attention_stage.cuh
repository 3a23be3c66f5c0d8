// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a warp of attention_decode holds of 16 keys and values, and its products with them. A stage is 32 rows in shared
// memory, keys and after them values; of a quantized cache the rows are its bytes, and after all rows lie their 32
// scales.
//
// A product's rows are 16 keys or 16 columns of the values, its columns 8 heads (mma.cuh). So of the scores of head set
// n, lane l has, with g = l / 4 and t = l % 4, those of the keys g (elements 0, 1) and g + 8 (2, 3) and the heads 8n +
// 2t and the next.
//
// Bytes become pairs of bf16 in registers, where a word's bytes 0 and 2 make one pair and 1 and 3 the other
// (bytes::split). So of each 16 elements of the head dim, lane l holds of a key the elements 4t, 4t + 2 in the place of
// 2t, 2t + 1 of mma.cuh, and 4t + 1, 4t + 3 in that of 2t + 8, 2t + 9; queries are brought into that order, for which a
// product does not matter. Of the output, rows g of a tile are its columns 2g, and rows g + 8 the columns 2g + 1.
// Scores are multiplied by the keys' scales, weights by the values'.

#include "device/attention/attention_mma.cuh"

namespace vt {

namespace decode {

using Cache = StorageOf<VT_CACHE_DTYPE>;
inline constexpr bool kBytes = sizeof(Cache) == 1;
inline constexpr int kRowPitch = kBytes ? kDim + 16 : kPitch; ///< bytes between rows of a stage: no bank conflicts
inline constexpr int kScalesAt = 32 * kRowPitch;
inline constexpr int kStageBytes = kScalesAt + (kBytes ? 128 : 0);
inline constexpr bool kQueryInShared = kDim > 128; ///< registers would not suffice
static_assert(!kBytes || (kDim % 32 == 0 && sizeof(T) == 2), "bytes come 32 of a row at a time");

using Queries = u32[kQueryInShared ? 1 : kDimSteps][4];

/// Puts the low halves of two words together, and the high ones.
__device__ __forceinline__ u32 lowHalves(u32 a, u32 b) {
    return __byte_perm(a, b, 0x5410);
}
__device__ __forceinline__ u32 highHalves(u32 a, u32 b) {
    return __byte_perm(a, b, 0x7632);
}

/// Floats of the step's own tokens as the bytes that the cache will hold. A warp together; `row` may be another lane's.
__device__ __forceinline__ void bringNewRow(const T* row, u32 to, u32 scaleAt) {
    constexpr int kShare = ceilDiv(kDim, 32);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float x[kShare];
    u32 largest = 0;
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
        x[i] = toFloat(row[lane * kShare + i]);
        largest = max(largest, bytes::magnitudeBits(x[i]));
    }
    const bytes::Scale by = bytes::scaleOf<Cache>(__reduce_max_sync(kAllLanes, largest));
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
        const u32 byte = bytes::quantized<Cache>(x[i], by).bits;
        asm volatile("st.shared.u8 [%0], %1;" ::"r"(to + static_cast<u32>(lane * kShare + i)), "r"(byte) : "memory");
    }
    if (lane == 0) {
        asm volatile("st.shared.f32 [%0], %1;" ::"r"(scaleAt), "f"(by.scale) : "memory");
    }
}

__device__ __forceinline__ void bringBytes(const AttentionParams& p, const SequenceKeys::Place& place, int kvHead,
                                           u32 stage) {
    constexpr int kRowPieces = kDim / 16;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool isValue = lane >= 16;
    const bool isNew = SequenceKeys::isNew(place);
    const Cache* mine = isNew ? nullptr : SequenceKeys::elements<Cache>(p, place, isValue);
    mine = mine == nullptr ? nullptr : mine + static_cast<i64>(kvHead) * kDim;
    u32 added = __ballot_sync(kAllLanes, isNew);
#pragma unroll kDim <= 128 ? kRowPieces : 4
    for (int i = 0; i < kRowPieces; ++i) {
        const int piece = i * 32 + lane;
        const int from = piece / kRowPieces;
        const auto address = reinterpret_cast<const Cache*>(__shfl_sync(kAllLanes, reinterpret_cast<u64>(mine), from));
        const bool valid = address != nullptr;
        if ((added >> from & 1) == 0) {
            copyAsync16(stage + static_cast<u32>(from * kRowPitch + piece % kRowPieces * 16),
                        valid ? address + piece % kRowPieces * 16 : p.q, valid);
        }
    }
    if (!isNew) {
        const float* scale = SequenceKeys::scale(p, place, isValue, kvHead);
        copyAsyncSmall<4>(stage + kScalesAt + static_cast<u32>(lane * 4), scale == nullptr ? p.q : scale,
                          scale != nullptr);
    }
    if (added == 0) {
        return;
    }
    const T* row = isNew ? SequenceKeys::elements<T>(p, place, isValue) + static_cast<i64>(kvHead) * kDim : nullptr;
    for (; added != 0; added &= added - 1) {
        const int from = __ffs(static_cast<int>(added)) - 1;
        bringNewRow(reinterpret_cast<const T*>(__shfl_sync(kAllLanes, reinterpret_cast<u64>(row), from)),
                    stage + static_cast<u32>(from * kRowPitch), stage + kScalesAt + static_cast<u32>(from * 4));
    }
}

/// Starts copying into a stage; lane l names the place of key (below 16) or value l % 16. A warp together.
__device__ __forceinline__ void bringRows(const AttentionParams& p, const SequenceKeys::Place& place, int kvHead,
                                          u32 stage) {
    if constexpr (kBytes) {
        bringBytes(p, place, kvHead, stage);
    } else {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const T* mine = SequenceKeys::elements<T>(p, place, lane >= 16);
        mine = mine == nullptr ? nullptr : mine + static_cast<i64>(kvHead) * kDim;
#pragma unroll kDim <= 128 ? kPieces : 4
        for (int i = 0; i < kPieces; ++i) {
            const int piece = i * 32 + lane; // of 2 * 16 * kPieces: keys, then values
            const int from = piece / kPieces;
            const auto address = reinterpret_cast<const T*>(__shfl_sync(kAllLanes, reinterpret_cast<u64>(mine), from));
            const bool valid = address != nullptr;
            copyAsync16(stage + static_cast<u32>(from * kPitch + piece % kPieces * 16),
                        valid ? address + piece % kPieces * 8 : static_cast<const T*>(p.q), valid);
        }
    }
}

/// The same where the 16 keys lie next to one another, from `place` on.
__device__ __forceinline__ void bringRun(const AttentionParams& p, const SequenceKeys::Place& place, int kvHead,
                                         u32 stage) {
    constexpr int kElements = 16 / static_cast<int>(sizeof(Cache)); ///< of 16 bytes
    constexpr int kRowPieces = kDim / kElements;
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const Cache* rows = SequenceKeys::elements<Cache>(p, place, half == 1) + static_cast<i64>(kvHead) * kDim;
        const u32 to = stage + static_cast<u32>(half * 16 * kRowPitch);
        if constexpr (32 % kRowPieces == 0) {
            constexpr int kStep = 32 / kRowPieces; ///< rows at a time
            const Cache* from = rows + lane / kRowPieces * p.cache.tokenStride + lane % kRowPieces * kElements;
            const u32 at = to + static_cast<u32>(lane / kRowPieces * kRowPitch + lane % kRowPieces * 16);
#pragma unroll
            for (int row = 0; row < 16; row += kStep) {
                copyAsync16(at + static_cast<u32>(row * kRowPitch), from);
                from += kStep * p.cache.tokenStride;
            }
        } else {
            for (int i = 0; i < kRowPieces / 2; ++i) {
                const int row = (i * 32 + lane) / kRowPieces;
                const int piece = (i * 32 + lane) % kRowPieces;
                copyAsync16(to + static_cast<u32>(row * kRowPitch + piece * 16),
                            rows + row * p.cache.tokenStride + piece * kElements);
            }
        }
    }
    if constexpr (kBytes) {
        copyAsyncSmall<4>(stage + kScalesAt + static_cast<u32>(lane * 4),
                          SequenceKeys::scale(p, place, lane >= 16, kvHead) + lane % 16);
    }
}

/// 16 bytes of a row of q, columns 8 * piece and on, into the row `to` of shared memory.
__device__ __forceinline__ void storeQuery(unsigned char* to, int piece, const u32x4& value) {
    if constexpr (kBytes) {
        unsigned char* const group = to + piece / 2 * 32 + piece % 2 * 8;
        *reinterpret_cast<u32x2*>(group) = {lowHalves(value.x, value.y), lowHalves(value.z, value.w)};
        *reinterpret_cast<u32x2*>(group + 16) = {highHalves(value.x, value.y), highHalves(value.z, value.w)};
    } else {
        *reinterpret_cast<u32x4*>(to + piece * 16) = value;
    }
}

/// B fragments of q: words 0 and 2 of a step are the heads of set 0, 1 and 3 those of set 1; `queries` begins at the
/// first head.
__device__ __forceinline__ void loadQueries(Queries& q, const T* queries, int rows) {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int k = 0; k < kDimSteps; ++k) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const T* at = queries + k * 16 + (kBytes ? 4 * t + 2 * half : half * 8 + 2 * t);
            q[k][2 * half] = g < rows ? *reinterpret_cast<const u32*>(at + g * kDim) : 0;
            q[k][2 * half + 1] = kHeadSets > 1 && g + 8 < rows ? *reinterpret_cast<const u32*>(at + (g + 8) * kDim) : 0;
        }
        if constexpr (kBytes) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const u32 low = q[k][i];
                q[k][i] = lowHalves(low, q[k][2 + i]);
                q[k][2 + i] = highHalves(low, q[k][2 + i]);
            }
        }
    }
}

/// The B fragments of step k: `q`'s, or from the rows at `queryAt`.
__device__ __forceinline__ void queryFragment(u32 (&b)[4], const Queries& q, u32 queryAt, int k) {
    if constexpr (kQueryInShared) {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        loadMatrix4(b, queryAt + static_cast<u32>(lane % 16 * kPitch + lane / 16 * 16 + k * 32));
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            b[i] = q[k][i];
        }
    }
}

/// Where a lane's rows lie for ldmatrix of 16 rows and 32 bytes.
__device__ __forceinline__ u32 byteMatrixOffset(int lane) {
    return static_cast<u32>((lane % 8 + lane / 8 % 2 * 8) * kRowPitch + lane / 16 * 16);
}

/// Scales of the keys or values g and g + 8.
__device__ __forceinline__ float2 scalesOf(u32 stage, int half) {
    const u32 at = stage + kScalesAt + static_cast<u32>(half * 64 + static_cast<int>(threadIdx.x) % 32 / 4 * 4);
    float2 out;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(out.x) : "r"(at) : "memory");
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(out.y) : "r"(at + 32) : "memory");
    return out;
}

using Scores = float[kHeadSets][4];
using Sums = float[kHeadSets][kDimTiles][4];

/// The product of step k: `keys` is its A fragment.
__device__ __forceinline__ void multiplyStep(Scores (&parts)[2], const u32 (&keys)[4], const Queries& q, u32 queryAt,
                                             int k) {
    u32 b[4];
    queryFragment(b, q, queryAt, k);
#pragma unroll
    for (int n = 0; n < kHeadSets; ++n) {
        mma16816<T>(parts[k % 2][n], keys, b[n], b[n + 2]);
    }
}

/// scores = q k of the stage's 16 keys, which bytes' scales are part of.
__device__ __forceinline__ void multiplyKeys(Scores& scores, const Queries& q, u32 queryAt, u32 stage) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Scores parts[2] = {}; // two sums: products wait for each other less
    float2 scale{1, 1};
    if constexpr (kBytes) {
#pragma unroll
        for (int k = 0; k < kDimSteps; k += 2) {
            u32 words[4];
            loadMatrix4(words, stage + byteMatrixOffset(lane) + k * 16);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                u32 keys[4];
                bytes::split<Cache>(words[2 * i], keys[0], keys[2]);
                bytes::split<Cache>(words[2 * i + 1], keys[1], keys[3]);
                multiplyStep(parts, keys, q, queryAt, k + i);
            }
        }
        scale = scalesOf(stage, 0);
    } else {
#pragma unroll
        for (int k = 0; k < kDimSteps; ++k) {
            u32 keys[4];
            loadMatrix4(keys, stage + keyMatrixOffset(lane) + k * 32);
            multiplyStep(parts, keys, q, queryAt, k);
        }
    }
#pragma unroll
    for (int i = 0; i < kHeadSets * 4; ++i) {
        scores[i / 4][i % 4] = (parts[0][i / 4][i % 4] + parts[1][i / 4][i % 4]) * (i % 4 < 2 ? scale.x : scale.y);
    }
}

/// Sums of older weights become smaller: by `shrink` of the set's two heads.
__device__ __forceinline__ void shrinkSums(Sums& sums, const float (&shrink)[kHeadSets][2]) {
#pragma unroll
    for (int n = 0; n < kHeadSets; ++n) {
#pragma unroll
        for (int i = 0; i < kDimTiles * 4; ++i) {
            sums[n][i / 4][i % 4] *= shrink[n][i % 2];
        }
    }
}

/// sums += values weights.
__device__ __forceinline__ void addValues(Sums& sums, const Scores& weights, u32 stage) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const u32 values = stage + 16 * kRowPitch;
    float2 scale{1, 1};
    if constexpr (kBytes) {
        scale = scalesOf(stage, 1);
    }
    u32 b[kHeadSets][2];
#pragma unroll
    for (int n = 0; n < kHeadSets; ++n) {
        const float(&w)[4] = weights[n];
        b[n][0] = transposed(packPair<T>(w[0] * scale.x, w[1] * scale.x));
        b[n][1] = transposed(packPair<T>(w[2] * scale.y, w[3] * scale.y));
    }
    const auto add = [&](int d, const u32(&a)[4]) {
#pragma unroll
        for (int n = 0; n < kHeadSets; ++n) {
            mma16816<T>(sums[n][d], a, b[n][0], b[n][1]);
        }
    };
    if constexpr (kBytes) {
#pragma unroll
        for (int d = 0; d < kDimTiles; d += 2) {
            u32 words[4];
            loadMatrix4Transposed(words, values + byteMatrixOffset(lane) + d * 16);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                u32 a[4];
                bytes::split<Cache>(words[2 * i], a[0], a[1]);
                bytes::split<Cache>(words[2 * i + 1], a[2], a[3]);
                add(d + i, a);
            }
        }
    } else {
#pragma unroll
        for (int d = 0; d < kDimTiles; ++d) {
            u32 a[4];
            loadMatrix4Transposed(a, values + valueMatrixOffset(lane) + d * 32);
            add(d, a);
        }
    }
}

/// A head's two columns of tile d into its row of kDim floats.
__device__ __forceinline__ void storeSums(float* row, int d, float first, float second) {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
    row[d * 16 + (kBytes ? 2 * g : g)] = first;
    row[d * 16 + (kBytes ? 2 * g + 1 : g + 8)] = second;
}

} // namespace decode

} // namespace vt
