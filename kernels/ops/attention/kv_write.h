// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes the keys and values of new tokens into a cache.
//
// A cache may hold less than the tensors do: fewer bits, or bytes with scales. A step may also read its own tokens
// beside the cache (Attention::newK); with `rounds` the tensors then hold what a reader of the cache will find, so that
// a token's answer does not depend on how steps are cut. Rounding twice changes nothing in float32.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/attention/kv_view.h"

namespace vitrine::kernels {

struct KvWrite {
    static constexpr std::string_view kName = "KvWrite";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::KvCache;
    TensorView k;         ///< (tokens, kvHeads, headDim); rows may have a stride
    TensorView v;         ///< the same; k itself where the cache's values are its keys
    TensorView sequence;  ///< (tokens) I32: which sequence of the view
    TensorView positions; ///< (tokens) I32: logical positions
    KvView cache;
    bool rounds = false; ///< k and v become what the cache holds of them, kept or not
    bool writes = true;  ///< false: the cache stays as it is
};

void check(const KvWrite& op);
Cost cost(const KvWrite& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const KvWrite& op, const DeviceTraits& traits);
void execute(CpuContext& context, const KvWrite& op);
void execute(CudaContext& context, const KvWrite& op);

} // namespace vitrine::kernels
