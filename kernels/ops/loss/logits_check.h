// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the check functions of losses share.

#include <string_view>

#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

/// F32 or F64, contiguous.
void checkLossValues(const OpCheck& rule, const TensorView& tensor, std::string_view field);
/// The fields "logits", rows of floats, and "targets", an I32 for each of them.
void checkLogits(const OpCheck& rule, const TensorView& logits, const TensorView& targets);
/// The field "gradLogits". It may take the place of the logits when no row of it reaches into logits that are still to
/// be read.
void checkGradLogits(const OpCheck& rule, const TensorView& gradLogits, const TensorView& logits);

} // namespace vitrine::kernels
