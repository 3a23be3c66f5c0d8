// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the attention workload computes on: q, k, v and their like, from a file or random.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// Sizes of random tensors.
struct AttentionSizes {
    std::int64_t batch = 1, heads = 1, kvHeads = 1, queries = 1, keys = 1, headDim = 64;
};
/// "B,H,HKV,S,D", or "B,H,HKV,Q,KV,D" where queries and keys differ in number. Throws BadInput "KEY: what".
AttentionSizes parseAttentionSizes(const std::string& text, const std::string& key = "random");

/// A tensor on the host: bytes and how to read them. On Meta the bytes are left out.
struct HostTensor {
    kernels::DType dtype = kernels::DType::F32;
    kernels::Shape shape;
    std::vector<std::byte> bytes;
};

/// q (batch, heads, queries, headDim), k and v (batch, kvHeads, keys, headDim), grad_out as q, sinks (heads).
struct AttentionInputs {
    HostTensor q, k, v;
    std::optional<HostTensor> gradOut, sinks;
};

/// From a safetensors file, in `dtype` (None: the file's). grad_out is read if `backward`, sinks if `sinks` and the
/// file has them. Throws BadInput.
AttentionInputs readAttentionInputs(const std::string& path, kernels::DType dtype, bool backward, bool sinks);
/// Normally distributed numbers that depend on seed and tensor alone (engine/workload/attention/normal_numbers.h);
/// grad_out if `backward`; without bytes where they are not read (`empty`).
AttentionInputs randomAttentionInputs(const AttentionSizes& sizes, kernels::DType dtype, std::uint64_t seed,
                                      bool backward, bool empty);
/// Throws BadInput "PLACE: NAME: what" when shapes do not fit each other.
void checkAttentionInputs(const AttentionInputs& in, const std::string& place);

} // namespace vitrine::engine
