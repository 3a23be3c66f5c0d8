// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Weights of every form that PackWeights fills.

#include <deque>
#include <random>

#include "kernels/ops/linear/pack_weight.h"
#include "tests/kernels/ops/linear/weight_testing.h"

namespace vitrine::kernels::testing {

struct PackForm {
    WeightFormat format = WeightFormat::Int4;
    std::int64_t group = 32, rowGroup = 1;
    DType type = DType::F32;
    IntegerRule rule = IntegerRule::Seven;
};

/// What a weight is made of, and whether its values are written too.
struct PackBase {
    DType x = DType::F32;
    WeightFormat format = WeightFormat::Dense; ///< of x; packed in the groups of the result
    std::int64_t rank = 0;                     ///< of an adapter; 0: none
    DType adapter = DType::BF16;
    DType values = DType::None;
};

/// A packed weight of random bytes: no scale is large, and none is not finite.
struct PackedTensors {
    TestTensor data, scales;

    PackedTensors() = default;
    PackedTensors(std::mt19937& random, WeightFormat format, const PackForm& form, const Shape& shape) {
        const std::int64_t experts = shape[0], out = shape[1], in = shape[2];
        const std::int64_t groups = (in + form.group - 1) / form.group;
        const std::int64_t rows = (out + form.rowGroup - 1) / form.rowGroup;
        if (format == WeightFormat::Mxfp4) {
            data = TestTensor(DType::U8, Shape{experts, out, groups, 16});
            scales = TestTensor(DType::U8, Shape{experts, out, groups});
            scales.fillBytes(random, 119, 130);
        } else if (format == WeightFormat::Fp8) {
            data = TestTensor(DType::U8, shape);
            scales = TestTensor(DType::F32, Shape{experts, rows, groups});
        } else {
            data = TestTensor(DType::U8, Shape{experts, out, in / 2});
            scales = TestTensor(form.type, Shape{experts, out, groups});
        }
        if (format != WeightFormat::Mxfp4) {
            scales.fillNormal(random, 0.02);
        }
        data.fillBytes(random, 0, format == WeightFormat::Fp8 ? 0x7E : 255); // 0x7F is no number
    }
    template <class At> WeightView view(At&& at, WeightFormat format, const PackForm& form, const Shape& shape) {
        WeightView out;
        out.format = format;
        out.data = at(data);
        out.scales = at(scales);
        out.group = form.group;
        out.rowGroup = form.rowGroup;
        out.shape = shape;
        return out;
    }
};

/// Tensors of (experts, out, in), and the op over them.
struct PackRig {
    PackForm form;
    PackBase base;
    Shape shape;
    TestTensor x, a, b, values, changed;
    PackedTensors packed; ///< of x
    PackedTensors out;

    PackRig(std::mt19937& random, const PackForm& what, const PackBase& of, std::int64_t experts, std::int64_t rows,
            std::int64_t in)
        : form(what), base(of), shape{experts, rows, in}, changed(DType::I64, Shape{1}),
          out(random, what.format, what, shape) {
        if (base.format == WeightFormat::Dense) {
            x = TestTensor(base.x, shape);
            x.fillNormal(random, 0.3);
        } else {
            packed = PackedTensors(random, base.format, form, shape);
        }
        if (base.rank > 0) {
            a = TestTensor(base.adapter, Shape{experts, base.rank, in});
            b = TestTensor(base.adapter, Shape{experts, rows, base.rank});
            a.fillNormal(random);
            b.fillNormal(random, 0.1);
        }
        if (base.values != DType::None) {
            values = TestTensor(base.values, shape);
            values.fillNormal(random);
        }
        changed.view().as<std::int64_t>()[0] = 1000;
    }
    PackRig(std::mt19937& random, const PackForm& what, DType xType, std::int64_t experts, std::int64_t rows,
            std::int64_t in)
        : PackRig(random, what, PackBase{xType}, experts, rows, in) {}

    template <class At> PackWeight weight(At&& at) {
        PackWeight op;
        op.x = base.format == WeightFormat::Dense ? denseWeight(at(x)) : packed.view(at, base.format, form, shape);
        if (base.rank > 0) {
            op.adapter = {at(a), at(b), 0.37F};
        }
        if (base.values != DType::None) {
            op.values = at(values);
        }
        op.out = out.view(at, form.format, form, shape);
        op.type = form.type;
        op.rule = form.rule;
        return op;
    }
    /// The op keeps what it is made of in this rig.
    template <class At> PackWeights op(At&& at) {
        const PackWeight& one = made_.emplace_back(weight(at));
        return {{&one, 1}, at(changed)};
    }
    PackWeights onHost() {
        return op([](TestTensor& tensor) { return tensor.view(); });
    }
    std::int64_t changes() { return changed.view().as<std::int64_t>()[0] - 1000; }

private:
    std::deque<PackWeight> made_;
};

} // namespace vitrine::kernels::testing
