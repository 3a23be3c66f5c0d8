// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's element-wise functions, which are methods of tensors too.
#include <fmt/format.h>
#include <limits>
#include <numbers>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

template <ProgramOp Op> PyValue two(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "other");
    c.finish();
    return e.elements.binary(Op, a, b);
}

template <ProgramOp Op> PyValue swapped(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "other");
    c.finish();
    return e.elements.binary(Op, b, a);
}

/// Of truth values: "logical_and" of integers is not "bitwise_and".
template <ProgramOp Op> PyValue logical(E& e, C& c) {
    const PyValue a = e.elements.cast(DType::Bool, c.required(0, "input"));
    const PyValue b = e.elements.cast(DType::Bool, c.required(1, "other"));
    c.finish();
    return e.elements.binary(Op, a, b);
}

/// a + alpha b, a - alpha b.
template <ProgramOp Op> PyValue scaled(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    PyValue b = c.required(1, "other");
    const auto alpha = c.keyword("alpha");
    c.finish();
    b = alpha ? e.elements.binary(ProgramOp::Mul, b, *alpha) : b;
    return e.elements.binary(Op, a, b);
}

PyValue divide(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "other");
    const auto rounding = c.keyword("rounding_mode");
    c.finish();
    if (!rounding || rounding->isNone()) {
        return e.elements.binary(ProgramOp::Div, a, b);
    }
    const std::string mode = e.convert.text(*rounding, "rounding_mode");
    if (mode == "floor") {
        return e.elements.binary(ProgramOp::FloorDiv, a, b);
    }
    if (mode != "trunc") {
        fail("rounding_mode is 'floor' or 'trunc'");
    }
    // |a| // |b| with the sign of a / b.
    const PyValue size = e.elements.binary(ProgramOp::FloorDiv, e.elements.unary(ProgramOp::Abs, a),
                                           e.elements.unary(ProgramOp::Abs, b));
    return e.elements.binary(
        ProgramOp::Mul, size,
        e.elements.binary(ProgramOp::Mul, e.elements.unary(ProgramOp::Sign, a), e.elements.unary(ProgramOp::Sign, b)));
}

/// The remainder with the sign of the dividend.
PyValue cRemainder(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "other");
    c.finish();
    const PyValue size =
        e.elements.binary(ProgramOp::Mod, e.elements.unary(ProgramOp::Abs, a), e.elements.unary(ProgramOp::Abs, b));
    return e.elements.binary(ProgramOp::Mul, size, e.elements.unary(ProgramOp::Sign, a));
}

PyValue clampBetween(E& e, PyValue value, std::optional<PyValue> low, std::optional<PyValue> high) {
    if (low && !low->isNone()) {
        value = e.elements.binary(ProgramOp::Max, value, *low);
    }
    if (high && !high->isNone()) {
        value = e.elements.binary(ProgramOp::Min, value, *high);
    }
    return value;
}

PyValue clamp(E& e, C& c) {
    const PyValue value = c.required(0, "input");
    const auto low = c.optional(1, "min");
    const auto high = c.optional(2, "max");
    c.finish();
    return clampBetween(e, value, low, high);
}

PyValue where(E& e, C& c) {
    const PyValue condition = c.required(0, "condition");
    if (c.arguments.size() == 1 && c.keywords.empty()) {
        fail("torch.where(condition) alone is not supported; give both values");
    }
    const PyValue a = c.required(1, "input");
    const PyValue b = c.required(2, "other");
    c.finish();
    return e.elements.select(condition, a, b);
}

/// x.where(condition, other), x.masked_fill(condition, value).
PyValue whereMethod(E& e, C& c) {
    const PyValue condition = c.required(1, "condition");
    const PyValue other = c.required(2, "other");
    const PyValue value = c.required(0, "self");
    c.finish();
    return e.elements.select(condition, value, other);
}
PyValue maskedFill(E& e, C& c) {
    const PyValue condition = c.required(1, "mask");
    const PyValue value = c.required(2, "value");
    const PyValue self = c.required(0, "input");
    c.finish();
    return e.elements.select(condition, value, self);
}

PyValue toNumber(double value) {
    return PyValue::real(value);
}

PyValue square(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Mul, x, x);
}

PyValue reciprocal(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Div, toNumber(1), x);
}

PyValue fraction(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Sub, x, e.elements.unary(ProgramOp::Trunc, x));
}

PyValue log10(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Mul, e.elements.unary(ProgramOp::Log, x), toNumber(std::numbers::log10e));
}

