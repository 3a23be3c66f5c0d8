// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Programmatic dependent launch (sm_90 and later; nothing before). A kernel that is launched as dependent may start
// while the one before it still runs: it may load weights, but must wait() before it reads or writes anything that
// earlier kernels touch. Every kernel calls wait() once in every thread, also when it needs nothing: kernels after it
// rely on it.

namespace vt::pdl {

/// Until every kernel before this one has ended and its writes are visible.
__device__ __forceinline__ void wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// The kernel after this one may be started; it still waits for this one's end.
__device__ __forceinline__ void launchDependents() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

} // namespace vt::pdl
