// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_plan.h"

#include <cstddef>

#include "base/error.h"
#include "kernels/core/device_traits.h"
#include "kernels/core/op.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/attention/flex_attention.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

/// Costs depend on shapes alone; a view that points nowhere would be a tensor that is left out.
kernels::TensorView viewOf(kernels::DType dtype, const kernels::Shape& shape) {
    static std::byte nothing{};
    kernels::TensorView view;
    view.data = &nothing;
    view.dtype = dtype;
    view.shape = shape;
    return view;
}

template <class Op> double milliseconds(const Op& op, const kernels::DeviceTraits& traits) {
    return kernels::opSeconds(Op::kName, kernels::cost(op, traits), traits).seconds * 1e3;
}

} // namespace

std::optional<MaskPlan> maskPlan(const MaskMap& map, const MaskSizes& sizes, const std::string& profile) {
    using kernels::DType;
    kernels::DeviceTraits traits;
    try {
        traits = kernels::loadDeviceProfile(profile);
    } catch (const base::Error&) {
        return std::nullopt;
    }
    const kernels::Shape queries{sizes.batch, sizes.heads, sizes.queries, sizes.headDim};
    const kernels::Shape keys{sizes.batch, sizes.kvHeads, sizes.keys, sizes.headDim};
    kernels::FlexAttentionBackward masked;
    masked.forward.q = masked.forward.out = masked.gradOut = masked.dq = viewOf(DType::BF16, queries);
    masked.forward.k = masked.forward.v = masked.dk = masked.dv = viewOf(DType::BF16, keys);
    masked.forward.lse = viewOf(DType::F32, {sizes.batch, sizes.heads, sizes.queries});
    kernels::FlexAttentionBackward full = masked;
    masked.forward.blocks = map.blocks.get();
    MaskPlan plan;
    plan.device = textOf(traits.name);
    plan.forward = {milliseconds(masked.forward, traits), milliseconds(full.forward, traits)};
    plan.backward = {milliseconds(masked, traits), milliseconds(full, traits)};
    return plan;
}

} // namespace vitrine::ui
