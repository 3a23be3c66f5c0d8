// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products of E4M3 matrices of a warpgroup (sm_90a), with the conventions of wgmma.cuh: both operands lie in shared
// memory in its 128-byte swizzle, as rows of K. A product takes 32 bytes of K, so the next one is at `descriptor + 2`.

#include "device/lib/wgmma.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace vt::wgmma {

#define VT_BYTES_D8(i)                                                                                                 \
    "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), "+f"(d[(i) + 5]),              \
        "+f"(d[(i) + 6]), "+f"(d[(i) + 7])

/// D (64 x 128) = A (64 x 32) B (32 x 128), or D += A B with `accumulate`.
__device__ __forceinline__ void runBytes(float (&d)[64], u64 a, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
                 "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, "
                 "%31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, "
                 "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1;\n}\n"
                 : VT_BYTES_D8(0), VT_BYTES_D8(8), VT_BYTES_D8(16), VT_BYTES_D8(24), VT_BYTES_D8(32), VT_BYTES_D8(40),
                   VT_BYTES_D8(48), VT_BYTES_D8(56)
                 : "l"(a), "l"(b), "r"(accumulate));
}

#undef VT_BYTES_D8

} // namespace vt::wgmma

#endif
