// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Asynchronous tensor-core products of a warpgroup (sm_90a): D (64 x N, float32 in registers) += A (64 x 16) B (16 x
// N).
//
// B lies in shared memory, stored as N rows of K values (or, transposed, as K rows of N values); A in registers or in
// shared memory. Warp w of the group owns rows 16 w .. 16 w + 15 with the fragments of mma.cuh: a[0..3] as there, and
// d[4 j + i] is c[i] of columns 8 j .. 8 j + 7.
//
// Use: fence(); run(...) several times; commit(); ... wait<pending>(). Between run() and the wait() that covers it
// nobody may touch d, nor write a. `accumulate` 0 overwrites d. (PTX ISA, "Asynchronous Warpgroup Level Matrix".)
//
// What costs dearly and is only said by ptxas ("serialized", C75xx): branches on values that the compiler cannot prove
// equal in all lanes (pass them through __shfl_sync), accumulators of several widths in one kernel (use one array,
// zeroed by hand, for all), fragments computed between products (pin them with an empty asm before fence()).

#include "device/lib/mma.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

namespace vt::wgmma {

/// Before the first product, and whenever registers that a product reads have been written.
__device__ __forceinline__ void fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `pending` of the newest groups are under way.
template <int pending> __device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Gives registers back (kRegisters a multiple of 8, all warps of the warpgroup); needs __launch_bounds__(threads, 1).
template <int kRegisters> __device__ __forceinline__ void giveRegisters() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters> __device__ __forceinline__ void takeRegisters() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// A tile with 128-byte rows in the swizzle of `swizzled<128>`, starting at a multiple of 1,024 bytes. Rows
/// are N (or M) and the 64 values of a row are K: the next 16 values of K are at `descriptor + 2`; 8 rows further at
/// + 64. For the transposed form rows are K and the 64 values are N: the next 16 rows of K are at + 128; a tile wider
/// than 64 columns is several such tiles, `columnTileBytes` apart.
__device__ __forceinline__ u64 descriptor128(u32 address, u32 columnTileBytes = 16) {
    return static_cast<u64>((address & 0x3FFFF) >> 4) | static_cast<u64>((columnTileBytes & 0x3FFFF) >> 4) << 16 |
           static_cast<u64>(1024 >> 4) << 32 | static_cast<u64>(1) << 62;
}

/// The descriptor of what lies `by` times 16 bytes further. One addition of 32 bits: an address never carries out of
/// its field.
__device__ __forceinline__ u64 further(u64 descriptor, u32 by) {
    return descriptor >> 32 << 32 | static_cast<u32>(static_cast<u32>(descriptor) + by);
}

/// The products for N columns. T is bf16 or f16; kTransposedB as described above.
template <class T, int kColumns> struct Product;

// The operand lists below are long but regular: D takes N / 2 registers, then come A (four registers or a descriptor),
// B's descriptor and the flag `accumulate`.
#define VT_D8(i)                                                                                                       \
    "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), "+f"(d[(i) + 5]),              \
        "+f"(d[(i) + 6]), "+f"(d[(i) + 7])
#define VT_D16(i) VT_D8(i), VT_D8((i) + 8)
#define VT_D32(i) VT_D16(i), VT_D16((i) + 16)
#define VT_D64(i) VT_D32(i), VT_D32((i) + 32)

#define VT_N8(i)                                                                                                       \
    "=f"(d[i]), "=f"(d[(i) + 1]), "=f"(d[(i) + 2]), "=f"(d[(i) + 3]), "=f"(d[(i) + 4]), "=f"(d[(i) + 5]),              \
        "=f"(d[(i) + 6]), "=f"(d[(i) + 7])
#define VT_N16(i) VT_N8(i), VT_N8((i) + 8)
#define VT_N32(i) VT_N16(i), VT_N16((i) + 16)
#define VT_N64(i) VT_N32(i), VT_N32((i) + 32)

#define VT_T0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define VT_T8 "%8, %9, %10, %11, %12, %13, %14, %15"
#define VT_T16 "%16, %17, %18, %19, %20, %21, %22, %23"
#define VT_T24 "%24, %25, %26, %27, %28, %29, %30, %31"
#define VT_T32 "%32, %33, %34, %35, %36, %37, %38, %39"
#define VT_T40 "%40, %41, %42, %43, %44, %45, %46, %47"
#define VT_T48 "%48, %49, %50, %51, %52, %53, %54, %55"
#define VT_T56 "%56, %57, %58, %59, %60, %61, %62, %63"
#define VT_T64 "%64, %65, %66, %67, %68, %69, %70, %71"
#define VT_T72 "%72, %73, %74, %75, %76, %77, %78, %79"
#define VT_T80 "%80, %81, %82, %83, %84, %85, %86, %87"
#define VT_T88 "%88, %89, %90, %91, %92, %93, %94, %95"
#define VT_T96 "%96, %97, %98, %99, %100, %101, %102, %103"
#define VT_T104 "%104, %105, %106, %107, %108, %109, %110, %111"
#define VT_T112 "%112, %113, %114, %115, %116, %117, %118, %119"
#define VT_T120 "%120, %121, %122, %123, %124, %125, %126, %127"

#define VT_PRODUCT(type, name, columns, list, o0, o1, o2, o3, o4, o5, o6, outputs, news)                               \
    template <> struct Product<type, columns> {                                                                        \
        static constexpr int kRegisters = (columns) / 2;                                                               \
        template <int kTransposedB = 0, int kSize>                                                                     \
        static __device__ __forceinline__ void run(float (&d)[kSize], const u32 (&a)[4], u64 b, int accumulate) {      \
            static_assert(kSize >= kRegisters, "too few registers for the result");                                    \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #o5 ", 0;\n"                                             \
                         "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." name "." name " {" list "}, {%" #o0   \
                         ", %" #o1 ", %" #o2 ", %" #o3 "}, %" #o4 ", p, 1, 1, %" #o6 ";\n}\n"                          \
                         : outputs                                                                                     \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(kTransposedB));    \
        }                                                                                                              \
        template <int kTransposedB = 0, int kTransposedA = 0, int kSize>                                               \
        static __device__ __forceinline__ void run(float (&d)[kSize], u64 a, u64 b, int accumulate) {                  \
            static_assert(kSize >= kRegisters, "too few registers for the result");                                    \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #o2 ", 0;\n"                                             \
                         "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." name "." name " {" list "}, %" #o0    \
                         ", %" #o1 ", p, 1, 1, %" #o3 ", %" #o4 ";\n}\n"                                               \
                         : outputs                                                                                     \
                         : "l"(a), "l"(b), "r"(accumulate), "n"(kTransposedA), "n"(kTransposedB));                     \
        }                                                                                                              \
        /* D = A B: for the compiler D is new, so that nothing is moved into it between products. */                   \
        template <int kTransposedB = 0, int kTransposedA = 0, int kSize>                                               \
        static __device__ __forceinline__ void first(float (&d)[kSize], u64 a, u64 b) {                                \
            static_assert(kSize >= kRegisters, "too few registers for the result");                                    \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                                    \
                         "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." name "." name " {" list "}, %" #o0    \
                         ", %" #o1 ", p, 1, 1, %" #o2 ", %" #o3 ";\n}\n"                                               \
                         : news                                                                                        \
                         : "l"(a), "l"(b), "n"(kTransposedA), "n"(kTransposedB));                                      \
        }                                                                                                              \
        template <int kTransposedB = 0, int kSize>                                                                     \
        static __device__ __forceinline__ void first(float (&d)[kSize], const u32 (&a)[4], u64 b) {                    \
            static_assert(kSize >= kRegisters, "too few registers for the result");                                    \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\n"                                                    \
                         "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." name "." name " {" list "}, {%" #o0   \
                         ", %" #o1 ", %" #o2 ", %" #o3 "}, %" #o4 ", p, 1, 1, %" #o5 ";\n}\n"                          \
                         : news                                                                                        \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(kTransposedB));                     \
        }                                                                                                              \
    };

