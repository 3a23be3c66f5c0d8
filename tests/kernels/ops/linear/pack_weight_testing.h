// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Weights of every form that PackWeight fills.

#include "kernels/ops/linear/pack_weight.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels::testing {

struct PackForm {
    WeightFormat format = WeightFormat::Int4;
    std::int64_t group = 32, rowGroup = 1;
    DType type = DType::F32;
    IntegerRule rule = IntegerRule::Seven;
};

/// Tensors of (experts, out, in), and the op over them.
struct PackRig {
    PackForm form;
    Shape shape;
    TestTensor x, data, scales, changed;

    PackRig(std::mt19937& random, const PackForm& what, DType xType, std::int64_t experts, std::int64_t out,
            std::int64_t in)
        : form(what), shape{experts, out, in}, x(xType, shape), changed(DType::I64, Shape{1}) {
        const std::int64_t groups = (in + form.group - 1) / form.group;
        const std::int64_t rows = (out + form.rowGroup - 1) / form.rowGroup;
        x.fillNormal(random, 0.3);
        if (form.format == WeightFormat::Mxfp4) {
            data = TestTensor(DType::U8, Shape{experts, out, groups, 16});
            scales = TestTensor(DType::U8, Shape{experts, out, groups});
        } else if (form.format == WeightFormat::Fp8) {
            data = TestTensor(DType::U8, shape);
            scales = TestTensor(DType::F32, Shape{experts, rows, groups});
        } else {
            data = TestTensor(DType::U8, Shape{experts, out, in / 2});
            scales = TestTensor(form.type, Shape{experts, out, groups});
        }
        data.fillBytes(random, 0, 255);
        changed.view().as<std::int64_t>()[0] = 1000;
    }
    template <class At> PackWeight op(At&& at) {
        PackWeight op;
        op.x = at(x);
        op.out.format = form.format;
        op.out.data = at(data);
        op.out.scales = at(scales);
        op.out.group = form.group;
        op.out.rowGroup = form.rowGroup;
        op.out.shape = shape;
        op.type = form.type;
        op.rule = form.rule;
        op.changed = at(changed);
        return op;
    }
    PackWeight onHost() {
        return op([](TestTensor& tensor) { return tensor.view(); });
    }
    std::int64_t changes() { return changed.view().as<std::int64_t>()[0] - 1000; }
};

} // namespace vitrine::kernels::testing
