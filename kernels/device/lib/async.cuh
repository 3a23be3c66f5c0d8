// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Asynchronous copies into shared memory: cp.async (sm_80 and later); mbarriers, bulk copies and tensor copies (sm_90
// and later). Shared memory is named by its 32-bit address (`sharedAddress`).

#include "device/lib/types.cuh"

namespace vt {

__device__ __forceinline__ u32 sharedAddress(const void* pointer) {
    return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes; with `valid` false zeros are written and nothing is read, but `from` must still be a mapped address.
__device__ __forceinline__ void copyAsync16(u32 to, const void* from, bool valid = true) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
/// 4 or 8 bytes, through the first-level cache.
template <int kBytes> __device__ __forceinline__ void copyAsyncSmall(u32 to, const void* from, bool valid = true) {
    static_assert(kBytes == 4 || kBytes == 8, "other sizes have functions of their own");
    const int bytes = valid ? kBytes : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void copyAsyncCommit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until at most `pending` of this thread's newest groups are under way. Other threads' copies need a barrier as well.
template <int pending> __device__ __forceinline__ void copyAsyncWait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

#if __CUDA_ARCH__ >= 900

/// An mbarrier in shared memory (8 bytes, aligned). A wait names the parity of the phase that has to end: 0 first.
namespace barrier {

__device__ __forceinline__ void init(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
/// After all inits, by the thread that made them, before the block's barrier.
__device__ __forceinline__ void fenceInit() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives and says how many bytes bulk copies will bring in this phase.
__device__ __forceinline__ void arriveExpect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
/// Arrives (as one of the counted arrivals) when all cp.async that this thread has issued so far are done.
__device__ __forceinline__ void arriveAfterCopies(u32 barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ bool tryWait(u32 barrier, u32 parity) {
    u32 done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}
/// Whether the phase is over, without waiting: what is asked early may be answered while other things are done.
__device__ __forceinline__ bool test(u32 barrier, u32 parity) {
    u32 done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}
__device__ __forceinline__ void wait(u32 barrier, u32 parity) {
    while (!tryWait(barrier, parity)) {
    }
}

} // namespace barrier

/// This block's number in its cluster.
__device__ __forceinline__ u32 clusterBlock() {
    u32 out;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(out));
    return out;
}
/// All threads of all blocks of the cluster, with what they wrote. Whole warps.
__device__ __forceinline__ void clusterBarrier() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
/// Four floats of shared memory of block `block` of the cluster, at the address `from` of this one.
__device__ __forceinline__ void loadOfBlock(float (&to)[4], u32 from, u32 block) {
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n"
                 "}\n"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from), "r"(block)
                 : "memory");
}

/// Ordinary writes to shared memory become visible to wgmma and to bulk copies; each writing thread, before the
/// barrier.
__device__ __forceinline__ void fenceAsyncProxy() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// `bytes` (a multiple of 16, both sides aligned to 16) arrive at `barrier`, which expects them. One thread.
__device__ __forceinline__ void copyBulk(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
/// The same for what is read once: it leaves the second-level cache first.
__device__ __forceinline__ void copyBulkOnce(u32 to, const void* from, u32 bytes, u32 barrier) {
    asm volatile(
        "{\n"
        ".reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
        "policy;\n"
        "}\n" ::"r"(to),
        "l"(from), "r"(bytes), "r"(barrier)
        : "memory");
}
/// Shared to global; waits are by groups of the issuing thread.
__device__ __forceinline__ void storeBulk(void* to, u32 from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}
/// The same, added to float32 in global memory.
__device__ __forceinline__ void addBulk(float* to, u32 from, u32 bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void storeBulkCommit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until the shared memory of all but `pending` groups may be written again.
template <int pending> __device__ __forceinline__ void storeBulkWaitRead() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
/// Until global memory has all of this thread's groups.
__device__ __forceinline__ void storeBulkWait() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// A tile of a tensor map (128 bytes, 64-byte aligned, in parameter, constant or global memory); x is the innermost
/// coordinate, in elements. What lies outside the tensor arrives as zeros and counts in the bytes.
__device__ __forceinline__ void copyTile2(u32 to, const void* map, int x, int y, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
        "[%4];" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}
/// The same for what is read once: it leaves the second-level cache first.
__device__ __forceinline__ void copyTile2Once(u32 to, const void* map, int x, int y, u32 barrier) {
    asm volatile(
        "{\n"
        ".reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
        "[%1, {%2, %3}], [%4], policy;\n"
        "}\n" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(barrier)
        : "memory");
}
__device__ __forceinline__ void copyTile3(u32 to, const void* map, int x, int y, int z, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                 "%4}], [%5];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
                 : "memory");
}
__device__ __forceinline__ void copyTile4(u32 to, const void* map, int x, int y, int z, int w, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, "
                 "%4, %5}], [%6];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
                 : "memory");
}

#endif

/// A barrier over `threads` threads of the block (a multiple of 32); 0 is __syncthreads' own.
__device__ __forceinline__ void namedBarrier(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
/// Counts these threads without waiting; others of the `threads` wait with namedBarrier.
__device__ __forceinline__ void namedBarrierArrive(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

} // namespace vt
