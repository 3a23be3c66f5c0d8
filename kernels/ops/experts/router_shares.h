// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the load-balancing loss of a mixture of experts counts (Fedus and others 2021, equations 4 to 6).

#include "kernels/core/op.h"
#include "kernels/ops/experts/moe.h"

namespace vitrine::kernels {

/// Row t of out: the probability of each expert, a softmax over all logits of the token, then 1 for each expert that
/// was chosen and 0 for the others. The sums over tokens are SumRows'.
struct RouterShares {
    static constexpr std::string_view kName = "RouterShares";
    RouterTopK forward; ///< with the ids that it gave; its weights are not read
    TensorView out;     ///< (tokens, 2 experts) F32, contiguous
};

void check(const RouterShares& op);
Cost cost(const RouterShares& op, const DeviceTraits& traits);
/// 0: the op needs no scratch.
std::uint64_t scratch(const RouterShares& op, const DeviceTraits& traits);
void execute(CpuContext& context, const RouterShares& op);
void execute(CudaContext& context, const RouterShares& op);

} // namespace vitrine::kernels
