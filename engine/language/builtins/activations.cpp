// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch.nn.functional's activations, by their formulas in PyTorch's documentation.
#include <array>
#include <numbers>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::ProgramOp;

namespace {

using E = ModEvaluator;
using C = ModCall;

/// The one argument of an activation; `inplace` changes nothing here.
ModValue activated(C& c) {
    const ModValue x = c.required(0, "input");
    static_cast<void>(c.keyword("inplace"));
    return x;
}

ModValue between(E& e, ModValue x, ModValue low, ModValue high) {
    return e.binary(ProgramOp::Min, e.binary(ProgramOp::Max, x, low), high);
}

ModValue relu(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return e.binary(ProgramOp::Max, x, ModValue::integer(0));
}

ModValue gelu(E& e, C& c) {
    const ModValue x = activated(c);
    const auto approximate = c.keyword("approximate");
    c.finish();
    ModValue inner;
    if (approximate && e.text(*approximate, "approximate") == "tanh") {
        const ModValue cube = e.binary(ProgramOp::Mul, e.binary(ProgramOp::Mul, x, x), x);
        inner = e.binary(ProgramOp::Add, x, e.binary(ProgramOp::Mul, cube, ModValue::real(0.044715)));
        inner = e.unary(ProgramOp::Tanh, e.binary(ProgramOp::Mul, inner,
                                                  ModValue::real(std::numbers::sqrt2 * std::numbers::inv_sqrtpi)));
    } else {
        inner = e.unary(ProgramOp::Erf, e.binary(ProgramOp::Mul, x, ModValue::real(1 / std::numbers::sqrt2)));
    }
    const ModValue half = e.binary(ProgramOp::Mul, x, ModValue::real(0.5));
    return e.binary(ProgramOp::Mul, half, e.binary(ProgramOp::Add, inner, ModValue::real(1)));
}

ModValue silu(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return e.binary(ProgramOp::Mul, x, e.unary(ProgramOp::Sigmoid, x));
}

ModValue softplus(E& e, C& c) {
    ModValue x = activated(c);
    const auto beta = c.optional(1, "beta");
    static_cast<void>(c.optional(2, "threshold")); // beyond it PyTorch gives x, which this is to the last bit
    c.finish();
    if (beta) {
        C inner;
        inner.arguments.push_back(e.binary(ProgramOp::Mul, x, *beta));
        return e.binary(ProgramOp::Div, softplus(e, inner), *beta);
    }
    // max(x, 0) + log1p(exp(-|x|)), which neither overflows nor cancels.
    const ModValue small = e.unary(ProgramOp::Exp, e.unary(ProgramOp::Neg, e.unary(ProgramOp::Abs, x)));
    return e.binary(ProgramOp::Add, e.binary(ProgramOp::Max, x, ModValue::real(0)), e.unary(ProgramOp::Log1p, small));
}

ModValue logSigmoid(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    C inner;
    inner.arguments.push_back(e.unary(ProgramOp::Neg, x));
    return e.unary(ProgramOp::Neg, softplus(e, inner));
}

ModValue leakyRelu(E& e, C& c) {
    const ModValue x = activated(c);
    const ModValue slope = c.optional(1, "negative_slope").value_or(ModValue::real(0.01));
    c.finish();
    return e.select(e.binary(ProgramOp::Lt, x, ModValue::real(0)), e.binary(ProgramOp::Mul, x, slope), x);
}

ModValue elu(E& e, C& c) {
    const ModValue x = activated(c);
    const ModValue alpha = c.optional(1, "alpha").value_or(ModValue::real(1));
    c.finish();
    const ModValue low =
        e.binary(ProgramOp::Mul, alpha, e.unary(ProgramOp::Expm1, e.binary(ProgramOp::Min, x, ModValue::real(0))));
    return e.select(e.binary(ProgramOp::Lt, x, ModValue::real(0)), low, x);
}

ModValue hardTanh(E& e, C& c) {
    const ModValue x = activated(c);
    const ModValue low = c.optional(1, "min_val").value_or(ModValue::real(-1));
    const ModValue high = c.optional(2, "max_val").value_or(ModValue::real(1));
    c.finish();
    return between(e, x, low, high);
}

ModValue relu6(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return between(e, x, ModValue::integer(0), ModValue::integer(6));
}

/// clamp(x / 6 + 1 / 2, 0, 1).
ModValue hardSigmoidOf(E& e, ModValue x) {
    const ModValue sum = e.binary(ProgramOp::Add, x, ModValue::integer(3));
    return e.binary(ProgramOp::Div, between(e, sum, ModValue::integer(0), ModValue::integer(6)), ModValue::integer(6));
}
ModValue hardSigmoid(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return hardSigmoidOf(e, x);
}
ModValue hardSwish(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return e.binary(ProgramOp::Mul, x, hardSigmoidOf(e, x));
}

ModValue mish(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    C inner;
    inner.arguments.push_back(x);
    return e.binary(ProgramOp::Mul, x, e.unary(ProgramOp::Tanh, softplus(e, inner)));
}

ModValue softSign(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return e.binary(ProgramOp::Div, x, e.binary(ProgramOp::Add, e.unary(ProgramOp::Abs, x), ModValue::integer(1)));
}

ModValue threshold(E& e, C& c) {
    const ModValue x = activated(c);
    const ModValue limit = c.required(1, "threshold");
    const ModValue value = c.required(2, "value");
    c.finish();
    return e.select(e.binary(ProgramOp::Lt, limit, x), x, value);
}

/// scale (max(x, 0) + min(0, alpha (exp(x / width) - 1))).
ModValue exponentialUnit(E& e, ModValue x, ModValue alpha, ModValue width) {
    const ModValue low =
        e.unary(ProgramOp::Expm1, e.binary(ProgramOp::Div, e.binary(ProgramOp::Min, x, ModValue::integer(0)), width));
    return e.binary(ProgramOp::Add, e.binary(ProgramOp::Max, x, ModValue::integer(0)),
                    e.binary(ProgramOp::Mul, alpha, low));
}
ModValue celu(E& e, C& c) {
    const ModValue x = activated(c);
    const ModValue alpha = c.optional(1, "alpha").value_or(ModValue::real(1));
    c.finish();
    return exponentialUnit(e, x, alpha, alpha);
}
ModValue selu(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return e.binary(ProgramOp::Mul,
                    exponentialUnit(e, x, ModValue::real(1.6732632423543772848170429916717), ModValue::real(1)),
                    ModValue::real(1.0507009873554804934193349852946));
}

/// 0 within `lambd`; soft: the rest moves towards 0 by it.
template <bool Soft> ModValue shrink(E& e, C& c) {
    const ModValue x = activated(c);
    const ModValue width = c.optional(1, "lambd").value_or(ModValue::real(0.5));
    c.finish();
    const ModValue above = Soft ? e.binary(ProgramOp::Sub, x, width) : x;
    const ModValue below = Soft ? e.binary(ProgramOp::Add, x, width) : x;
    return e.select(e.binary(ProgramOp::Lt, width, x), above,
                    e.select(e.binary(ProgramOp::Lt, x, e.unary(ProgramOp::Neg, width)), below, ModValue::real(0)));
}

ModValue tanhShrink(E& e, C& c) {
    const ModValue x = activated(c);
    c.finish();
    return e.binary(ProgramOp::Sub, x, e.unary(ProgramOp::Tanh, x));
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"torch.relu", relu},
    {"torch.gelu", gelu},
    {"torch.silu", silu},
    {"torch.softplus", softplus},
    {"torch.logsigmoid", logSigmoid},
    {"torch.leaky_relu", leakyRelu},
    {"torch.elu", elu},
    {"torch.hardtanh", hardTanh},
    {"torch.relu6", relu6},
    {"torch.hardsigmoid", hardSigmoid},
    {"torch.hardswish", hardSwish},
    {"torch.mish", mish},
    {"torch.softsign", softSign},
    {"torch.threshold", threshold},
    {"torch.celu", celu},
    {"torch.selu", selu},
    {"torch.hardshrink", shrink<false>},
    {"torch.softshrink", shrink<true>},
    {"torch.tanhshrink", tanhShrink},
});

} // namespace

std::span<const ModBuiltinEntry> activationBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
