// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weight_check.h"

#include "kernels/formats/weight_formats.h"

namespace vitrine::kernels {

void checkWeight(const OpCheck& rule, const WeightView& weight, std::string_view field) {
    rule.require(!weight.empty(), field, "missing");
    rule.require(weight.shape.rank() == 2 || weight.shape.rank() == 3, field, "rank is not 2 or 3");
    if (weight.quantized()) {
        const std::string problem = packedFormat(weight.format).problem(weight);
        rule.require(problem.empty(), field, problem);
        return;
    }
    rule.floating(weight.data, field);
    rule.rowsContiguous(weight.data, field);
    rule.require(weight.scales.empty() && weight.zeros.empty() && weight.scaleScales.empty() && weight.order.empty(),
                 field, "dense weights have no scales, zeros and order");
}

} // namespace vitrine::kernels
