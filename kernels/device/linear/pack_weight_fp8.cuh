// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Weights to FP8 with a float32 scale for a block of rowGroup by group weights: a thread block takes one. The values of
// blocks of 128 by 128 wait in shared memory until their scale is known; of others each value is made twice.

#include "device/abi/pack_weight.h"
#include "device/attention/kv_bytes.cuh"
#include "device/lib/pdl.cuh"
#include "device/linear/pack_codes.cuh"
#include "device/linear/pack_source.cuh"

using namespace vt;
using T = StorageOf<VT_TYPE>;

/// A block of weights.
struct Block {
    i64 firstRow, index; ///< of all rows, of all blocks
    i64 matrix;
    int column, width, height;

    __device__ __forceinline__ Block(const PackPart& part, i64 number) : index(number) {
        const i64 across = (part.in + part.group - 1) / part.group;
        const i64 down = (part.rows + part.rowGroup - 1) / part.rowGroup;
        const i64 line = number / across;
        matrix = line / down;
        const int first = static_cast<int>(line - matrix * down) * part.rowGroup;
        column = static_cast<int>(number - line * across) * part.group;
        width = min(part.group, part.in - column);
        height = min(part.rowGroup, part.rows - first);
        firstRow = matrix * part.rows + first;
    }
};

struct Fp8Coder {
    float scale; ///< NaN where a value is not finite
    bool finite;
    Divisor divisor;

    __device__ __forceinline__ explicit Fp8Coder(u32 largest)
        : scale(scaleOf(largest)), finite(largest < kInfinityBits), divisor(scale) {}
    __device__ __forceinline__ u32 code(float value) const {
        return finite ? bytes::nearest<e4m3>(divisor.quotient(value)).bits : 0U;
    }
    __device__ __forceinline__ float value(u32 code) const { return __fmul_rn(e4m3Value(code), scale); }

private:
    __device__ static __forceinline__ float scaleOf(u32 largest) {
        const float narrow = __fdiv_rn(__uint_as_float(largest), 448.0F);
        const float scale = narrow == 0.0F ? 1.0F : narrow;
        return largest < kInfinityBits ? scale : __uint_as_float(0x7FC00000U);
    }
};

/// The largest magnitude of a thread block.
__device__ __forceinline__ u32 largestOfBlock(u32 largest) {
    __shared__ u32 most;
    __syncthreads(); // the last one was read
    if (threadIdx.x == 0) {
        most = 0;
    }
    __syncthreads();
    largest = __reduce_max_sync(kAllLanes, largest);
    if (threadIdx.x % 32 == 0) {
        atomicMax(&most, largest);
    }
    __syncthreads();
    return most;
}

__device__ __forceinline__ u32 putPiece(const PackPart& part, i64 row, int column, const Fp8Coder& coder,
                                        float (&values)[8], bool counts) {
    const i64 piece = (row * part.in + column) / 8;
    u32x2* const to = static_cast<u32x2*>(part.data) + piece;
    u32 words[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u32 code = coder.code(values[i]);
        words[i / 4] |= code << (i % 4 * 8);
        values[i] = coder.value(code);
    }
    const u32x2 before = counts ? *to : u32x2{};
    const u32 different = counts ? differentBytes(before.x, words[0]) + differentBytes(before.y, words[1]) : 0;
    if (!counts || different > 0) { // as for INT4
        *to = u32x2{words[0], words[1]};
    }
#if VT_VALUES_DTYPE != 0
    storePiece(values, static_cast<StorageOf<VT_VALUES_DTYPE>*>(part.values) + piece * 8);
#endif
    return different;
}

