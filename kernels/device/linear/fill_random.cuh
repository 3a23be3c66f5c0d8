// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The random values of kernels/ops/linear/fill_random_cpu.cpp, bit for bit: Philox blocks numbered along the tensor;
// normal values are quantiles of 65536 equally likely cells. The first kernel makes the table of quantiles, the second
// fills: a thread takes one Philox block of 16 bytes.

#include "device/abi/fill_random.h"
#include "device/lib/pdl.cuh"
#include "device/lib/types.cuh"

namespace abi = vitrine::kernels::abi;

namespace {

using namespace vt;

constexpr u32 kCells = 65536;

__device__ float quantiles[kCells];

/// The same formula as on the CPU: a rational start (Abramowitz and Stegun 26.2.23), then Newton steps.
__device__ double normalQuantile(double p) {
    const double tail = p < 1 - p ? p : 1 - p;
    const double t = sqrt(-2 * log(tail));
    double z =
        t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
    for (int step = 0; step < 3; ++step) {
        const double error = 0.5 * erfc(z / sqrt(2.0)) - tail;
        z += error * sqrt(2 * 3.14159265358979323846) * exp(z * z / 2);
    }
    return p < 0.5 ? -z : z;
}

struct Block {
    u32 words[4];
};

/// Philox4x32-10 with the counter (position, 0, 0).
__device__ __forceinline__ Block philox(u32 k0, u32 k1, u64 position) {
    u32 c0 = static_cast<u32>(position);
    u32 c1 = static_cast<u32>(position >> 32);
    u32 c2 = 0;
    u32 c3 = 0;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u64 p0 = static_cast<u64>(0xD2511F53U) * c0;
        const u64 p1 = static_cast<u64>(0xCD9E8D57U) * c2;
        const u32 n0 = static_cast<u32>(p1 >> 32) ^ c1 ^ k0;
        const u32 n2 = static_cast<u32>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<u32>(p1);
        c3 = static_cast<u32>(p0);
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return {{c0, c1, c2, c3}};
}

/// Rounded after the product, as the CPU does.
__device__ __forceinline__ float placed(const abi::FillRandomParams& p, float quantile) {
    return __fadd_rn(p.center, __fmul_rn(p.deviation, quantile));
}

#if VT_OUT_DTYPE == VT_U8
constexpr int kPerBlock = 16;
using Value = u8;
__device__ __forceinline__ u8 valueOf(const abi::FillRandomParams& p, const Block& block, int i) {
    const u32 given = static_cast<u32>(p.center); // the constant, or the bits that are clear
    return static_cast<u8>(VT_CONSTANT ? given : block.words[i / 4] >> (i % 4 * 8) & ~given);
}
#elif VT_OUT_DTYPE == VT_F32
constexpr int kPerBlock = 4;
using Value = float;
__device__ __forceinline__ float valueOf(const abi::FillRandomParams& p, const Block& block, int i) {
    const u32 cell = block.words[i] >> 16;
    const float inside = static_cast<float>(block.words[i] & 0xFFFFU) * 0x1.0p-16F - 0.5F;
    const float below = quantiles[cell == 0 ? 0 : cell - 1];
    const float above = quantiles[cell == kCells - 1 ? cell : cell + 1];
    return placed(p, __fadd_rn(quantiles[cell], __fmul_rn(inside * 0.5F, __fsub_rn(above, below))));
}
#else
constexpr int kPerBlock = 8;
using Value = StorageOf<VT_OUT_DTYPE>;
__device__ __forceinline__ Value valueOf(const abi::FillRandomParams& p, const Block& block, int i) {
    return fromFloat<Value>(placed(p, quantiles[block.words[i / 2] >> (i % 2 * 16) & 0xFFFFU]));
}
#endif

} // namespace

extern "C" __global__ void __launch_bounds__(256) fill_random_table(const __grid_constant__ abi::FillRandomParams p) {
    pdl::wait();
    const u32 cell = blockIdx.x * 256 + threadIdx.x;
    quantiles[cell] = static_cast<float>(normalQuantile((cell + 0.5) / kCells));
}

extern "C" __global__ void __launch_bounds__(256) fill_random(const __grid_constant__ abi::FillRandomParams p) {
    pdl::wait();
    const i64 index = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x;
    const i64 first = index * kPerBlock;
    if (first >= p.elements) {
        return;
    }
    const Block block = philox(p.seed, p.stream, static_cast<u64>(index));
    alignas(16) Value values[kPerBlock];
#pragma unroll
    for (int i = 0; i < kPerBlock; ++i) {
        values[i] = valueOf(p, block, i);
    }
    Value* out = static_cast<Value*>(p.out) + first;
    if (first + kPerBlock <= p.elements) {
        *reinterpret_cast<u32x4*>(out) = *reinterpret_cast<const u32x4*>(values);
        return;
    }
    for (int i = 0; i < kPerBlock && first + i < p.elements; ++i) {
        out[i] = values[i];
    }
}
