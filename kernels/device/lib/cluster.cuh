// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Thread-block clusters (sm_90 and later), or a cluster of one block.

#include "device/lib/types.cuh"

namespace vt {

template <int kBlocks> struct Cluster {
    static __device__ __forceinline__ int rank() {
        if constexpr (kBlocks == 1) {
            return 0;
        } else {
            u32 rank;
            asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
            return static_cast<int>(rank);
        }
    }
    /// A barrier over all threads of the cluster; writes before it are seen after it.
    static __device__ __forceinline__ void sync() {
        if constexpr (kBlocks == 1) {
            __syncthreads();
        } else {
            asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
        }
    }
    /// The two halves of a sync, for work between them.
    static __device__ __forceinline__ void arrive() {
        if constexpr (kBlocks > 1) {
            asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        }
    }
    static __device__ __forceinline__ void wait() {
        if constexpr (kBlocks == 1) {
            __syncthreads();
        } else {
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        }
    }
    /// The same shared variable in another block.
    template <class T> static __device__ __forceinline__ T* at(T* shared, int rank) {
        if constexpr (kBlocks == 1) {
            return shared;
        } else {
            u64 out;
            asm("mapa.u64 %0, %1, %2;" : "=l"(out) : "l"(reinterpret_cast<u64>(shared)), "r"(rank));
            return reinterpret_cast<T*>(out);
        }
    }
};

} // namespace vt