extern "C" __global__ void __launch_bounds__(256)
    pack_weight_fp8(const __grid_constant__ vitrine::kernels::abi::PackWeightParams p) {
    constexpr int kRows = VT_A_DTYPE == 0 || VT_A_DTYPE == VT_F32 ? 2 : 4; // of a thread at a time
    constexpr int kSide = 128, kAcross = kSide / 8, kDown = 256 / kAcross;
    extern __shared__ __align__(16) unsigned char memory[];
    T* const tile = reinterpret_cast<T*>(memory); // (128, 128) values
    pdl::wait();
    const bool counts = p.changed != nullptr;
    const int place = static_cast<int>(threadIdx.x) % kAcross * 8;
    const int firstRow = static_cast<int>(threadIdx.x) / kAcross;
    u32 different = 0;
    int number = 0;
    const Items items(p.items);
    for (i64 item = items.first; item < items.end; item += items.step) {
        number = partOf(p, item, number);
        const PackPart& part = p.parts[number];
        const Block block(part, item - part.first);
        const bool across = place < block.width;
        u32 largest = 0;
#pragma unroll 1
        for (int begin = firstRow; across && begin < block.height; begin += kRows * kDown) {
            float values[kRows][8] = {};
            i64 rows[kRows];
#pragma unroll
            for (int k = 0; k < kRows; ++k) {
                const int row = min(begin + k * kDown, block.height - 1); // one that is there in any case
                rows[k] = block.firstRow + row;
            }
            multiplyAdapter(part, block.matrix, rows, block.column + place, values);
#pragma unroll
            for (int k = 0; k < kRows; ++k) {
                addBase(part, (rows[k] * part.in + block.column + place) / 8, values[k]);
            }
            roundAll<T>(values);
#pragma unroll
            for (int k = 0; k < kRows; ++k) {
                largest = largestBits(values[k], largest);
                if (begin + k * kDown < block.height) {
                    storePiece(values[k], tile + (begin + k * kDown) * kSide + place);
                }
            }
        }
        const Fp8Coder coder(largestOfBlock(largest));
#pragma unroll 2
        for (int row = firstRow; across && row < block.height; row += kDown) {
            float values[8];
            loadPiece(tile + row * kSide + place, values);
            different += putPiece(part, block.firstRow + row, block.column + place, coder, values, counts);
        }
        if (threadIdx.x == 0) {
            static_cast<float*>(part.scales)[block.index] = coder.scale;
        }
    }
    if (counts) {
        addCount(different, p.changed);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    pack_weight_blocks(const __grid_constant__ vitrine::kernels::abi::PackWeightParams p) {
    pdl::wait();
    const bool counts = p.changed != nullptr;
    u32 different = 0;
    int number = 0;
    const Items items(p.items);
    for (i64 item = items.first; item < items.end; item += items.step) {
        number = partOf(p, item, number);
        const PackPart& part = p.parts[number];
        const Block block(part, item - part.first);
        const i64 count = static_cast<i64>(block.width) * block.height;
        const auto value = [&](i64 i) {
            return rounded<T>(mergedElement(part, block.firstRow + i / block.width,
                                            block.column + static_cast<int>(i % block.width)));
        };
        u32 largest = 0;
#pragma unroll 1
        for (i64 i = threadIdx.x; i < count; i += 256) {
            largest = max(largest, bytes::magnitudeBits(value(i)));
        }
        const Fp8Coder coder(largestOfBlock(largest));
#pragma unroll 1
        for (i64 i = threadIdx.x; i < count; i += 256) {
            const i64 at = (block.firstRow + i / block.width) * part.in + block.column + i % block.width;
            const u32 code = coder.code(value(i));
            u8* const to = static_cast<u8*>(part.data) + at;
            different += counts && *to != code;
            *to = static_cast<u8>(code);
#if VT_VALUES_DTYPE != 0
            using Value = StorageOf<VT_VALUES_DTYPE>;
            static_cast<Value*>(part.values)[at] = fromFloat<Value>(coder.value(code));
#endif
        }
        if (threadIdx.x == 0) {
            static_cast<float*>(part.scales)[block.index] = coder.scale;
        }
    }
    if (counts) {
        addCount(different, p.changed);
    }
}
