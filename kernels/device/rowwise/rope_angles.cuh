// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Cosine and sine of rotary angles as the CPU's libm gives them, within an ulp, for any float angle below 2^31: the
// quarter turns are taken off in double precision, so that long contexts lose nothing.

#include "device/lib/vector.cuh"

namespace vt {

struct CosSin {
    float cosine, sine;
};

__device__ __forceinline__ CosSin cosSin(float angle) {
    constexpr double kTwoOverPi = 0.63661977236758134308;
    constexpr double kHalfPi = 1.57079632679489661923;
    const double x = static_cast<double>(angle);
    const double quarters = rint(x * kTwoOverPi);
    const float r = static_cast<float>(fma(-quarters, kHalfPi, x));
    const int quadrant = static_cast<int>(quarters);
    const float z = r * r;
    // Minimax polynomials of Cephes sinf and cosf on [-pi/4, pi/4].
    const float sine = fmaf(fmaf(fmaf(-1.9515295891e-4F, z, 8.3321608736e-3F), z, -1.6666654611e-1F) * z, r, r);
    const float cosine = fmaf(fmaf(fmaf(2.443315711809948e-5F, z, -1.388731625493765e-3F), z, 4.166664568298827e-2F),
                              z * z, fmaf(-0.5F, z, 1.0F));
    const bool swapped = (quadrant & 1) != 0;
    CosSin out{swapped ? sine : cosine, swapped ? cosine : sine};
    out.cosine = ((quadrant + 1) & 2) != 0 ? -out.cosine : out.cosine;
    out.sine = (quadrant & 2) != 0 ? -out.sine : out.sine;
    return out;
}

/// Of one pair: angle = position * inverseFrequency, multiplied by the scale in float32, then rounded to T.
template <class T> __device__ __forceinline__ CosSin ropeAngle(int position, float inverseFrequency, float scale) {
    const CosSin exact = cosSin(__fmul_rn(static_cast<float>(position), inverseFrequency));
    return {toFloat(fromFloat<T>(exact.cosine * scale)), toFloat(fromFloat<T>(exact.sine * scale))};
}

/// The cosines and sines of a token, made once by the block for all its heads.
template <int kHeadDim> struct RopeTable {
    float cosines[kHeadDim / 2];
    float sines[kHeadDim / 2];

    /// By all threads of the block, before a barrier.
    template <class T> __device__ __forceinline__ void fill(int position, const float* inverseFrequency, float scale) {
        for (int i = static_cast<int>(threadIdx.x); i < kHeadDim / 2; i += static_cast<int>(blockDim.x)) {
            const CosSin angle = ropeAngle<T>(position, inverseFrequency[i], scale);
            cosines[i] = angle.cosine;
            sines[i] = angle.sine;
        }
    }

    /// Values at .. and kHeadDim / 2 + at .. of a head, half-split form: a and b become their rotated values.
    template <int kCount> __device__ __forceinline__ void rotate(int at, float (&a)[kCount], float (&b)[kCount]) const {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const float first = __fsub_rn(__fmul_rn(a[i], cosines[at + i]), __fmul_rn(b[i], sines[at + i]));
            b[i] = __fadd_rn(__fmul_rn(b[i], cosines[at + i]), __fmul_rn(a[i], sines[at + i]));
            a[i] = first;
        }
    }
};

} // namespace vt
