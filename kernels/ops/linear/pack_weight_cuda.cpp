// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/device/abi/pack_weight.h"

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/pack_weight.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const PackWeight& op) {
    if (op.x.shape.count() == 0) {
        return;
    }
    abi::PackWeightParams params{};
    params.x = op.x.data;
    params.data = op.out.data.data;
    params.scales = op.out.scales.data;
    params.changed = op.changed.as<unsigned long long>();
    params.groups = op.x.shape.count() / op.out.group;
    params.pieces = toInt(op.out.group / 8, PackWeight::kName, "out");
    params.out = toInt(op.out.outFeatures(), PackWeight::kName, "out");
    params.in = toInt(op.out.inFeatures(), PackWeight::kName, "out");
    params.group = toInt(op.out.group, PackWeight::kName, "out");
    params.rowGroup = toInt(op.out.rowGroup, PackWeight::kName, "out");
    launchFamily(context, "pack_weight", abi::kPackWeightAbi, params,
                 {{"x_dtype", dtypeNumber(op.x)},
                  {"type", static_cast<std::int64_t>(op.type)},
                  {"format", static_cast<std::int64_t>(op.out.format)},
                  {"seven", op.rule == IntegerRule::Seven ? 1 : 0},
                  {"group", op.out.group},
                  {"groups", params.groups},
                  {"aligned", startsAligned(op.x) && startsAligned(op.out.data) ? 1 : 0},
                  {"in", params.in},
                  {"out", params.out},
                  {"row_group", op.out.rowGroup},
                  {"experts", op.out.experts()}});
}

} // namespace vitrine::kernels
