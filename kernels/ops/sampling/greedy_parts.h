// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Greedy sampling over a vocabulary that ranks divide: each rank finds the best of its part, and a few numbers of each
// row travel instead of all logits.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

/// Numbers of a row: the largest logit, its id, and the sum of exp(logit - largest) over the part.
inline constexpr std::int64_t kBestOfPart = 3;

struct BestOfPart {
    static constexpr std::string_view kName = "BestOfPart";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView logits;        ///< (rows, part) F32; rows may have a stride
    std::int64_t firstId = 0; ///< of the part; ids are below 2^24, so that float32 holds them
    TensorView best;          ///< (rows, kBestOfPart) F32
};

/// What Sample gives for rows that are plainly greedy: the largest logit of all parts, the lower id of two, and its
/// log-probability; NaN where a logit of the row is not finite.
struct BestOfParts {
    static constexpr std::string_view kName = "BestOfParts";
    static constexpr base::MemoryCategory kCategory = base::MemoryCategory::Logits;
    TensorView best;     ///< (rows, parts * kBestOfPart) F32, parts in the order of their ids
    TensorView ids;      ///< (rows) I32
    TensorView logprobs; ///< (rows) F32
};

void check(const BestOfPart& op);
Cost cost(const BestOfPart& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const BestOfPart& op, const DeviceTraits& traits);
void execute(CpuContext& context, const BestOfPart& op);
void execute(CudaContext& context, const BestOfPart& op);

void check(const BestOfParts& op);
Cost cost(const BestOfParts& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const BestOfParts& op, const DeviceTraits& traits);
void execute(CpuContext& context, const BestOfParts& op);
void execute(CudaContext& context, const BestOfParts& op);

} // namespace vitrine::kernels
