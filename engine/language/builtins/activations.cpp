// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch.nn.functional's activations, by their formulas in PyTorch's documentation.
#include <numbers>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

/// The one argument of an activation; `inplace` changes nothing here.
PyValue activated(C& c) {
    const PyValue x = c.required(0, "input");
    static_cast<void>(c.keyword("inplace"));
    return x;
}

PyValue between(E& e, PyValue x, PyValue low, PyValue high) {
    return e.elements.binary(ProgramOp::Min, e.elements.binary(ProgramOp::Max, x, low), high);
}

PyValue relu(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return e.elements.binary(ProgramOp::Max, x, PyValue::integer(0));
}

PyValue gelu(E& e, C& c) {
    const PyValue x = activated(c);
    const auto approximate = c.keyword("approximate");
    c.finish();
    PyValue inner;
    if (approximate && e.convert.text(*approximate, "approximate") == "tanh") {
        const PyValue cube = e.elements.binary(ProgramOp::Mul, e.elements.binary(ProgramOp::Mul, x, x), x);
        inner = e.elements.binary(ProgramOp::Add, x, e.elements.binary(ProgramOp::Mul, cube, PyValue::real(0.044715)));
        inner = e.elements.unary(
            ProgramOp::Tanh,
            e.elements.binary(ProgramOp::Mul, inner, PyValue::real(std::numbers::sqrt2 * std::numbers::inv_sqrtpi)));
    } else {
        inner = e.elements.unary(ProgramOp::Erf,
                                 e.elements.binary(ProgramOp::Mul, x, PyValue::real(1 / std::numbers::sqrt2)));
    }
    const PyValue half = e.elements.binary(ProgramOp::Mul, x, PyValue::real(0.5));
    return e.elements.binary(ProgramOp::Mul, half, e.elements.binary(ProgramOp::Add, inner, PyValue::real(1)));
}

PyValue silu(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return e.elements.binary(ProgramOp::Mul, x, e.elements.unary(ProgramOp::Sigmoid, x));
}

PyValue softplus(E& e, C& c) {
    PyValue x = activated(c);
    const auto beta = c.optional(1, "beta");
    static_cast<void>(c.optional(2, "threshold")); // beyond it PyTorch gives x, which this is to the last bit
    c.finish();
    if (beta) {
        C inner;
        inner.arguments.push_back(e.elements.binary(ProgramOp::Mul, x, *beta));
        return e.elements.binary(ProgramOp::Div, softplus(e, inner), *beta);
    }
    // max(x, 0) + log1p(exp(-|x|)), which neither overflows nor cancels.
    const PyValue small =
        e.elements.unary(ProgramOp::Exp, e.elements.unary(ProgramOp::Neg, e.elements.unary(ProgramOp::Abs, x)));
    return e.elements.binary(ProgramOp::Add, e.elements.binary(ProgramOp::Max, x, PyValue::real(0)),
                             e.elements.unary(ProgramOp::Log1p, small));
}

PyValue logSigmoid(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    C inner;
    inner.arguments.push_back(e.elements.unary(ProgramOp::Neg, x));
    return e.elements.unary(ProgramOp::Neg, softplus(e, inner));
}

PyValue leakyRelu(E& e, C& c) {
    const PyValue x = activated(c);
    const PyValue slope = c.optional(1, "negative_slope").value_or(PyValue::real(0.01));
    c.finish();
    return e.elements.select(e.elements.binary(ProgramOp::Lt, x, PyValue::real(0)),
                             e.elements.binary(ProgramOp::Mul, x, slope), x);
}

PyValue elu(E& e, C& c) {
    const PyValue x = activated(c);
    const PyValue alpha = c.optional(1, "alpha").value_or(PyValue::real(1));
    c.finish();
    const PyValue low =
        e.elements.binary(ProgramOp::Mul, alpha,
                          e.elements.unary(ProgramOp::Expm1, e.elements.binary(ProgramOp::Min, x, PyValue::real(0))));
    return e.elements.select(e.elements.binary(ProgramOp::Lt, x, PyValue::real(0)), low, x);
}

