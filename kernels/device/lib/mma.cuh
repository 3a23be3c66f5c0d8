// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensor-core products of a warp (mma.sync m16n8k16, sm_80 and later), ldmatrix, and the shared-memory swizzle.
//
// Lane l holds, with g = l / 4 and t = l % 4 (each word two 16-bit values, the lower column in the low half):
//   A (16 x 16): a[0] (g, 2t..)  a[1] (g + 8, 2t..)  a[2] (g, 2t + 8..)  a[3] (g + 8, 2t + 8..)
//   B (16 x 8), as columns n of W^T, that is rows n of W: b[0] (n = g, k = 2t..)  b[1] (n = g, k = 2t + 8..)
//   C (16 x 8): c[0] (g, 2t)  c[1] (g, 2t + 1)  c[2] (g + 8, 2t)  c[3] (g + 8, 2t + 1)
// (PTX ISA, "Matrix Fragments for mma.m16n8k16").

#include "device/lib/async.cuh"

namespace vt {

/// Four 8 x 8 matrices of 16-bit values: lanes 8 i .. 8 i + 7 give the addresses (16 bytes each) of matrix i's rows,
/// and r[i] of lane l is row l / 4, columns 2 (l % 4) and the next.
__device__ __forceinline__ void loadMatrix4(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
/// The same with every matrix transposed: r[i] of lane l is rows 2 (l % 4) and the next, column l / 4.
__device__ __forceinline__ void loadMatrix4Transposed(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
__device__ __forceinline__ void loadMatrix2(u32 (&r)[2], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
}
__device__ __forceinline__ void loadMatrix2Transposed(u32 (&r)[2], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
}
/// An 8 x 8 matrix of 16-bit values, as loadMatrix4 gives it, transposed.
__device__ __forceinline__ u32 transposed(u32 r) {
    u32 out;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(r));
    return out;
}
#if __CUDA_ARCH__ >= 900
/// The reverse of loadMatrix4.
__device__ __forceinline__ void storeMatrix4(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r0), "r"(r1),
                 "r"(r2), "r"(r3)
                 : "memory");
}
/// The reverse of loadMatrix4Transposed.
__device__ __forceinline__ void storeMatrix4Transposed(u32 address, u32 r0, u32 r1, u32 r2, u32 r3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r0),
                 "r"(r1), "r"(r2), "r"(r3)
                 : "memory");
}
#endif

/// c += a b, float32 accumulators; T is bf16 or f16.
template <class T> __device__ __forceinline__ void mma16816(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <> __device__ __forceinline__ void mma16816<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <> __device__ __forceinline__ void mma16816<f16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// d = a b + c.
__device__ __forceinline__ void mmaOnto(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1, const float (&c)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

/// c = a b.
template <class T> __device__ __forceinline__ void mmaFirst(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
template <> __device__ __forceinline__ void mmaFirst<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %10, %10, %10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0F));
}
template <> __device__ __forceinline__ void mmaFirst<f16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %10, %10, %10};"
        : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0F));
}

/// Two values of type T in one word, `low` in the low half.
template <class T> __device__ __forceinline__ u32 packPair(float low, float high);
template <> __device__ __forceinline__ u32 packPair<bf16>(float low, float high) {
    return packBf16(low, high);
}
template <> __device__ __forceinline__ u32 packPair<f16>(float low, float high) {
    u32 out;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(high), "f"(low));
    return out;
}

/// Byte offset of `byte` of row `row` in a tile whose rows are kRowBytes (32, 64 or 128): 16-byte pieces are exchanged
/// so that eight rows' equal columns lie in different banks. It is the pattern of tensor maps and wgmma of that width
/// when the tile starts at a multiple of 8 rows' bytes.
template <int kRowBytes> __device__ __forceinline__ u32 swizzled(int row, int byte) {
    static_assert(kRowBytes == 32 || kRowBytes == 64 || kRowBytes == 128, "a hardware swizzle width");
    constexpr int kPieces = kRowBytes / 16;
    const u32 piece = static_cast<u32>(row) / (8 / kPieces) % kPieces;
    return (static_cast<u32>(row) * kRowBytes + static_cast<u32>(byte)) ^ (piece * 16);
}

} // namespace vt
