// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// cuBLASLt for initcheck, which does not see the stores of cuBLASLt's own kernels: the functions that Vitrine calls,
// handed on to the library that VITRINE_REAL_CUBLASLT names, with each product's workspace and result filled first by a
// memset that initcheck does see. What it still reports is ours.

#include <cstdio>
#include <cstdlib>
#include <cublasLt.h>
#include <cuda.h>
#include <dlfcn.h>
#include <map>
#include <mutex>

namespace {

void* opened(const char* path) {
    void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::fprintf(stderr, "cleared products: %s: cannot be opened; set VITRINE_REAL_CUBLASLT\n",
                     path == nullptr ? "cuBLASLt" : path);
        std::abort();
    }
    return library;
}

template <class Function> Function real(const char* name) {
    static void* const library = opened(std::getenv("VITRINE_REAL_CUBLASLT"));
    return reinterpret_cast<Function>(dlsym(library, name));
}

template <class Function> Function driver(const char* name) {
    static void* const library = opened("libcuda.so.1");
    return reinterpret_cast<Function>(dlsym(library, name));
}

struct Layout {
    cudaDataType type;
    std::uint64_t rows, columns;
    std::int64_t stride;

    std::size_t width() const { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
};

std::mutex guard;
std::map<cublasLtMatrixLayout_t, Layout> layouts;

void clear(void* result, const Layout& layout, void* workspace, std::size_t bytes, cudaStream_t stream) {
    constexpr unsigned char kPoison = 0xCD;
    auto* const queue = reinterpret_cast<CUstream>(stream);
    if (workspace != nullptr && bytes != 0) {
        driver<decltype(&::cuMemsetD8Async)>("cuMemsetD8Async")(reinterpret_cast<CUdeviceptr>(workspace), kPoison,
                                                                bytes, queue);
    }
    driver<decltype(&::cuMemsetD2D8Async)>("cuMemsetD2D8Async")(
        reinterpret_cast<CUdeviceptr>(result), static_cast<std::size_t>(layout.stride) * layout.width(), kPoison,
        layout.rows * layout.width(), layout.columns, queue);
}

} // namespace

#define VITRINE_HAND_ON(name, parameters, arguments)                                                                   \
    cublasStatus_t name parameters {                                                                                   \
        return real<decltype(&::name)>(#name) arguments;                                                               \
    }

extern "C" {

VITRINE_HAND_ON(cublasLtCreate, (cublasLtHandle_t * handle), (handle))
VITRINE_HAND_ON(cublasLtDestroy, (cublasLtHandle_t handle), (handle))
VITRINE_HAND_ON(cublasLtMatmulDescCreate,
                (cublasLtMatmulDesc_t * description, cublasComputeType_t compute, cudaDataType_t scale),
                (description, compute, scale))
VITRINE_HAND_ON(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t description), (description))
VITRINE_HAND_ON(cublasLtMatmulDescSetAttribute,
                (cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name, const void* value,
                 std::size_t bytes),
                (description, name, value, bytes))
VITRINE_HAND_ON(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference), (preference))
VITRINE_HAND_ON(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference), (preference))
VITRINE_HAND_ON(cublasLtMatmulPreferenceSetAttribute,
                (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name, const void* value,
                 std::size_t bytes),
                (preference, name, value, bytes))
VITRINE_HAND_ON(cublasLtMatmulAlgoGetHeuristic,
                (cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                 cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* found, int* count),
                (handle, description, a, b, c, d, preference, wanted, found, count))

const char* cublasLtGetStatusString(cublasStatus_t status) {
    return real<decltype(&::cublasLtGetStatusString)>("cublasLtGetStatusString")(status);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
    const cublasStatus_t status = real<decltype(&::cublasLtMatrixLayoutCreate)>("cublasLtMatrixLayoutCreate")(
        layout, type, rows, columns, stride);
    const std::lock_guard lock(guard);
    layouts[*layout] = Layout{type, rows, columns, stride};
    return status;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    {
        const std::lock_guard lock(guard);
        layouts.erase(layout);
    }
    return real<decltype(&::cublasLtMatrixLayoutDestroy)>("cublasLtMatrixLayoutDestroy")(layout);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t aLayout, const void* b,
                              cublasLtMatrixLayout_t bLayout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t cLayout, void* d, cublasLtMatrixLayout_t dLayout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspaceBytes,
                              cudaStream_t stream) {
    // A zero double begins with a zero float. With another beta the result is read and was written before.
    if (*static_cast<const float*>(beta) == 0.0F) {
        Layout layout{};
        {
            const std::lock_guard lock(guard);
            layout = layouts.at(dLayout);
        }
        clear(d, layout, workspace, workspaceBytes, stream);
    }
    return real<decltype(&::cublasLtMatmul)>("cublasLtMatmul")(handle, description, alpha, a, aLayout, b, bLayout, beta,
                                                               c, cLayout, d, dLayout, algorithm, workspace,
                                                               workspaceBytes, stream);
}

} // extern "C"