PyValue hardTanh(E& e, C& c) {
    const PyValue x = activated(c);
    const PyValue low = c.optional(1, "min_val").value_or(PyValue::real(-1));
    const PyValue high = c.optional(2, "max_val").value_or(PyValue::real(1));
    c.finish();
    return between(e, x, low, high);
}

PyValue relu6(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return between(e, x, PyValue::integer(0), PyValue::integer(6));
}

/// clamp(x / 6 + 1 / 2, 0, 1).
PyValue hardSigmoidOf(E& e, PyValue x) {
    const PyValue sum = e.elements.binary(ProgramOp::Add, x, PyValue::integer(3));
    return e.elements.binary(ProgramOp::Div, between(e, sum, PyValue::integer(0), PyValue::integer(6)),
                             PyValue::integer(6));
}
PyValue hardSigmoid(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return hardSigmoidOf(e, x);
}
PyValue hardSwish(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return e.elements.binary(ProgramOp::Mul, x, hardSigmoidOf(e, x));
}

PyValue mish(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    C inner;
    inner.arguments.push_back(x);
    return e.elements.binary(ProgramOp::Mul, x, e.elements.unary(ProgramOp::Tanh, softplus(e, inner)));
}

PyValue softSign(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return e.elements.binary(
        ProgramOp::Div, x, e.elements.binary(ProgramOp::Add, e.elements.unary(ProgramOp::Abs, x), PyValue::integer(1)));
}

PyValue threshold(E& e, C& c) {
    const PyValue x = activated(c);
    const PyValue limit = c.required(1, "threshold");
    const PyValue value = c.required(2, "value");
    c.finish();
    return e.elements.select(e.elements.binary(ProgramOp::Lt, limit, x), x, value);
}

/// scale (max(x, 0) + min(0, alpha (exp(x / width) - 1))).
PyValue exponentialUnit(E& e, PyValue x, PyValue alpha, PyValue width) {
    const PyValue low = e.elements.unary(
        ProgramOp::Expm1,
        e.elements.binary(ProgramOp::Div, e.elements.binary(ProgramOp::Min, x, PyValue::integer(0)), width));
    return e.elements.binary(ProgramOp::Add, e.elements.binary(ProgramOp::Max, x, PyValue::integer(0)),
                             e.elements.binary(ProgramOp::Mul, alpha, low));
}
PyValue celu(E& e, C& c) {
    const PyValue x = activated(c);
    const PyValue alpha = c.optional(1, "alpha").value_or(PyValue::real(1));
    c.finish();
    return exponentialUnit(e, x, alpha, alpha);
}
PyValue selu(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return e.elements.binary(ProgramOp::Mul,
                             exponentialUnit(e, x, PyValue::real(1.6732632423543772848170429916717), PyValue::real(1)),
                             PyValue::real(1.0507009873554804934193349852946));
}

/// 0 within `lambd`; soft: the rest moves towards 0 by it.
template <bool Soft> PyValue shrink(E& e, C& c) {
    const PyValue x = activated(c);
    const PyValue width = c.optional(1, "lambd").value_or(PyValue::real(0.5));
    c.finish();
    const PyValue above = Soft ? e.elements.binary(ProgramOp::Sub, x, width) : x;
    const PyValue below = Soft ? e.elements.binary(ProgramOp::Add, x, width) : x;
    return e.elements.select(
        e.elements.binary(ProgramOp::Lt, width, x), above,
        e.elements.select(e.elements.binary(ProgramOp::Lt, x, e.elements.unary(ProgramOp::Neg, width)), below,
                          PyValue::real(0)));
}

PyValue tanhShrink(E& e, C& c) {
    const PyValue x = activated(c);
    c.finish();
    return e.elements.binary(ProgramOp::Sub, x, e.elements.unary(ProgramOp::Tanh, x));
}

constexpr std::array kActivations = std::to_array<BuiltinEntry>({
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

std::span<const BuiltinEntry> activationBuiltins() {
    return kActivations;
}

} // namespace vitrine::engine
