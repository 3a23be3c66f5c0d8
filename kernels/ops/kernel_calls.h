// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// From op values to kernel calls.

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/jit/kernel_call.h"
#include "kernels/tensor.h"

namespace vitrine::kernels {

/// A call that points at `params` and `variables`: both must outlive it.
template <class Params>
KernelCall callOf(std::string_view family, int abi, const Params& params, std::span<const KernelVariable> variables) {
    KernelCall call;
    call.family = family;
    call.abi = abi;
    call.parameters = &params;
    call.parameterBytes = sizeof params;
    call.variables = variables;
    return call;
}

inline std::int64_t numberOf(DType dtype) {
    return static_cast<std::int64_t>(dtype);
}

/// 0 for an absent tensor.
inline std::int64_t dtypeOf(const TensorView& optional) {
    return optional.empty() ? 0 : numberOf(optional.dtype);
}

/// Whether a tensor begins at a multiple of 16 bytes; an absent one does.
inline bool startsAligned(const TensorView& optional) {
    return reinterpret_cast<std::uintptr_t>(optional.data) % 16 == 0;
}

} // namespace vitrine::kernels
