// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/optimizer/adamw_step.h"

namespace vitrine::kernels {

namespace {

void checkMoment(const OpCheck& rule, const AdamW& op, const TensorView& moment, std::string_view field) {
    checkElements(rule, moment, field, op.parameter.shape.count());
    rule.dtype(moment, field, op.parameter.dtype == DType::F64 ? DType::F64 : DType::F32);
    rule.disjoint(moment, field, op.parameter, "parameter");
    rule.disjoint(moment, field, op.master, "master");
    rule.disjoint(moment, field, op.gradient, "gradient");
}

} // namespace

void check(const AdamW& op) {
    const OpCheck rule(AdamW::kName);
    checkAdamW(rule, op);
    rule.require(op.master.empty() || op.parameter.dtype != DType::F64, "master",
                 "a float64 parameter is its own master");
    checkMoment(rule, op, op.moment1, "moment1");
    checkMoment(rule, op, op.moment2, "moment2");
    rule.disjoint(op.moment2, "moment2", op.moment1, "moment1");
}

Cost cost(const AdamW& op, const DeviceTraits&) {
    const std::uint64_t moments = op.moment1.bytes() + op.moment2.bytes();
    const std::uint64_t rounded = op.master.empty() ? 0 : op.parameter.bytes();
    return streamingCost(updatedOf(op).bytes() + op.gradient.bytes() + moments,
                         updatedOf(op).bytes() + rounded + moments,
                         14 * static_cast<std::uint64_t>(op.parameter.shape.count()), op.moment1.dtype);
}

std::uint64_t scratch(const AdamW&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
