// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/logits_check.h"

namespace vitrine::kernels {

void checkLossValues(const OpCheck& rule, const TensorView& tensor, std::string_view field) {
    rule.require(tensor.dtype == DType::F32 || tensor.dtype == DType::F64, field, "dtype float32 or float64 is needed");
    rule.contiguous(tensor, field);
}

void checkLogits(const OpCheck& rule, const TensorView& logits, const TensorView& targets) {
    rule.shape(logits, "logits", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(logits, "logits");
    rule.rowsContiguous(logits, "logits");
    rule.require(logits.shape[1] > 0, "logits", "rows are empty");
    rule.shape(targets, "targets", {logits.shape[0]});
    rule.dtype(targets, "targets", DType::I32);
    rule.contiguous(targets, "targets");
}

void checkGradLogits(const OpCheck& rule, const TensorView& gradLogits, const TensorView& logits) {
    rule.shape(gradLogits, "gradLogits", {logits.shape[0], logits.shape[1]});
    rule.floating(gradLogits, "gradLogits");
    rule.rowsContiguous(gradLogits, "gradLogits");
    if (gradLogits.data != logits.data) {
        rule.disjoint(gradLogits, "gradLogits", logits, "logits");
        return;
    }
    rule.require(bitsOf(gradLogits.dtype) <= bitsOf(logits.dtype), "gradLogits",
                 "a dtype wider than that of logits, whose memory it takes");
    rule.require(logits.shape[0] <= 1 ||
                     bytesOf(gradLogits.dtype, gradLogits.stride0()) == bytesOf(logits.dtype, logits.stride0()),
                 "gradLogits", "its rows do not begin where those of logits do, whose memory it takes");
}

} // namespace vitrine::kernels
