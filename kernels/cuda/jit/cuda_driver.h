// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// libcuda, opened at run time. Only files that are compiled with CUDA headers may include this one.

#include <cuda.h>
#include <string>
#include <string_view>

namespace vitrine::kernels {

// cuda.h renames some of these to versioned symbols (cuMemAlloc is cuMemAlloc_v2): members and symbols follow it.
#define VITRINE_CUDA_FUNCTIONS(F)                                                                                      \
    F(cuInit)                                                                                                          \
    F(cuDriverGetVersion)                                                                                              \
    F(cuGetErrorName)                                                                                                  \
    F(cuGetErrorString)                                                                                                \
    F(cuDeviceGetCount)                                                                                                \
    F(cuDeviceGet)                                                                                                     \
    F(cuDeviceGetName)                                                                                                 \
    F(cuDeviceTotalMem)                                                                                                \
    F(cuDeviceGetAttribute)                                                                                            \
    F(cuDeviceGetPCIBusId)                                                                                             \
    F(cuDevicePrimaryCtxRetain)                                                                                        \
    F(cuDevicePrimaryCtxRelease)                                                                                       \
    F(cuCtxSetCurrent)                                                                                                 \
    F(cuCtxSynchronize)                                                                                                \
    F(cuMemGetInfo)                                                                                                    \
    F(cuMemAlloc)                                                                                                      \
    F(cuMemFree)                                                                                                       \
    F(cuMemAddressReserve)                                                                                             \
    F(cuMemAddressFree)                                                                                                \
    F(cuMemGetAllocationGranularity)                                                                                   \
    F(cuMemCreate)                                                                                                     \
    F(cuMemRelease)                                                                                                    \
    F(cuMemMap)                                                                                                        \
    F(cuMemUnmap)                                                                                                      \
    F(cuMemSetAccess)                                                                                                  \
    F(cuMemHostAlloc)                                                                                                  \
    F(cuMemFreeHost)                                                                                                   \
    F(cuMemHostRegister)                                                                                               \
    F(cuMemHostUnregister)                                                                                             \
    F(cuMemcpyHtoDAsync)                                                                                               \
    F(cuMemcpyDtoHAsync)                                                                                               \
    F(cuMemcpyDtoDAsync)                                                                                               \
    F(cuMemsetD8Async)                                                                                                 \
    F(cuStreamCreate)                                                                                                  \
    F(cuStreamDestroy)                                                                                                 \
    F(cuStreamSynchronize)                                                                                             \
    F(cuStreamWaitEvent)                                                                                               \
    F(cuStreamBeginCapture)                                                                                            \
    F(cuStreamEndCapture)                                                                                              \
    F(cuGraphInstantiate)                                                                                              \
    F(cuGraphUpload)                                                                                                   \
    F(cuGraphLaunch)                                                                                                   \
    F(cuGraphDestroy)                                                                                                  \
    F(cuGraphExecDestroy)                                                                                              \
    F(cuEventCreate)                                                                                                   \
    F(cuEventDestroy)                                                                                                  \
    F(cuEventRecord)                                                                                                   \
    F(cuEventSynchronize)                                                                                              \
    F(cuEventQuery)                                                                                                    \
    F(cuEventElapsedTime)                                                                                              \
    F(cuLibraryLoadData)                                                                                               \
    F(cuLibraryUnload)                                                                                                 \
    F(cuLibraryGetKernel)                                                                                              \
    F(cuKernelGetFunction)                                                                                             \
    F(cuFuncGetAttribute)                                                                                              \
    F(cuFuncSetAttribute)                                                                                              \
    F(cuTensorMapEncodeTiled)                                                                                          \
    F(cuLaunchKernelEx)

struct CudaDriver {
// The driver's own names, as members.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define VITRINE_MEMBER(name) decltype(&::name) name = nullptr;
    VITRINE_CUDA_FUNCTIONS(VITRINE_MEMBER)
#undef VITRINE_MEMBER
    int version = 0; ///< 13000 is 13.0
    std::string path;

    /// The started driver of this machine, or null. Thread-safe.
    static const CudaDriver* find();
    /// One sentence that says why find() is null.
    static const std::string& whyMissing();

    /// "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)"
    std::string describe(CUresult code) const;
    /// Whether the device's context is lost after this code.
    static bool isSticky(CUresult code);
};

} // namespace vitrine::kernels
