// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/expert_groups.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

ExpertScratch::ExpertScratch(const ExpertMatmul& op, ScratchLayout layout) {
    if (op.ids.shape[0] <= kFewExpertTokens) {
        prepared = layout.take(DType::F32, Shape{op.x.shape[0], preparedSize(op.x.shape[1])});
    }
    pairs = layout.take(DType::I32, Shape{op.ids.shape.count()});
    starts = layout.take(DType::I32, Shape{op.weight.experts() + 1});
    bytes = layout.bytes();
}

void groupPairs(const TensorView& ids, const TensorView& startsOut, const TensorView& pairsOut) {
    const auto experts = static_cast<std::int32_t>(startsOut.shape[0] - 1);
    const std::int64_t count = ids.shape.count();
    const std::int32_t* chosen = ids.as<const std::int32_t>();
    std::int32_t* starts = startsOut.as<std::int32_t>();
    std::fill(starts, starts + experts + 1, 0);
    for (std::int64_t i = 0; i < count; ++i) {
        if (chosen[i] == kOtherRanksExpert) {
            continue;
        }
        if (chosen[i] < 0 || chosen[i] >= experts) {
            throw base::Internal(fmt::format("ids: expert {} of {}", chosen[i], experts));
        }
        ++starts[chosen[i] + 1];
    }
    for (std::int32_t expert = 0; expert < experts; ++expert) {
        starts[expert + 1] += starts[expert];
    }
    std::int32_t* pairs = pairsOut.as<std::int32_t>();
    std::int32_t cursor[kMaxExperts];
    std::copy(starts, starts + experts, cursor);
    std::int32_t last = starts[experts];
    for (std::int64_t i = 0; i < count; ++i) {
        pairs[chosen[i] == kOtherRanksExpert ? last++ : cursor[chosen[i]]++] = static_cast<std::int32_t>(i);
    }
}

} // namespace vitrine::kernels
