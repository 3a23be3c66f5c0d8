// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Interval arithmetic of mask programs, as kernels/program/interval.h on the CPU: what emitMaskSpan
// (kernels/program/emitter.h) writes calls this. A span holds every value that an integer or a truth (0 and 1) can have
// over a box of inputs; what could wrap, or is not followed here, becomes the whole type. Captured tensors enter by the
// least and the largest element of the stretch that is read. A warp together, with the same arguments in all lanes.

#include "device/lib/warp.cuh"
#include "device/program/program.cuh"

namespace vt::span {

using program::Capture;
using program::Captures;

struct Span {
    i64 low, high;
    __device__ __forceinline__ bool single() const { return low == high; }
};

__device__ __forceinline__ Span exact(i64 value) {
    return {value, value};
}
__device__ __forceinline__ Span hull(const Span& a, const Span& b) {
    return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

inline constexpr i64 kLeastInt = -2147483647LL - 1;
inline constexpr i64 kLargestInt = 2147483647LL;

template <class I> __device__ __forceinline__ Span whole();
template <> __device__ __forceinline__ Span whole<bool>() {
    return {0, 1};
}
template <> __device__ __forceinline__ Span whole<int>() {
    return {kLeastInt, kLargestInt};
}
template <> __device__ __forceinline__ Span whole<i64>() {
    return {-9223372036854775807LL - 1, 9223372036854775807LL};
}

/// Sums and products of what fits 32 bits do not wrap in 64.
__device__ __forceinline__ bool fits32(const Span& a) {
    return a.low >= kLeastInt && a.high <= kLargestInt;
}
template <class I> __device__ __forceinline__ Span fitted(const Span& a) {
    return a.low < whole<I>().low || a.high > whole<I>().high ? whole<I>() : a;
}

template <class I> __device__ __forceinline__ Span add(const Span& a, const Span& b) {
    return fits32(a) && fits32(b) ? fitted<I>({a.low + b.low, a.high + b.high}) : whole<I>();
}
template <class I> __device__ __forceinline__ Span sub(const Span& a, const Span& b) {
    return fits32(a) && fits32(b) ? fitted<I>({a.low - b.high, a.high - b.low}) : whole<I>();
}
template <class I> __device__ __forceinline__ Span neg(const Span& a) {
    return sub<I>(exact(0), a);
}
template <class I> __device__ __forceinline__ Span mul(const Span& a, const Span& b) {
    if (!fits32(a) || !fits32(b)) {
        return whole<I>();
    }
    return fitted<I>(
        hull(hull(exact(a.low * b.low), exact(a.low * b.high)), hull(exact(a.high * b.low), exact(a.high * b.high))));
}
__device__ __forceinline__ Span minimum(const Span& a, const Span& b) {
    return {a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}
__device__ __forceinline__ Span maximum(const Span& a, const Span& b) {
    return {a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}
template <class I> __device__ __forceinline__ Span absolute(const Span& a) {
    if (a.low >= 0) {
        return a;
    }
    const Span turned = neg<I>(a);
    return a.high <= 0 ? turned : maximum(exact(0), hull(a, turned));
}
__device__ __forceinline__ Span sign(const Span& a) {
    return {program::sign(a.low), program::sign(a.high)};
}
/// By what is positive.
template <class I> __device__ __forceinline__ Span floorDiv(const Span& a, const Span& b) {
    if (b.low <= 0) {
        return whole<I>();
    }
    const auto quotient = [](i64 x, i64 y) { return exact(program::floorDiv(x, y)); };
    return b.single() ? Span{quotient(a.low, b.low).low, quotient(a.high, b.low).low}
                      : hull(hull(quotient(a.low, b.low), quotient(a.low, b.high)),
                             hull(quotient(a.high, b.low), quotient(a.high, b.high)));
}
template <class I> __device__ __forceinline__ Span floorMod(const Span& a, const Span& b) {
    if (b.low <= 0) {
        return whole<I>();
    }
    if (a.low >= 0 && a.high < b.low) {
        return a;
    }
    if (b.single() && program::floorDiv(a.low, b.low) == program::floorDiv(a.high, b.low)) {
        return {program::floorMod(a.low, b.low), program::floorMod(a.high, b.low)};
    }
    return {0, b.high - 1};
}
template <class I> __device__ __forceinline__ Span shiftRight(const Span& a, const Span& by) {
    return by.single() && by.low >= 0 && by.low < static_cast<i64>(8 * sizeof(I))
               ? Span{a.low >> by.low, a.high >> by.low}
               : whole<I>();
}
template <class I> __device__ __forceinline__ Span shiftLeft(const Span& a, const Span& by) {
    return by.single() && by.low >= 0 && by.low < 31 ? mul<I>(a, exact(1LL << by.low)) : whole<I>();
}

template <class I> __device__ __forceinline__ Span bitAnd(const Span& a, const Span& b) {
    if (a.single() && b.single()) {
        return exact(a.low & b.low);
    }
    return a.low >= 0 && b.low >= 0 ? Span{0, a.high < b.high ? a.high : b.high} : whole<I>();
}
template <class I> __device__ __forceinline__ Span bitOr(const Span& a, const Span& b) {
    return a.single() && b.single() ? exact(a.low | b.low) : whole<I>();
}
template <class I> __device__ __forceinline__ Span bitXor(const Span& a, const Span& b) {
    return a.single() && b.single() ? exact(a.low ^ b.low) : whole<I>();
}
/// Of truths, the lower and the upper ends for themselves.
template <> __device__ __forceinline__ Span bitAnd<bool>(const Span& a, const Span& b) {
    return {a.low & b.low, a.high & b.high};
}
template <> __device__ __forceinline__ Span bitOr<bool>(const Span& a, const Span& b) {
    return {a.low | b.low, a.high | b.high};
}
template <class I> __device__ __forceinline__ Span bitNot(const Span& a) {
    return {~a.high, ~a.low};
}
template <> __device__ __forceinline__ Span bitNot<bool>(const Span& a) {
    return {1 - a.high, 1 - a.low};
}

__device__ __forceinline__ Span truth(bool always, bool ever) {
    return {always ? 1 : 0, ever ? 1 : 0};
}
__device__ __forceinline__ Span less(const Span& a, const Span& b) {
    return truth(a.high < b.low, a.low < b.high);
}
__device__ __forceinline__ Span lessOrEqual(const Span& a, const Span& b) {
    return truth(a.high <= b.low, a.low <= b.high);
}
__device__ __forceinline__ Span equal(const Span& a, const Span& b) {
    return truth(a.single() && b.single() && a.low == b.low, a.low <= b.high && b.low <= a.high);
}
__device__ __forceinline__ Span unequal(const Span& a, const Span& b) {
    return bitNot<bool>(equal(a, b));
}
__device__ __forceinline__ Span select(const Span& condition, const Span& a, const Span& b) {
    return condition.low == 1 ? a : condition.high == 0 ? b : hull(a, b);
}
template <class I> __device__ __forceinline__ Span cast(const Span& a) {
    return fitted<I>(a);
}
template <> __device__ __forceinline__ Span cast<bool>(const Span& a) {
    return unequal(a, exact(0));
}

template <class T> __device__ __forceinline__ i64 elementOf(const Capture& capture, i64 offset) {
    return program::element<T>(capture, offset);
}
template <> __device__ __forceinline__ i64 elementOf<bool>(const Capture& capture, i64 offset) {
    return program::element<unsigned char>(capture, offset) != 0 ? 1 : 0;
}

/// A captured number.
template <class T> __device__ __forceinline__ Span scalar(const Capture& capture) {
    return exact(capture.data != nullptr ? elementOf<T>(capture, 0) : static_cast<i64>(capture.integer));
}

/// Of neighbouring elements; T is their storage.
template <class T> __device__ __forceinline__ Span stretch(const Capture& capture, i64 begin, int count) {
    Span out = exact(elementOf<T>(capture, begin));
    for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32) {
        out = hull(out, exact(elementOf<T>(capture, begin + i)));
    }
    if constexpr (sizeof(T) <= 4) {
        return {__reduce_min_sync(kAllLanes, static_cast<int>(out.low)),
                __reduce_max_sync(kAllLanes, static_cast<int>(out.high))};
    } else {
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) {
            out =
                hull(out, {__shfl_xor_sync(kAllLanes, out.low, offset), __shfl_xor_sync(kAllLanes, out.high, offset)});
        }
        return out;
    }
}

/// What lies at the places of an index into a dimension; false: not followed.
__device__ __forceinline__ bool place(Span& index, int extent) {
    if (index.low < 0) {
        return false;
    }
    index.low = index.low < extent ? index.low : extent - 1;
    index.high = index.high < extent ? index.high : extent - 1;
    return true;
}

inline constexpr i64 kLongestStretch = 1024;

/// A captured tensor; only the last index may have more than one value.
template <class T, class I> __device__ __forceinline__ Span load(const Capture& capture, Span last) {
    if (!place(last, capture.extents[0]) || last.high - last.low >= kLongestStretch) {
        return whole<I>();
    }
    return stretch<T>(capture, last.low, static_cast<int>(last.high - last.low) + 1);
}
template <class T, class I> __device__ __forceinline__ Span load(const Capture& capture, Span row, Span last) {
    if (!place(row, capture.extents[0]) || !place(last, capture.extents[1]) || !row.single() ||
        last.high - last.low >= kLongestStretch) {
        return whole<I>();
    }
    return stretch<T>(capture, row.low * capture.rowStride + last.low, static_cast<int>(last.high - last.low) + 1);
}
template <class T, class I>
__device__ __forceinline__ Span load(const Capture& capture, Span plane, Span row, Span last) {
    if (!place(plane, capture.extents[0]) || !place(row, capture.extents[1]) || !place(last, capture.extents[2]) ||
        !plane.single() || !row.single() || last.high - last.low >= kLongestStretch) {
        return whole<I>();
    }
    return stretch<T>(capture, plane.low * capture.rowStride + row.low * capture.extents[2] + last.low,
                      static_cast<int>(last.high - last.low) + 1);
}

} // namespace vt::span
