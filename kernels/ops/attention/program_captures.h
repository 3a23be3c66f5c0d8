// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Captured tensors as kernels read them.

#include "kernels/device/abi/program.h"
#include "kernels/ops/attention/flex_attention.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

static_assert(abi::kProgramCaptures >= kMaxProgramCaptures, "a program may have more captures than kernels take");

inline abi::ProgramCaptures capturesOf(const BoundProgram& program, std::string_view op) {
    abi::ProgramCaptures out{};
    for (std::size_t i = 0; i < program.captures.tensors.size(); ++i) {
        const TensorView& tensor = program.captures.tensors[i];
        abi::ProgramCapture& item = out.items[i];
        item.data = tensor.data;
        item.rowStride = tensor.shape.rank() == 0 ? 0 : tensor.stride0();
        for (int dim = 0; dim < kMaxCaptureRank; ++dim) {
            item.extents[dim] = dim < tensor.shape.rank() ? toInt(tensor.shape[dim], op, "captures") : 1;
        }
    }
    return out;
}

} // namespace vitrine::kernels
