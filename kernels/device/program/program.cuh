// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the text of emitted programs calls (kernels/program/emitter.h): Python's integer division, wrapping arithmetic,
// loads of captured tensors with indices that may lie anywhere.

#include "device/abi/program.h"
#include "device/lib/types.cuh"

namespace vt::program {

using Captures = vitrine::kernels::abi::ProgramCaptures;
using Capture = vitrine::kernels::abi::ProgramCapture;

template <class I> struct Unsigned;
template <> struct Unsigned<int> {
    using type = unsigned int;
};
template <> struct Unsigned<long long> {
    using type = unsigned long long;
};

template <class I> __device__ __forceinline__ I add(I a, I b) {
    using U = typename Unsigned<I>::type;
    return static_cast<I>(static_cast<U>(a) + static_cast<U>(b));
}
template <class I> __device__ __forceinline__ I sub(I a, I b) {
    using U = typename Unsigned<I>::type;
    return static_cast<I>(static_cast<U>(a) - static_cast<U>(b));
}
template <class I> __device__ __forceinline__ I mul(I a, I b) {
    using U = typename Unsigned<I>::type;
    return static_cast<I>(static_cast<U>(a) * static_cast<U>(b));
}
template <class I> __device__ __forceinline__ I neg(I a) {
    return sub(static_cast<I>(0), a);
}

/// Towards minus infinity; 0 for a division by zero.
template <class I> __device__ __forceinline__ I floorDiv(I a, I b) {
    if (b == 0) {
        return 0;
    }
    if (b == -1) {
        return neg(a);
    }
    const I quotient = a / b;
    return quotient * b != a && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}
template <class I> __device__ __forceinline__ I floorMod(I a, I b) {
    if (b == 0 || b == -1) {
        return 0;
    }
    const I rest = a % b;
    return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}
__device__ __forceinline__ float floorMod(float a, float b) {
    const float rest = fmodf(a, b);
    return rest != 0.0f && ((rest < 0.0f) != (b < 0.0f)) ? rest + b : rest;
}
__device__ __forceinline__ float floorDiv(float a, float b) {
    if (b == 0.0f) {
        return a / b;
    }
    const float rest = fmodf(a, b);
    float quotient = (a - rest) / b;
    if (rest != 0.0f && ((b < 0.0f) != (rest < 0.0f))) {
        quotient -= 1.0f;
    }
    const float floored = floorf(quotient);
    return quotient - floored > 0.5f ? floored + 1.0f : floored;
}

template <class I> __device__ __forceinline__ I power(I base, I exponent) {
    if (exponent < 0) {
        return 0;
    }
    I result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) {
            result = mul(result, base);
        }
        base = mul(base, base);
    }
    return result;
}
template <class I> __device__ __forceinline__ I shiftLeft(I a, I by) {
    using U = typename Unsigned<I>::type;
    return by < 0 || by >= static_cast<I>(8 * sizeof(I)) ? 0 : static_cast<I>(static_cast<U>(a) << by);
}
template <class I> __device__ __forceinline__ I shiftRight(I a, I by) {
    return by < 0 || by >= static_cast<I>(8 * sizeof(I)) ? (a < 0 ? -1 : 0) : a >> by;
}
template <class T> __device__ __forceinline__ T sign(T a) {
    return a > 0 ? T(1) : a < 0 ? T(-1) : a;
}
template <class T> __device__ __forceinline__ T absolute(T a) {
    return a < 0 ? neg(a) : a;
}
template <> __device__ __forceinline__ float absolute<float>(float a) {
    return fabsf(a);
}
/// NaN wins.
template <class T> __device__ __forceinline__ T minimum(T a, T b) {
    return a < b || a != a ? a : b;
}
template <class T> __device__ __forceinline__ T maximum(T a, T b) {
    return a > b || a != a ? a : b;
}

__device__ __forceinline__ float fastTanh(float x) {
    float out;
    asm("tanh.approx.f32 %0, %1;" : "=f"(out) : "f"(x));
    return out;
}
/// 1 - 2 / (1 + e^2x): the absolute error is about 1e-7 everywhere.
__device__ __forceinline__ float tanhByExp(float x) {
    return 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x));
}
__device__ __forceinline__ float sigmoid(float x) {
    return 1.0f / (1.0f + __expf(-x));
}

/// An index into a dimension: below 0 counts from the end, what still lies outside is clamped. `kKnownPositive`: it is
/// not below 0.
template <bool kKnownPositive, class I> __device__ __forceinline__ I place(I index, int extent) {
    if constexpr (!kKnownPositive) {
        index = index < 0 ? index + extent : index;
        index = index < 0 ? 0 : index;
    }
    return index < extent ? index : static_cast<I>(extent - 1);
}

template <class T> __device__ __forceinline__ T element(const Capture& capture, long long offset) {
    return __ldg(static_cast<const T*>(capture.data) + offset);
}
__device__ __forceinline__ float bf16Element(const Capture& capture, long long offset) {
    return toFloat(bf16{element<unsigned short>(capture, offset)});
}
__device__ __forceinline__ float f16Element(const Capture& capture, long long offset) {
    return toFloat(f16{element<unsigned short>(capture, offset)});
}

} // namespace vt::program