/// x != x, |x| == inf.
PyValue isNan(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Ne, x, x);
}
PyValue isInfinite(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Eq, e.elements.unary(ProgramOp::Abs, x),
                             toNumber(std::numeric_limits<double>::infinity()));
}

PyValue lerp(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "end");
    const PyValue weight = c.required(2, "weight");
    c.finish();
    return e.elements.binary(ProgramOp::Add, a,
                             e.elements.binary(ProgramOp::Mul, weight, e.elements.binary(ProgramOp::Sub, b, a)));
}

/// The size of `input` with the sign of `other`; the sign of a zero is taken as plus.
PyValue copySign(E& e, C& c) {
    const PyValue size =
        e.elements.binary(ProgramOp::Mul, e.elements.unary(ProgramOp::Abs, c.required(0, "input")), toNumber(1));
    const PyValue other = c.required(1, "other");
    c.finish();
    return e.elements.select(e.elements.binary(ProgramOp::Lt, other, PyValue::integer(0)),
                             e.elements.unary(ProgramOp::Neg, size), size);
}

/// 0 below zero, `values` at it, 1 above.
PyValue heaviside(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    const PyValue values = c.required(1, "values");
    c.finish();
    const PyValue step =
        e.elements.cast(e.symbols.dtypeOf(x), e.elements.binary(ProgramOp::Lt, PyValue::integer(0), x));
    return e.elements.select(e.elements.binary(ProgramOp::Eq, x, PyValue::integer(0)), values, step);
}

PyValue nanToNum(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    const auto given = [&](std::size_t index, std::string_view name, double otherwise) {
        const auto value = c.optional(index, name);
        return value && !value->isNone() ? *value : toNumber(otherwise);
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double largest = e.symbols.dtypeOf(x) == DType::F64 ? std::numeric_limits<double>::max()
                                                              : static_cast<double>(std::numeric_limits<float>::max());
    const PyValue nan = given(1, "nan", 0);
    const PyValue high = given(2, "posinf", largest);
    const PyValue low = given(3, "neginf", -largest);
    c.finish();
    PyValue made = e.elements.select(e.elements.binary(ProgramOp::Ne, x, x), nan, x);
    made = e.elements.select(e.elements.binary(ProgramOp::Eq, x, toNumber(kInfinity)), high, made);
    return e.elements.select(e.elements.binary(ProgramOp::Eq, x, toNumber(-kInfinity)), low, made);
}

PyValue logicalNotOf(E& e, C& c) {
    const PyValue x = e.elements.cast(DType::Bool, c.required(0, "input"));
    c.finish();
    return e.elements.binary(ProgramOp::Eq, x, PyValue::boolean(false));
}

PyValue power(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "exponent");
    c.finish();
    return e.operators.operate(PyOperator::Pow, a, b);
}

/// Element of `test` for each element.
PyValue isIn(E& e, C& c) {
    const PyValue x = c.required(0, "elements");
    const PyValue test = c.required(1, "test_elements");
    c.finish();
    PyValue result = PyValue::boolean(false);
    if (dimsOf(x).empty() && isTensorLike(test)) {
        for (const PyValue item : e.containers.iterate(test)) {
            result = e.elements.binary(ProgramOp::Or, result, e.elements.binary(ProgramOp::Eq, x, item));
        }
        return result;
    }
    const PyTensor* const known = e.constants.tensorOf(test, std::nullopt);
    for (const PyValue item : e.containers.iterate(reshapeTensor(e.heap, *known, {known->count()}))) {
        e.evaluation.step();
        result = e.elements.binary(ProgramOp::Or, result, e.elements.binary(ProgramOp::Eq, x, item));
    }
    return result;
}

