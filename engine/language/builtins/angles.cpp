// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Circular and hyperbolic functions: torch's, which are methods of tensors too, and math's.
#include <numbers>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

PyValue number(double value) {
    return PyValue::real(value);
}

PyValue tangent(E& e, C& c) {
    const PyValue x = onlyInput(c);
    return e.elements.binary(ProgramOp::Div, e.elements.unary(ProgramOp::Sin, x), e.elements.unary(ProgramOp::Cos, x));
}

PyValue arcTangent(E& e, C& c) {
    return e.elements.binary(ProgramOp::Atan2, onlyInput(c), number(1));
}
PyValue arcTangent2(E& e, C& c) {
    const PyValue y = c.required(0, "input");
    const PyValue x = c.required(1, "other");
    c.finish();
    return e.elements.binary(ProgramOp::Atan2, y, x);
}
/// The point of the unit circle with this height; the product keeps what 1 - x^2 loses near 1.
PyValue arcSine(E& e, C& c) {
    const PyValue x = onlyInput(c);
    const PyValue square = e.elements.binary(ProgramOp::Mul, e.elements.binary(ProgramOp::Sub, number(1), x),
                                             e.elements.binary(ProgramOp::Add, number(1), x));
    return e.elements.binary(ProgramOp::Atan2, x, e.elements.unary(ProgramOp::Sqrt, square));
}
/// Twice the angle of its half: exact at both ends.
PyValue arcCosine(E& e, C& c) {
    const PyValue x = onlyInput(c);
    const PyValue half = e.elements.binary(
        ProgramOp::Atan2, e.elements.unary(ProgramOp::Sqrt, e.elements.binary(ProgramOp::Sub, number(1), x)),
        e.elements.unary(ProgramOp::Sqrt, e.elements.binary(ProgramOp::Add, number(1), x)));
    return e.elements.binary(ProgramOp::Mul, half, number(2));
}

// From exponentials that neither overflow early nor cancel around 0.
PyValue hyperbolicSine(E& e, C& c) {
    const PyValue x = onlyInput(c);
    const PyValue grown = e.elements.unary(ProgramOp::Expm1, x);
    const PyValue shrunk = e.elements.unary(ProgramOp::Expm1, e.elements.unary(ProgramOp::Neg, x));
    return e.elements.binary(ProgramOp::Mul, e.elements.binary(ProgramOp::Sub, grown, shrunk), number(0.5));
}
PyValue hyperbolicCosine(E& e, C& c) {
    const PyValue x = onlyInput(c);
    const PyValue both = e.elements.binary(ProgramOp::Add, e.elements.unary(ProgramOp::Exp, x),
                                           e.elements.unary(ProgramOp::Exp, e.elements.unary(ProgramOp::Neg, x)));
    return e.elements.binary(ProgramOp::Mul, both, number(0.5));
}

/// sign(x) log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))).
PyValue areaSine(E& e, C& c) {
    const PyValue x = onlyInput(c);
    const PyValue size = e.elements.unary(ProgramOp::Abs, x);
    const PyValue square = e.elements.binary(ProgramOp::Mul, x, x);
    const PyValue root = e.elements.unary(ProgramOp::Sqrt, e.elements.binary(ProgramOp::Add, square, number(1)));
    const PyValue rest = e.elements.binary(ProgramOp::Div, square, e.elements.binary(ProgramOp::Add, number(1), root));
    return e.elements.binary(ProgramOp::Mul, e.elements.unary(ProgramOp::Sign, x),
                             e.elements.unary(ProgramOp::Log1p, e.elements.binary(ProgramOp::Add, size, rest)));
}
/// log(x + sqrt((x - 1) (x + 1))).
PyValue areaCosine(E& e, C& c) {
    const PyValue x = onlyInput(c);
    const PyValue square = e.elements.binary(ProgramOp::Mul, e.elements.binary(ProgramOp::Sub, x, number(1)),
                                             e.elements.binary(ProgramOp::Add, x, number(1)));
    return e.elements.unary(ProgramOp::Log,
                            e.elements.binary(ProgramOp::Add, x, e.elements.unary(ProgramOp::Sqrt, square)));
}
PyValue areaTangent(E& e, C& c) {
    const PyValue x = onlyInput(c);
    const PyValue twice = e.elements.binary(ProgramOp::Sub, e.elements.unary(ProgramOp::Log1p, x),
                                            e.elements.unary(ProgramOp::Log1p, e.elements.unary(ProgramOp::Neg, x)));
    return e.elements.binary(ProgramOp::Mul, twice, number(0.5));
}

PyValue hypotenuse(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "other");
    c.finish();
    return e.elements.unary(ProgramOp::Sqrt, e.elements.binary(ProgramOp::Add, e.elements.binary(ProgramOp::Mul, a, a),
                                                               e.elements.binary(ProgramOp::Mul, b, b)));
}

PyValue radians(E& e, C& c) {
    return e.elements.binary(ProgramOp::Mul, onlyInput(c), number(std::numbers::pi / 180));
}
PyValue degrees(E& e, C& c) {
    return e.elements.binary(ProgramOp::Mul, onlyInput(c), number(180 / std::numbers::pi));
}

constexpr std::array kAngles = std::to_array<BuiltinEntry>({
    {"torch.sin", unaryOp<ProgramOp::Sin>},
    {"torch.cos", unaryOp<ProgramOp::Cos>},
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
    {"torch.tanh", unaryOp<ProgramOp::Tanh>},
    {"torch.asinh", areaSine},
    {"torch.arcsinh", areaSine},
    {"torch.acosh", areaCosine},
    {"torch.arccosh", areaCosine},
    {"torch.atanh", areaTangent},
    {"torch.arctanh", areaTangent},
    {"torch.hypot", hypotenuse},
    {"torch.deg2rad", radians},
    {"torch.rad2deg", degrees},
    {"math.sin", unaryOp<ProgramOp::Sin>},
    {"math.cos", unaryOp<ProgramOp::Cos>},
    {"math.tan", tangent},
    {"math.asin", arcSine},
    {"math.acos", arcCosine},
    {"math.atan", arcTangent},
    {"math.atan2", arcTangent2},
    {"math.sinh", hyperbolicSine},
    {"math.cosh", hyperbolicCosine},
    {"math.tanh", unaryOp<ProgramOp::Tanh>},
    {"math.asinh", areaSine},
    {"math.acosh", areaCosine},
    {"math.atanh", areaTangent},
    {"math.hypot", hypotenuse},
    {"math.radians", radians},
    {"math.degrees", degrees},
});

} // namespace

std::span<const BuiltinEntry> angleBuiltins() {
    return kAngles;
}

} // namespace vitrine::engine