#define VT_OUT16 VT_D8(0)
#define VT_NEW16 VT_N8(0)
#define VT_LIST16 VT_T0
#define VT_OUT32 VT_D16(0)
#define VT_NEW32 VT_N16(0)
#define VT_LIST32 VT_T0 ", " VT_T8
#define VT_OUT64 VT_D32(0)
#define VT_NEW64 VT_N32(0)
#define VT_LIST64 VT_T0 ", " VT_T8 ", " VT_T16 ", " VT_T24
#define VT_OUT96 VT_D32(0), VT_D16(32)
#define VT_NEW96 VT_N32(0), VT_N16(32)
#define VT_LIST96 VT_T0 ", " VT_T8 ", " VT_T16 ", " VT_T24 ", " VT_T32 ", " VT_T40
#define VT_OUT112 VT_D32(0), VT_D16(32), VT_D8(48)
#define VT_NEW112 VT_N32(0), VT_N16(32), VT_N8(48)
#define VT_LIST112 VT_LIST96 ", " VT_T48
#define VT_OUT128 VT_D64(0)
#define VT_NEW128 VT_N64(0)
#define VT_LIST128 VT_T0 ", " VT_T8 ", " VT_T16 ", " VT_T24 ", " VT_T32 ", " VT_T40 ", " VT_T48 ", " VT_T56
#define VT_OUT160 VT_D64(0), VT_D16(64)
#define VT_NEW160 VT_N64(0), VT_N16(64)
#define VT_LIST160                                                                                                     \
    VT_T0 ", " VT_T8 ", " VT_T16 ", " VT_T24 ", " VT_T32 ", " VT_T40 ", " VT_T48 ", " VT_T56 ", " VT_T64 ", " VT_T72
