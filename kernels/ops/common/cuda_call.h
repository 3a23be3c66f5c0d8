// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the CUDA overloads of ops share: from views to a kernel call.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "kernels/core/tensor.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/jit/kernel_call.h"

namespace vitrine::kernels {

inline std::int64_t dtypeNumber(const TensorView& tensor) {
    return static_cast<std::int64_t>(tensor.dtype);
}

/// 0 for an absent tensor.
inline std::int64_t optionalDtype(const TensorView& tensor) {
    return tensor.empty() ? 0 : dtypeNumber(tensor);
}

/// Whether a tensor begins at a multiple of 16 bytes; an absent one does.
inline bool startsAligned(const TensorView& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
}

/// Whether every row of a tensor begins at a multiple of 16 bytes; of an absent one they do.
inline bool rowsAligned(const TensorView& tensor) {
    return tensor.empty() || (startsAligned(tensor) && bytesOf(tensor.dtype, tensor.stride0()) % 16 == 0);
}

/// The dtype of an optional tensor for specialisation: an absent one shares the kernels of bf16.
inline std::int64_t dtypeOrBf16(const TensorView& optional) {
    return static_cast<std::int64_t>(optional.empty() ? DType::BF16 : optional.dtype);
}

/// Whether rows of `width` elements can be read in 16-byte pieces of eight elements: address, stride and width allow
/// it.
inline bool hasPieces(const TensorView& tensor, std::int64_t width) {
    return startsAligned(tensor) && width % 8 == 0 && (tensor.shape.rank() < 2 || tensor.stride0() % 8 == 0);
}

/// Elements of a thread's piece: 8 when every tensor allows it, else 1.
inline std::int64_t pieceOf(std::int64_t width, std::initializer_list<const TensorView*> tensors) {
    for (const TensorView* tensor : tensors) {
        if (!tensor->empty() && !hasPieces(*tensor, width)) {
            return 1;
        }
    }
    return 8;
}

/// For what a kernel counts in 32 bits.
inline int toInt(std::int64_t value, std::string_view op, std::string_view field) {
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
        throw base::Unsupported(std::string(op) + ": " + std::string(field) + ": too large for the GPU's kernels");
    }
    return static_cast<int>(value);
}

/// A call that points at `parameters` and `variables`: both must outlive it.
template <class Params>
KernelCall callOf(std::string_view family, int abi, const Params& parameters,
                  std::span<const KernelVariable> variables) {
    KernelCall call;
    call.family = family;
    call.abi = abi;
    call.parameters = &parameters;
    call.parameterBytes = sizeof(Params);
    call.variables = variables;
    return call;
}

/// Launches if a variant takes the call, else says false.
inline bool launchIfFits(CudaContext& context, const KernelCall& call) {
    if (!context.fits(call)) {
        return false;
    }
    context.launch(call);
    return true;
}

template <class Params>
void launchFamily(CudaContext& context, std::string_view family, int abi, const Params& parameters,
                  std::initializer_list<KernelVariable> variables) {
    context.launch(callOf(family, abi, parameters, {variables.begin(), variables.size()}));
}

} // namespace vitrine::kernels
