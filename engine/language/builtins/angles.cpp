// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Circular and hyperbolic functions: torch's, which are methods of tensors too, and math's.
#include <array>
#include <numbers>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::ProgramOp;

namespace {

using E = ModEvaluator;
using C = ModCall;

ModValue number(double value) {
    return ModValue::real(value);
}

ModValue onlyArgument(C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return x;
}

template <ProgramOp Op> ModValue one(E& e, C& c) {
    return e.unary(Op, onlyArgument(c));
}

ModValue tangent(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    return e.binary(ProgramOp::Div, e.unary(ProgramOp::Sin, x), e.unary(ProgramOp::Cos, x));
}

ModValue arcTangent(E& e, C& c) {
    return e.binary(ProgramOp::Atan2, onlyArgument(c), number(1));
}
ModValue arcTangent2(E& e, C& c) {
    const ModValue y = c.required(0, "input");
    const ModValue x = c.required(1, "other");
    c.finish();
    return e.binary(ProgramOp::Atan2, y, x);
}
/// The point of the unit circle with this height; the product keeps what 1 - x^2 loses near 1.
ModValue arcSine(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    const ModValue square =
        e.binary(ProgramOp::Mul, e.binary(ProgramOp::Sub, number(1), x), e.binary(ProgramOp::Add, number(1), x));
    return e.binary(ProgramOp::Atan2, x, e.unary(ProgramOp::Sqrt, square));
}
/// Twice the angle of its half: exact at both ends.
ModValue arcCosine(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    const ModValue half = e.binary(ProgramOp::Atan2, e.unary(ProgramOp::Sqrt, e.binary(ProgramOp::Sub, number(1), x)),
                                   e.unary(ProgramOp::Sqrt, e.binary(ProgramOp::Add, number(1), x)));
    return e.binary(ProgramOp::Mul, half, number(2));
}

// From exponentials that neither overflow early nor cancel around 0.
ModValue hyperbolicSine(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    const ModValue grown = e.unary(ProgramOp::Expm1, x);
    const ModValue shrunk = e.unary(ProgramOp::Expm1, e.unary(ProgramOp::Neg, x));
    return e.binary(ProgramOp::Mul, e.binary(ProgramOp::Sub, grown, shrunk), number(0.5));
}
ModValue hyperbolicCosine(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    const ModValue both =
        e.binary(ProgramOp::Add, e.unary(ProgramOp::Exp, x), e.unary(ProgramOp::Exp, e.unary(ProgramOp::Neg, x)));
    return e.binary(ProgramOp::Mul, both, number(0.5));
}

/// sign(x) log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))).
ModValue areaSine(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    const ModValue size = e.unary(ProgramOp::Abs, x);
    const ModValue square = e.binary(ProgramOp::Mul, x, x);
    const ModValue root = e.unary(ProgramOp::Sqrt, e.binary(ProgramOp::Add, square, number(1)));
    const ModValue rest = e.binary(ProgramOp::Div, square, e.binary(ProgramOp::Add, number(1), root));
    return e.binary(ProgramOp::Mul, e.unary(ProgramOp::Sign, x),
                    e.unary(ProgramOp::Log1p, e.binary(ProgramOp::Add, size, rest)));
}
/// log(x + sqrt((x - 1) (x + 1))).
ModValue areaCosine(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    const ModValue square =
        e.binary(ProgramOp::Mul, e.binary(ProgramOp::Sub, x, number(1)), e.binary(ProgramOp::Add, x, number(1)));
    return e.unary(ProgramOp::Log, e.binary(ProgramOp::Add, x, e.unary(ProgramOp::Sqrt, square)));
}
ModValue areaTangent(E& e, C& c) {
    const ModValue x = onlyArgument(c);
    const ModValue twice =
        e.binary(ProgramOp::Sub, e.unary(ProgramOp::Log1p, x), e.unary(ProgramOp::Log1p, e.unary(ProgramOp::Neg, x)));
    return e.binary(ProgramOp::Mul, twice, number(0.5));
}

ModValue hypotenuse(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "other");
    c.finish();
    return e.unary(ProgramOp::Sqrt,
                   e.binary(ProgramOp::Add, e.binary(ProgramOp::Mul, a, a), e.binary(ProgramOp::Mul, b, b)));
}

ModValue radians(E& e, C& c) {
    return e.binary(ProgramOp::Mul, onlyArgument(c), number(std::numbers::pi / 180));
}
ModValue degrees(E& e, C& c) {
    return e.binary(ProgramOp::Mul, onlyArgument(c), number(180 / std::numbers::pi));
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"torch.sin", one<ProgramOp::Sin>},
    {"torch.cos", one<ProgramOp::Cos>},
    {"torch.tan", tangent},
    {"torch.asin", arcSine},
    {"torch.arcsin", arcSine},
    {"torch.acos", arcCosine},
    {"torch.arccos", arcCosine},
    {"torch.atan", arcTangent},
    {"torch.arctan", arcTangent},
    {"torch.atan2", arcTangent2},
    {"torch.arctan2", arcTangent2},
    {"torch.sinh", hyperbolicSine},
    {"torch.cosh", hyperbolicCosine},
    {"torch.tanh", one<ProgramOp::Tanh>},
    {"torch.asinh", areaSine},
    {"torch.arcsinh", areaSine},
    {"torch.acosh", areaCosine},
    {"torch.arccosh", areaCosine},
    {"torch.atanh", areaTangent},
    {"torch.arctanh", areaTangent},
    {"torch.hypot", hypotenuse},
    {"torch.deg2rad", radians},
    {"torch.rad2deg", degrees},
    {"math.sin", one<ProgramOp::Sin>},
    {"math.cos", one<ProgramOp::Cos>},
    {"math.tan", tangent},
    {"math.asin", arcSine},
    {"math.acos", arcCosine},
    {"math.atan", arcTangent},
    {"math.atan2", arcTangent2},
    {"math.sinh", hyperbolicSine},
    {"math.cosh", hyperbolicCosine},
    {"math.tanh", one<ProgramOp::Tanh>},
    {"math.asinh", areaSine},
    {"math.acosh", areaCosine},
    {"math.atanh", areaTangent},
    {"math.hypot", hypotenuse},
    {"math.radians", radians},
    {"math.degrees", degrees},
});

} // namespace

std::span<const ModBuiltinEntry> angleBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
