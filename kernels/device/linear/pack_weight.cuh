// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Weights to INT4 or MXFP4. Groups of 8, 16, .. 256 inputs: a thread takes eight inputs of a row or, with an adapter,
// of four rows, whose A it reads once; neighbouring lanes take a group, so that a warp reads and writes one stretch of
// memory. Other groups: a warp takes a group, eight values a lane at a time, and makes them twice. Blocks go over the
// weights in strides, because each adds to the count of changes once.

#include "device/abi/pack_weight.h"
#include "device/lib/pdl.cuh"
#include "device/linear/pack_codes.cuh"
#include "device/linear/pack_source.cuh"

using namespace vt;

#if VT_FORMAT == VT_FORMAT_MXFP4
using Coder = Mxfp4Coder;
#else
using Coder = Int4Coder<StorageOf<VT_TYPE>, VT_SEVEN != 0>;
#endif
using T = StorageOf<VT_TYPE>;

/// Writes the codes of a piece, where they are new, and what they stand for. Returns how many are new.
__device__ __forceinline__ u32 put(const PackPart& part, i64 piece, const Coder& coder, float (&values)[8],
                                   bool counts) {
    u32* const to = static_cast<u32*>(part.data) + piece;
    const u32 before = counts ? __ldcg(to) : 0;
    const u32 word = coder.word(values);
    // What was read is waited for: a store to a line that is still being read stops the memory for microseconds.
    if (!counts || word != before) {
        *to = word;
    }
#if VT_VALUES_DTYPE != 0
    storePiece(values, static_cast<StorageOf<VT_VALUES_DTYPE>*>(part.values) + piece * 8);
#endif
    return counts ? differentNibbles(before, word) : 0;
}

/// Which pieces a thread takes. Without an adapter pieces are numbered through all rows.
template <int kRows> struct Places {
    i64 pieces[kRows], rows[kRows]; ///< rows of all matrices
    bool inside[kRows];
    i64 matrix = 0;
    int column = 0; ///< of a matrix

    __device__ __forceinline__ Places(const PackPart& part, i64 item) {
        const i64 thread = item * 256 + threadIdx.x;
        if constexpr (VT_A_DTYPE == 0) {
#pragma unroll
            for (int k = 0; k < kRows; ++k) {
                pieces[k] = (item * kRows + k) * 256 + threadIdx.x;
                inside[k] = pieces[k] < part.count;
            }
            return;
        }
        const u32 width = static_cast<u32>(part.in) / 8;
        const u32 strip = static_cast<u32>(thread) / width; // of kRows rows
        const u32 strips = (static_cast<u32>(part.rows) + kRows - 1) / kRows;
        const u32 place = static_cast<u32>(thread) - strip * width;
        column = static_cast<int>(place) * 8;
        const bool some = thread < part.count;
        matrix = some ? strip / strips : 0;
        const u32 first = some ? strip % strips * kRows : 0;
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            inside[k] = some && first + k < static_cast<u32>(part.rows);
            rows[k] = matrix * part.rows + (inside[k] ? first + k : first); // a row that is there in any case
            pieces[k] = rows[k] * width + place;
        }
    }
};

/// With an adapter three blocks of an SM hide what they wait for, where they have the registers.
constexpr int kBlocks = VT_A_DTYPE == 0                                                             ? 1
                        : VT_A_DTYPE == VT_F32 || VT_FORMAT == VT_FORMAT_MXFP4 || VT_TYPE == VT_F16 ? 2
                                                                                                    : 3;

extern "C" __global__ void __launch_bounds__(256, kBlocks)
    pack_weight(const __grid_constant__ vitrine::kernels::abi::PackWeightParams p) {
    constexpr int kLanes = VT_GROUP / 8;
    constexpr int kRows = VT_A_DTYPE == 0 ? 2 : 4;
    pdl::wait();
    const bool counts = p.changed != nullptr;
    u32 different = 0;
    int number = 0;
    const Items items(p.items);
    for (i64 item = items.first; item < items.end; item += items.step) {
        number = partOf(p, item, number);
        const PackPart& part = p.parts[number];
        const Places<kRows> places(part, item - part.first);
        float values[kRows][8] = {};
        if (VT_A_DTYPE != 0 && places.inside[0]) {
            multiplyAdapter(part, places.matrix, places.rows, places.column, values);
        }
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            if (places.inside[k]) {
                addBase(part, places.pieces[k], values[k]);
            }
        }
        roundAll<T>(values);
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
            u32 largest = largestBits(values[k]);
#pragma unroll
            for (int offset = kLanes / 2; offset > 0; offset /= 2) {
                largest = max(largest, __shfl_xor_sync(kAllLanes, largest, offset));
            }
            const Coder coder(largest);
            if (places.inside[k]) {
                different += put(part, places.pieces[k], coder, values[k], counts);
                if (places.pieces[k] % kLanes == 0) {
                    static_cast<Coder::Scale*>(part.scales)[places.pieces[k] / kLanes] = coder.stored();
                }
            }
        }
    }
    if (counts) {
        addCount(different, p.changed);
    }
}

/// Eight values of a group that is no power of two.
__device__ __forceinline__ void loadOfGroup(const PackPart& part, i64 piece, float (&values)[1][8]) {
#pragma unroll
    for (float& value : values[0]) {
        value = 0;
    }
    if constexpr (VT_A_DTYPE != 0) {
        const i64 width = part.in / 8;
        const i64 rows[1] = {piece / width};
        multiplyAdapter(part, rows[0] / part.rows, rows, static_cast<int>(piece - rows[0] * width) * 8, values);
    }
    addBase(part, piece, values[0]);
    roundAll<T>(values);
}

extern "C" __global__ void __launch_bounds__(256)
    pack_weight_wide(const __grid_constant__ vitrine::kernels::abi::PackWeightParams p) {
    pdl::wait();
    const bool counts = p.changed != nullptr;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    u32 different = 0;
    int number = 0;
    const Items items(p.items);
    for (i64 item = items.first; item < items.end; item += items.step) {
        number = partOf(p, item, number);
        const PackPart& part = p.parts[number];
        const i64 group = (item - part.first) * 8 + threadIdx.x / 32;
        if (group >= part.count) {
            continue;
        }
        const int pieces = part.group / 8;
        u32 largest = 0;
        float values[1][8];
        for (int piece = lane; piece < pieces; piece += 32) {
            loadOfGroup(part, group * pieces + piece, values);
            largest = largestBits(values[0], largest);
        }
        const Coder coder(__reduce_max_sync(kAllLanes, largest));
        for (int piece = lane; piece < pieces; piece += 32) {
            loadOfGroup(part, group * pieces + piece, values);
            different += put(part, group * pieces + piece, coder, values[0], counts);
        }
        if (lane == 0) {
            static_cast<Coder::Scale*>(part.scales)[group] = coder.stored();
        }
    }
    if (counts) {
        addCount(different, p.changed);
    }
}
