// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What AdamW and AdamW8Bit share: the numbers of a step, one element's update, and the rules for their fields.

#include <cmath>
#include <cstdint>

#include "kernels/core/floats.h"
#include "kernels/core/tensor.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

/// The numbers of a step, made in double and rounded once.
template <class C> struct AdamWStep {
    C decay;        ///< of the parameter: 1 - learningRate weightDecay
    C beta1, rest1; ///< rest: 1 - beta
    C beta2, rest2; ///< the same
    C rate;         ///< learningRate / (1 - beta1^step)
    C root;         ///< sqrt(1 - beta2^step)
    C epsilon;      ///< as given

    void update(C gradient, C& parameter, C& moment1, C& moment2) const {
        moment1 = beta1 * moment1 + rest1 * gradient;
        moment2 = beta2 * moment2 + rest2 * gradient * gradient;
        parameter = parameter * decay - rate * (moment1 / (std::sqrt(moment2) / root + epsilon));
    }
};

template <class C, class Op> AdamWStep<C> adamWStep(const Op& op) {
    const auto step = static_cast<double>(op.step);
    return {static_cast<C>(1 - op.learningRate * op.weightDecay),
            static_cast<C>(op.beta1),
            static_cast<C>(1 - op.beta1),
            static_cast<C>(op.beta2),
            static_cast<C>(1 - op.beta2),
            static_cast<C>(op.learningRate / (1 - std::pow(op.beta1, step))),
            static_cast<C>(std::sqrt(1 - std::pow(op.beta2, step))),
            static_cast<C>(op.epsilon)};
}

/// What is updated: the master, where there is one.
template <class Op> const TensorView& updatedOf(const Op& op) {
    return op.master.empty() ? op.parameter : op.master;
}

/// Updates `count` elements from `begin` on; their moments are in moment1 and moment2.
template <class C, class Op>
void adamWPiece(const AdamWStep<C>& step, const Op& op, std::int64_t begin, std::int64_t count, C* moment1,
                C* moment2) {
    C values[kRowPiece];
    C gradients[kRowPiece];
    const TensorView& updated = updatedOf(op);
    loadFloats(updated.dtype, updated.data, begin, count, values);
    loadFloats(op.gradient.dtype, op.gradient.data, begin, count, gradients);
    const C scale = op.gradScale.empty() ? C(1) : static_cast<C>(*op.gradScale.template as<const float>());
    for (std::int64_t i = 0; i < count; ++i) {
        step.update(gradients[i] * scale, values[i], moment1[i], moment2[i]);
    }
    storeFloats(updated.dtype, values, count, updated.data, begin);
    if (!op.master.empty()) {
        storeFloats(op.parameter.dtype, values, count, op.parameter.data, begin);
    }
}

/// As many elements as the parameter, one after the other.
inline void checkElements(const OpCheck& rule, const TensorView& tensor, std::string_view field, std::int64_t count) {
    rule.present(tensor, field);
    rule.require(tensor.shape.count() == count, field, "it has not as many elements as parameter");
    rule.contiguous(tensor, field);
}

/// The rules for the fields that both ops have.
template <class Op> void checkAdamW(const OpCheck& rule, const Op& op) {
    const std::int64_t count = op.parameter.shape.count();
    checkElements(rule, op.parameter, "parameter", count);
    rule.floating(op.parameter, "parameter");
    checkElements(rule, op.gradient, "gradient", count);
    rule.floating(op.gradient, "gradient");
    rule.disjoint(op.gradient, "gradient", op.parameter, "parameter");
    if (!op.master.empty()) {
        checkElements(rule, op.master, "master", count);
        rule.dtype(op.master, "master", DType::F32);
        rule.disjoint(op.master, "master", op.parameter, "parameter");
        rule.disjoint(op.master, "master", op.gradient, "gradient");
    }
    if (!op.gradScale.empty()) {
        rule.shape(op.gradScale, "gradScale", {1});
        rule.dtype(op.gradScale, "gradScale", DType::F32);
    }
    rule.require(op.beta1 >= 0 && op.beta1 < 1, "beta1", "it is not in [0, 1)");
    rule.require(op.beta2 >= 0 && op.beta2 < 1, "beta2", "it is not in [0, 1)");
    rule.require(op.step >= 1, "step", "steps count from 1");
}

} // namespace vitrine::kernels