constexpr std::array kElementwise = std::to_array<BuiltinEntry>({
    {"torch.abs", unaryOp<ProgramOp::Abs>},
    {"torch.absolute", unaryOp<ProgramOp::Abs>},
    {"torch.neg", unaryOp<ProgramOp::Neg>},
    {"torch.negative", unaryOp<ProgramOp::Neg>},
    {"torch.sign", unaryOp<ProgramOp::Sign>},
    {"torch.sgn", unaryOp<ProgramOp::Sign>},
    {"torch.exp", unaryOp<ProgramOp::Exp>},
    {"torch.exp2", unaryOp<ProgramOp::Exp2>},
    {"torch.expm1", unaryOp<ProgramOp::Expm1>},
    {"torch.log", unaryOp<ProgramOp::Log>},
    {"torch.log2", unaryOp<ProgramOp::Log2>},
    {"torch.log10", log10},
    {"torch.log1p", unaryOp<ProgramOp::Log1p>},
    {"torch.sqrt", unaryOp<ProgramOp::Sqrt>},
    {"torch.rsqrt", unaryOp<ProgramOp::Rsqrt>},
    {"torch.sigmoid", unaryOp<ProgramOp::Sigmoid>},
    {"torch.copysign", copySign},
    {"torch.heaviside", heaviside},
    {"torch.nan_to_num", nanToNum},
    {"torch.erf", unaryOp<ProgramOp::Erf>},
    {"torch.floor", unaryOp<ProgramOp::Floor>},
    {"torch.ceil", unaryOp<ProgramOp::Ceil>},
    {"torch.round", unaryOp<ProgramOp::Round>},
    {"torch.trunc", unaryOp<ProgramOp::Trunc>},
    {"torch.fix", unaryOp<ProgramOp::Trunc>},
    {"torch.frac", fraction},
    {"torch.square", square},
    {"torch.reciprocal", reciprocal},
    {"torch.isnan", isNan},
    {"torch.isinf", isInfinite},
    {"torch.bitwise_not", unaryOp<ProgramOp::Not>},
    {"torch.logical_not", logicalNotOf},
    {"torch.add", scaled<ProgramOp::Add>},
    {"torch.sub", scaled<ProgramOp::Sub>},
    {"torch.subtract", scaled<ProgramOp::Sub>},
    {"torch.rsub", swapped<ProgramOp::Sub>},
    {"torch.mul", two<ProgramOp::Mul>},
    {"torch.multiply", two<ProgramOp::Mul>},
    {"torch.div", divide},
    {"torch.divide", divide},
    {"torch.true_divide", two<ProgramOp::Div>},
    {"torch.floor_divide", two<ProgramOp::FloorDiv>},
    {"torch.remainder", two<ProgramOp::Mod>},
    {"torch.fmod", cRemainder},
    {"torch.pow", power},
    {"torch.minimum", two<ProgramOp::Min>},
    {"torch.maximum", two<ProgramOp::Max>},
    {"torch.fmin", two<ProgramOp::Min>},
    {"torch.fmax", two<ProgramOp::Max>},
    {"torch.eq", two<ProgramOp::Eq>},
    {"torch.ne", two<ProgramOp::Ne>},
    {"torch.not_equal", two<ProgramOp::Ne>},
    {"torch.lt", two<ProgramOp::Lt>},
    {"torch.less", two<ProgramOp::Lt>},
    {"torch.le", two<ProgramOp::Le>},
    {"torch.less_equal", two<ProgramOp::Le>},
    {"torch.gt", swapped<ProgramOp::Lt>},
    {"torch.greater", swapped<ProgramOp::Lt>},
    {"torch.ge", swapped<ProgramOp::Le>},
    {"torch.greater_equal", swapped<ProgramOp::Le>},
    {"torch.bitwise_and", two<ProgramOp::And>},
    {"torch.bitwise_or", two<ProgramOp::Or>},
    {"torch.bitwise_xor", two<ProgramOp::Xor>},
    {"torch.bitwise_left_shift", two<ProgramOp::ShiftLeft>},
    {"torch.bitwise_right_shift", two<ProgramOp::ShiftRight>},
    {"torch.logical_and", logical<ProgramOp::And>},
    {"torch.logical_or", logical<ProgramOp::Or>},
    {"torch.logical_xor", logical<ProgramOp::Xor>},
    {"torch.clamp", clamp},
    {"torch.clip", clamp},
    {"torch.clamp_", clamp},
    {"torch.clamp_min",
     [](E& e, C& c) { return clampBetween(e, c.required(0, "input"), c.required(1, "min"), std::nullopt); }},
    {"torch.clamp_max",
     [](E& e, C& c) { return clampBetween(e, c.required(0, "input"), std::nullopt, c.required(1, "max")); }},
    {"torch.lerp", lerp},
    {"torch.isin", isIn},
    {"torch.masked_fill", maskedFill},
    {"Tensor.where", whereMethod},
    {"torch.expit", unaryOp<ProgramOp::Sigmoid>},
    {"torch.where", where},
});

} // namespace

std::span<const BuiltinEntry> elementwiseBuiltins() {
    return kElementwise;
}

} // namespace vitrine::engine
