// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/finish_block.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/comm/comm_parts.h"
#include "kernels/ops/comm/finish_parts.h"

namespace vitrine::kernels {

FinishBlockPrimitives::FinishBlockPrimitives(const FinishBlock& op, const DeviceTraits& traits) {
    reduce = AllReduce{op.partial, op.partial, op.communicator, op.scratch};
    bytes = kernels::scratch(reduce, traits);
    if (!op.postNorm.weight.empty()) {
        norm = RmsNorm{op.partial, op.postNorm.weight, op.partial, op.postNorm.eps, op.postNorm.form};
    }
    add = Add{op.residual, op.partial, op.out};
}

void check(const FinishBlock& op) {
    const OpCheck rule(FinishBlock::kName);
    checkCollective(rule, op.communicator, op.partial, "partial");
    rule.disjoint(op.partial, "partial", op.residual, "residual");
    FinishBlockPrimitives(op, DeviceTraits{}).forEach([](const auto& part) { check(part); });
}

Cost cost(const FinishBlock& op, const DeviceTraits& traits) {
    Cost sum;
    sum.launches = 0;
    sum.computeType = op.partial.dtype;
    FinishBlockPrimitives(op, traits).forEach([&](const auto& part) { addCost(sum, cost(part, traits)); });
    return sum;
}

std::uint64_t scratch(const FinishBlock& op, const DeviceTraits& traits) {
    return FinishBlockPrimitives(op, traits).bytes;
}

void execute(MetaContext& context, const FinishBlock& op) {
    joinRanks(context, FinishBlock::kName, *op.communicator);
}

} // namespace vitrine::kernels
