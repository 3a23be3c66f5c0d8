// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// cuBLASLt, opened at run time: dense products with float32 accumulation. Algorithms are chosen by its heuristic once
// for each shape. Only files that are compiled with CUDA headers may include this one.

#include <cuda.h>
#include <memory>

#include "kernels/cuda/cuda_context.h"

namespace vitrine::kernels {

class CublasLt {
public:
    /// For the context that is current. Throws Unsupported that says what to install.
    CublasLt();
    ~CublasLt();
    CublasLt(const CublasLt&) = delete; // owns a handle
    CublasLt& operator=(const CublasLt&) = delete;

    /// See CudaContext::DenseProduct. Throws Unsupported for dtypes that the library has no product for.
    void multiply(const CudaContext::DenseProduct& product, CUstream stream, void* workspace,
                  std::uint64_t workspaceBytes);

    /// Launches a tiny product whose tensors lie in `memory`. The first product of a process takes some 80 ms longer
    /// than later ones, because the library loads its kernels then; so it had better be none that somebody waits for.
    void wakeUp(CUstream stream, void* memory, std::uint64_t bytes);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
