// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw.h"

#include <algorithm>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/optimizer/adamw_step.h"

namespace vitrine::kernels {

namespace {

template <class C> void adamWTensor(CpuContext& context, const AdamW& op) {
    const auto step = adamWStep<C>(op);
    const std::int64_t total = op.parameter.shape.count();
    forRows(context, (total + kRowPiece - 1) / kRowPiece, 8 * kRowPiece, [&](std::int64_t piece) {
        const std::int64_t begin = piece * kRowPiece;
        const std::int64_t count = std::min(kRowPiece, total - begin);
        C moment1[kRowPiece];
        C moment2[kRowPiece];
        loadFloats(op.moment1.dtype, op.moment1.data, begin, count, moment1);
        loadFloats(op.moment2.dtype, op.moment2.data, begin, count, moment2);
        adamWPiece(step, op, begin, count, moment1, moment2);
        storeFloats(op.moment1.dtype, moment1, count, op.moment1.data, begin);
        storeFloats(op.moment2.dtype, moment2, count, op.moment2.data, begin);
    });
}

} // namespace

void execute(CpuContext& context, const AdamW& op) {
    if (op.parameter.dtype == DType::F64) {
        adamWTensor<double>(context, op);
    } else {
        adamWTensor<float>(context, op);
    }
}

} // namespace vitrine::kernels
