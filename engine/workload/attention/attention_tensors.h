// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The input tensors of the attention workload (q, k, v, grad_out, sinks), read from a file or random.

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
/// "B,H,HKV,S,D", or "B,H,HKV,Q,KV,D" when the numbers of queries and keys differ. Throws BadInput "KEY: what".
AttentionSizes parseAttentionSizes(const std::string& text, const std::string& key = "random");

/// A tensor in host memory. On Meta `bytes` is empty.
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

/// Reads the tensors from a safetensors file and converts them to `dtype` (None: they keep the dtype of the file).
/// Reads grad_out if `backward` is set, and sinks if `sinks` is set and the file has them. Throws BadInput.
AttentionInputs readAttentionInputs(const std::string& path, kernels::DType dtype, bool backward, bool sinks);
/// Makes tensors of normally distributed numbers, which depend only on the seed and the tensor
/// (engine/workload/attention/normal_numbers.h). Makes grad_out if `backward` is set. `empty` leaves the bytes out, for
/// Meta.
AttentionInputs randomAttentionInputs(const AttentionSizes& sizes, kernels::DType dtype, std::uint64_t seed,
                                      bool backward, bool empty);
/// Throws BadInput "PLACE: NAME: what" when shapes do not fit each other.
void checkAttentionInputs(const AttentionInputs& in, const std::string& place);

} // namespace vitrine::engine
