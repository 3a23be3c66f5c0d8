// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The scales and zeros of neighbouring groups of a row of an INT4 weight.

#include "device/lib/types.cuh"

namespace vt {

/// kCount groups as they are stored: nothing is computed when they are loaded, so that nothing waits for them then.
template <class Scale, int kCount, bool kZeros> struct Int4Groups {
    Scale scales[kCount];
    u8 zeros[kCount];

    /// Groups `first` and up of row `row` of (rows, groups). kWhole: rows are whole multiples of kCount groups, so that
    /// all are loaded at once. Else groups behind the last are that one.
    template <bool kWhole>
    __device__ __forceinline__ void load(const void* fromScales, const u8* fromZeros, i64 row, int groups, int first) {
        const i64 at = row * groups + first;
        if constexpr (kWhole && kCount > 1) {
            loadWords(static_cast<const Scale*>(fromScales) + at, scales);
            if (kZeros) {
                loadWords(fromZeros + at, zeros);
            }
        } else {
#pragma unroll
            for (int i = 0; i < kCount; ++i) {
                const int inside = min(i, groups - 1 - first);
                scales[i] = static_cast<const Scale*>(fromScales)[at + inside];
                zeros[i] = kZeros ? fromZeros[at + inside] : u8{8};
            }
        }
    }

private:
    template <class T> __device__ __forceinline__ static void loadWords(const T* from, T (&to)[kCount]) {
        constexpr int kBytes = static_cast<int>(sizeof(T)) * kCount;
        if constexpr (kBytes >= 16) {
#pragma unroll
            for (int i = 0; i < kBytes / 16; ++i) {
                reinterpret_cast<u32x4*>(to)[i] = reinterpret_cast<const u32x4*>(from)[i];
            }
        } else if constexpr (kBytes == 8) {
            *reinterpret_cast<u32x2*>(to) = *reinterpret_cast<const u32x2*>(from);
        } else if constexpr (kBytes == 4) {
            *reinterpret_cast<u32*>(to) = *reinterpret_cast<const u32*>(from);
        } else {
            *reinterpret_cast<u16*>(to) = *reinterpret_cast<const u16*>(from);
        }
    }
};

} // namespace vt
