// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// AdamW with moments of a byte: a warp updates a block of 256 elements, eight a lane. With VT_VECTOR 8 a lane's
// elements are neighbours; with VT_VECTOR 1 they lie 32 apart. VT_MASTER as in adamw.cuh.

#include "device/abi/adamw_8bit.h"
#include "device/lib/pdl.cuh"
#include "device/lib/vector.cuh"
#include "device/lib/warp.cuh"
#include "device/optimizer/adamw_step.cuh"

namespace vt {

namespace adamw8bit {

inline constexpr int kBlock = 256;
inline constexpr int kPerLane = kBlock / 32;
inline constexpr int kWarps = 8;

/// A table of values and the borders between neighbours, in shared memory.
struct Table {
    float map[256], borders[256]; ///< 255 borders are used

    __device__ __forceinline__ void load(const float* values) {
        for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x)) {
            map[i] = values[i];
            borders[i] = i < 255 ? 0.5F * (values[i] + values[i + 1]) : 0.0F;
        }
    }
    /// How many borders lie below x: a number at a border gets the lower code.
    __device__ __forceinline__ u8 nearest(float x) const {
        int code = 0;
#pragma unroll
        for (int bit = 128; bit > 0; bit /= 2) {
            code += x > borders[code + bit - 1] ? bit : 0;
        }
        return static_cast<u8>(code);
    }
};

/// A lane's elements of the block that begins at `begin`; those from n on are absent.
struct Lane {
    i64 begin, n;

    __device__ __forceinline__ i64 at(int i) const {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        return begin + (VT_VECTOR == 8 ? lane * kPerLane + i : lane + 32 * i);
    }
    /// Absent elements are 0.
    template <class T> __device__ __forceinline__ void load(const T* from, float (&out)[kPerLane]) const {
        if (VT_VECTOR == 8 && at(0) < n) {
            loadPiece(from + at(0), out);
            return;
        }
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            out[i] = VT_VECTOR == 1 && at(i) < n ? toFloat(from[at(i)]) : 0.0F;
        }
    }
    template <class T> __device__ __forceinline__ void store(const float (&values)[kPerLane], T* to) const {
        if constexpr (VT_VECTOR == 8) {
            if (at(0) < n) {
                storePiece(values, to + at(0));
            }
        } else {
#pragma unroll
            for (int i = 0; i < kPerLane; ++i) {
                if (at(i) < n) {
                    to[at(i)] = fromFloat<T>(values[i]);
                }
            }
        }
    }
    /// Codes as moments; those of absent elements are 0.
    __device__ __forceinline__ void expand(const Table& table, const u8* codes, float absmax,
                                           float (&moments)[kPerLane]) const {
        alignas(8) u8 bytes[kPerLane] = {};
        if constexpr (VT_VECTOR == 8) {
            if (at(0) < n) {
                *reinterpret_cast<u32x2*>(bytes) = *reinterpret_cast<const u32x2*>(codes + at(0));
            }
        } else {
#pragma unroll
            for (int i = 0; i < kPerLane; ++i) {
                bytes[i] = at(i) < n ? codes[at(i)] : u8{0};
            }
        }
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            moments[i] = at(i) < n ? table.map[bytes[i]] * absmax : 0.0F;
        }
    }
    /// The reverse; gives the scale.
    __device__ __forceinline__ float pack(const Table& table, const float (&moments)[kPerLane], u8* codes) const {
        float absmax = 0;
#pragma unroll
        for (const float moment : moments) {
            absmax = fmaxf(absmax, fabsf(moment));
        }
        absmax = warpMax(absmax);
        alignas(8) u8 bytes[kPerLane];
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            bytes[i] = table.nearest(absmax > 0.0F ? moments[i] / absmax : 0.0F);
        }
        if constexpr (VT_VECTOR == 8) {
            if (at(0) < n) {
                *reinterpret_cast<u32x2*>(codes + at(0)) = *reinterpret_cast<const u32x2*>(bytes);
            }
        } else {
#pragma unroll
            for (int i = 0; i < kPerLane; ++i) {
                if (at(i) < n) {
                    codes[at(i)] = bytes[i];
                }
            }
        }
        return absmax;
    }
};

} // namespace adamw8bit

extern "C" __global__ void __launch_bounds__(32 * adamw8bit::kWarps)
    adamw_8bit(const __grid_constant__ vitrine::kernels::abi::AdamW8BitParams p) {
    using namespace adamw8bit;
    using Parameter = StorageOf<VT_PARAMETER_DTYPE>;
    using Gradient = StorageOf<VT_GRADIENT_DTYPE>;
    __shared__ Table tables[2];
    pdl::wait();
    tables[0].load(p.maps);
    tables[1].load(p.maps + 256);
    __syncthreads();
    const float factor = gradientFactor(p.gradScale);
    Parameter* parameter = static_cast<Parameter*>(p.parameter);
    const i64 blocks = (p.n + kBlock - 1) / kBlock;
    const i64 first = static_cast<i64>(blockIdx.x) * kWarps + threadIdx.x / 32;
    for (i64 block = first; block < blocks; block += static_cast<i64>(gridDim.x) * kWarps) {
        const Lane lane{block * kBlock, p.n};
        float values[kPerLane], gradients[kPerLane], moment1[kPerLane], moment2[kPerLane];
        if constexpr (VT_MASTER) {
            lane.load(p.master, values);
        } else {
            lane.load(parameter, values);
        }
        lane.load(static_cast<const Gradient*>(p.gradient), gradients);
        lane.expand(tables[0], p.code1, p.absmax1[block], moment1);
        lane.expand(tables[1], p.code2, p.absmax2[block], moment2);
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            adamWUpdate(p.step, gradients[i] * factor, values[i], moment1[i], moment2[i]);
        }
        if constexpr (VT_MASTER) {
            lane.store(values, p.master);
        }
        lane.store(values, parameter);
        // The maxima meet in the warp: by then every lane has read the old scales.
        const float absmax1 = lane.pack(tables[0], moment1, p.code1);
        const float absmax2 = lane.pack(tables[1], moment2, p.code2);
        if (threadIdx.x % 32 == 0) {
            p.absmax1[block] = absmax1;
            p.absmax2[block] = absmax2;
        }
    }
}

} // namespace vt
