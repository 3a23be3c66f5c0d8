// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes the keys and values of new tokens into a cache.

#include "kernels/context.h"
#include "kernels/ops/kv_view.h"
#include "kernels/tensor.h"

namespace vitrine::kernels {

struct KvWrite {
    static constexpr std::string_view kName = "KvWrite";
    TensorView k;         ///< (tokens, kvHeads, headDim); rows may have a stride
    TensorView v;         ///< the same
    TensorView sequence;  ///< (tokens) I32: which sequence of the view
    TensorView positions; ///< (tokens) I32: logical positions
    KvView cache;
};

void check(const KvWrite& op);
Cost cost(const KvWrite& op, const DeviceTraits& traits);
/// Bytes of op.scratch that this op needs; the engine allocates them.
std::uint64_t scratch(const KvWrite& op, const DeviceTraits& traits);
void execute(CpuContext& context, const KvWrite& op);
void execute(CudaContext& context, const KvWrite& op);

} // namespace vitrine::kernels
