// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw_8bit.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/optimizer/adamw_step.h"

namespace vitrine::kernels {

namespace {

void checkMoment8Bit(const OpCheck& rule, const AdamW8Bit& op, const TensorView& code, std::string_view codeField,
                     const TensorView& absmax, std::string_view absmaxField) {
    const std::int64_t count = op.parameter.shape.count();
    checkElements(rule, code, codeField, count);
    rule.dtype(code, codeField, DType::U8);
    rule.shape(absmax, absmaxField, {adamW8BitBlocks(count)});
    rule.dtype(absmax, absmaxField, DType::F32);
    rule.contiguous(absmax, absmaxField);
    rule.disjoint(code, codeField, op.parameter, "parameter");
    rule.disjoint(code, codeField, op.master, "master");
    rule.disjoint(code, codeField, op.gradient, "gradient");
    rule.disjoint(absmax, absmaxField, code, codeField);
}

} // namespace

void check(const AdamW8Bit& op) {
    const OpCheck rule(AdamW8Bit::kName);
    checkAdamW(rule, op);
    rule.require(op.parameter.dtype != DType::F64, "parameter", "dtype float64 where the moments are bytes");
    checkMoment8Bit(rule, op, op.code1, "code1", op.absmax1, "absmax1");
    checkMoment8Bit(rule, op, op.code2, "code2", op.absmax2, "absmax2");
    rule.disjoint(op.code2, "code2", op.code1, "code1");
    rule.disjoint(op.absmax2, "absmax2", op.absmax1, "absmax1");
    rule.shape(op.maps, "maps", {2, 256});
    rule.dtype(op.maps, "maps", DType::F32);
    rule.contiguous(op.maps, "maps");
}

Cost cost(const AdamW8Bit& op, const DeviceTraits&) {
    const std::uint64_t moments = op.code1.bytes() + op.absmax1.bytes() + op.code2.bytes() + op.absmax2.bytes();
    const std::uint64_t rounded = op.master.empty() ? 0 : op.parameter.bytes();
    return streamingCost(updatedOf(op).bytes() + op.gradient.bytes() + op.maps.bytes() + moments,
                         updatedOf(op).bytes() + rounded + moments,
                         40 * static_cast<std::uint64_t>(op.parameter.shape.count()), DType::F32);
}

std::uint64_t scratch(const AdamW8Bit&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
