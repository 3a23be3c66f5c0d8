// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which of a router's choices are of experts that this rank has.

#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/experts/moe.h"

namespace vitrine::kernels {

/// out = ids - first where that is one of `count` experts, else kOtherRanksExpert.
struct OwnExperts {
    static constexpr std::string_view kName = "OwnExperts";
    TensorView ids; ///< (tokens, k) I32
    TensorView out; ///< as ids; may be ids
    std::int64_t first = 0;
    std::int64_t count = 0;
};

void check(const OwnExperts& op);
Cost cost(const OwnExperts& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const OwnExperts& op, const DeviceTraits& traits);
void execute(CpuContext& context, const OwnExperts& op);
void execute(CudaContext& context, const OwnExperts& op);

} // namespace vitrine::kernels
