// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rules for a weight of a product.

#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

/// Exactly one of dense and mxfp4 is set, with matching shapes and dtypes.
void checkWeight(const OpCheck& rule, const WeightView& weight, std::string_view field);

} // namespace vitrine::kernels