#define VT_OUT192 VT_D64(0), VT_D32(64)
#define VT_NEW192 VT_N64(0), VT_N32(64)
#define VT_LIST192                                                                                                     \
    VT_T0 ", " VT_T8 ", " VT_T16 ", " VT_T24 ", " VT_T32 ", " VT_T40 ", " VT_T48 ", " VT_T56 ", " VT_T64 ", " VT_T72   \
          ", " VT_T80 ", " VT_T88
#define VT_OUT256 VT_D64(0), VT_D64(64)
#define VT_NEW256 VT_N64(0), VT_N64(64)
#define VT_LIST256                                                                                                     \
    VT_T0 ", " VT_T8 ", " VT_T16 ", " VT_T24 ", " VT_T32 ", " VT_T40 ", " VT_T48 ", " VT_T56 ", " VT_T64 ", " VT_T72   \
          ", " VT_T80 ", " VT_T88 ", " VT_T96 ", " VT_T104 ", " VT_T112 ", " VT_T120
VT_PRODUCT(bf16, "bf16", 16, VT_LIST16, 8, 9, 10, 11, 12, 13, 14, VT_OUT16, VT_NEW16)
VT_PRODUCT(f16, "f16", 16, VT_LIST16, 8, 9, 10, 11, 12, 13, 14, VT_OUT16, VT_NEW16)
VT_PRODUCT(bf16, "bf16", 32, VT_LIST32, 16, 17, 18, 19, 20, 21, 22, VT_OUT32, VT_NEW32)
VT_PRODUCT(f16, "f16", 32, VT_LIST32, 16, 17, 18, 19, 20, 21, 22, VT_OUT32, VT_NEW32)
VT_PRODUCT(bf16, "bf16", 64, VT_LIST64, 32, 33, 34, 35, 36, 37, 38, VT_OUT64, VT_NEW64)
VT_PRODUCT(f16, "f16", 64, VT_LIST64, 32, 33, 34, 35, 36, 37, 38, VT_OUT64, VT_NEW64)
VT_PRODUCT(bf16, "bf16", 96, VT_LIST96, 48, 49, 50, 51, 52, 53, 54, VT_OUT96, VT_NEW96)
VT_PRODUCT(f16, "f16", 96, VT_LIST96, 48, 49, 50, 51, 52, 53, 54, VT_OUT96, VT_NEW96)
VT_PRODUCT(bf16, "bf16", 112, VT_LIST112, 56, 57, 58, 59, 60, 61, 62, VT_OUT112, VT_NEW112)
VT_PRODUCT(bf16, "bf16", 128, VT_LIST128, 64, 65, 66, 67, 68, 69, 70, VT_OUT128, VT_NEW128)
VT_PRODUCT(f16, "f16", 128, VT_LIST128, 64, 65, 66, 67, 68, 69, 70, VT_OUT128, VT_NEW128)
VT_PRODUCT(bf16, "bf16", 160, VT_LIST160, 80, 81, 82, 83, 84, 85, 86, VT_OUT160, VT_NEW160)
VT_PRODUCT(bf16, "bf16", 192, VT_LIST192, 96, 97, 98, 99, 100, 101, 102, VT_OUT192, VT_NEW192)
VT_PRODUCT(f16, "f16", 192, VT_LIST192, 96, 97, 98, 99, 100, 101, 102, VT_OUT192, VT_NEW192)
VT_PRODUCT(bf16, "bf16", 256, VT_LIST256, 128, 129, 130, 131, 132, 133, 134, VT_OUT256, VT_NEW256)
VT_PRODUCT(f16, "f16", 256, VT_LIST256, 128, 129, 130, 131, 132, 133, 134, VT_OUT256, VT_NEW256)

#undef VT_PRODUCT
#undef VT_D8
#undef VT_N8
#undef VT_D16
#undef VT_N16
#undef VT_D32
#undef VT_N32
#undef VT_D64
#undef VT_N64
#undef VT_OUT16
#undef VT_NEW16
#undef VT_LIST16
#undef VT_OUT32
#undef VT_NEW32
#undef VT_LIST32
#undef VT_OUT64
#undef VT_NEW64
#undef VT_LIST64
#undef VT_OUT96
#undef VT_NEW96
#undef VT_LIST96
#undef VT_OUT112
#undef VT_NEW112
#undef VT_LIST112
#undef VT_OUT128
#undef VT_NEW128
#undef VT_LIST128
#undef VT_OUT160
#undef VT_NEW160
#undef VT_LIST160
#undef VT_OUT192
#undef VT_NEW192
#undef VT_LIST192
#undef VT_OUT256
#undef VT_NEW256
#undef VT_LIST256
#undef VT_T0
#undef VT_T8
#undef VT_T16
#undef VT_T24
#undef VT_T32
#undef VT_T40
#undef VT_T48
#undef VT_T56
#undef VT_T64
#undef VT_T72
#undef VT_T80
#undef VT_T88
#undef VT_T96
#undef VT_T104
#undef VT_T112
#undef VT_T120

} // namespace vt::wgmma

#endif
