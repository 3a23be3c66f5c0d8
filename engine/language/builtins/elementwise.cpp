// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's element-wise functions, which are methods of tensors too.
#include <array>
#include <fmt/format.h>
#include <limits>
#include <numbers>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramOp;

namespace {

using E = ModEvaluator;
using C = ModCall;

template <ProgramOp Op> ModValue one(E& e, C& c) {
    const ModValue value = c.required(0, "input");
    c.finish();
    return e.unary(Op, value);
}

template <ProgramOp Op> ModValue two(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "other");
    c.finish();
    return e.binary(Op, a, b);
}

template <ProgramOp Op> ModValue swapped(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "other");
    c.finish();
    return e.binary(Op, b, a);
}

/// Of truth values: "logical_and" of integers is not "bitwise_and".
template <ProgramOp Op> ModValue logical(E& e, C& c) {
    const ModValue a = e.cast(DType::Bool, c.required(0, "input"));
    const ModValue b = e.cast(DType::Bool, c.required(1, "other"));
    c.finish();
    return e.binary(Op, a, b);
}

/// a + alpha b, a - alpha b.
template <ProgramOp Op> ModValue scaled(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    ModValue b = c.required(1, "other");
    const auto alpha = c.keyword("alpha");
    c.finish();
    b = alpha ? e.binary(ProgramOp::Mul, b, *alpha) : b;
    return e.binary(Op, a, b);
}

ModValue divide(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "other");
    const auto rounding = c.keyword("rounding_mode");
    c.finish();
    if (!rounding || rounding->isNone()) {
        return e.binary(ProgramOp::Div, a, b);
    }
    const std::string mode = e.text(*rounding, "rounding_mode");
    if (mode == "floor") {
        return e.binary(ProgramOp::FloorDiv, a, b);
    }
    if (mode != "trunc") {
        E::fail("rounding_mode is 'floor' or 'trunc'");
    }
    // |a| // |b| with the sign of a / b.
    const ModValue size = e.binary(ProgramOp::FloorDiv, e.unary(ProgramOp::Abs, a), e.unary(ProgramOp::Abs, b));
    return e.binary(ProgramOp::Mul, size,
                    e.binary(ProgramOp::Mul, e.unary(ProgramOp::Sign, a), e.unary(ProgramOp::Sign, b)));
}

/// The remainder with the sign of the dividend.
ModValue cRemainder(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "other");
    c.finish();
    const ModValue size = e.binary(ProgramOp::Mod, e.unary(ProgramOp::Abs, a), e.unary(ProgramOp::Abs, b));
    return e.binary(ProgramOp::Mul, size, e.unary(ProgramOp::Sign, a));
}

ModValue clampBetween(E& e, ModValue value, std::optional<ModValue> low, std::optional<ModValue> high) {
    if (low && !low->isNone()) {
        value = e.binary(ProgramOp::Max, value, *low);
    }
    if (high && !high->isNone()) {
        value = e.binary(ProgramOp::Min, value, *high);
    }
    return value;
}

ModValue clamp(E& e, C& c) {
    const ModValue value = c.required(0, "input");
    const auto low = c.optional(1, "min");
    const auto high = c.optional(2, "max");
    c.finish();
    return clampBetween(e, value, low, high);
}

ModValue where(E& e, C& c) {
    const ModValue condition = c.required(0, "condition");
    if (c.arguments.size() == 1 && c.keywords.empty()) {
        E::fail("torch.where(condition) alone is not supported; give both values");
    }
    const ModValue a = c.required(1, "input");
    const ModValue b = c.required(2, "other");
    c.finish();
    return e.select(condition, a, b);
}

/// x.where(condition, other), x.masked_fill(condition, value).
ModValue whereMethod(E& e, C& c) {
    const ModValue condition = c.required(1, "condition");
    const ModValue other = c.required(2, "other");
    const ModValue value = c.required(0, "self");
    c.finish();
    return e.select(condition, value, other);
}
ModValue maskedFill(E& e, C& c) {
    const ModValue condition = c.required(1, "mask");
    const ModValue value = c.required(2, "value");
    const ModValue self = c.required(0, "input");
    c.finish();
    return e.select(condition, value, self);
}

ModValue toNumber(double value) {
    return ModValue::real(value);
}

ModValue square(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Mul, x, x);
}

ModValue reciprocal(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Div, toNumber(1), x);
}

ModValue fraction(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Sub, x, e.unary(ProgramOp::Trunc, x));
}

ModValue log10(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Mul, e.unary(ProgramOp::Log, x), toNumber(std::numbers::log10e));
}

/// x != x, |x| == inf.
ModValue isNan(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Ne, x, x);
}
ModValue isInfinite(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Eq, e.unary(ProgramOp::Abs, x), toNumber(std::numeric_limits<double>::infinity()));
}

ModValue lerp(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "end");
    const ModValue weight = c.required(2, "weight");
    c.finish();
    return e.binary(ProgramOp::Add, a, e.binary(ProgramOp::Mul, weight, e.binary(ProgramOp::Sub, b, a)));
}

/// The size of `input` with the sign of `other`; the sign of a zero is taken as plus.
ModValue copySign(E& e, C& c) {
    const ModValue size = e.binary(ProgramOp::Mul, e.unary(ProgramOp::Abs, c.required(0, "input")), toNumber(1));
    const ModValue other = c.required(1, "other");
    c.finish();
    return e.select(e.binary(ProgramOp::Lt, other, ModValue::integer(0)), e.unary(ProgramOp::Neg, size), size);
}

/// 0 below zero, `values` at it, 1 above.
ModValue heaviside(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    const ModValue values = c.required(1, "values");
    c.finish();
    const ModValue step = e.cast(e.dtypeOf(x), e.binary(ProgramOp::Lt, ModValue::integer(0), x));
    return e.select(e.binary(ProgramOp::Eq, x, ModValue::integer(0)), values, step);
}

ModValue nanToNum(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    const auto given = [&](std::size_t index, std::string_view name, double otherwise) {
        const auto value = c.optional(index, name);
        return value && !value->isNone() ? *value : toNumber(otherwise);
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double largest = e.dtypeOf(x) == DType::F64 ? std::numeric_limits<double>::max()
                                                      : static_cast<double>(std::numeric_limits<float>::max());
    const ModValue nan = given(1, "nan", 0);
    const ModValue high = given(2, "posinf", largest);
    const ModValue low = given(3, "neginf", -largest);
    c.finish();
    ModValue made = e.select(e.binary(ProgramOp::Ne, x, x), nan, x);
    made = e.select(e.binary(ProgramOp::Eq, x, toNumber(kInfinity)), high, made);
    return e.select(e.binary(ProgramOp::Eq, x, toNumber(-kInfinity)), low, made);
}

ModValue logicalNotOf(E& e, C& c) {
    const ModValue x = e.cast(DType::Bool, c.required(0, "input"));
    c.finish();
    return e.binary(ProgramOp::Eq, x, ModValue::boolean(false));
}

ModValue power(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "exponent");
    c.finish();
    return e.operate(PyOperator::Pow, a, b);
}

/// Element of `test` for each element.
ModValue isIn(E& e, C& c) {
    const ModValue x = c.required(0, "elements");
    const ModValue test = c.required(1, "test_elements");
    c.finish();
    ModValue result = ModValue::boolean(false);
    if (e.dimsOf(x).empty() && e.isTensorLike(test)) {
        for (const ModValue item : e.iterate(test)) {
            result = e.binary(ProgramOp::Or, result, e.binary(ProgramOp::Eq, x, item));
        }
        return result;
    }
    const ModTensor* const known = e.tensorOf(test, std::nullopt);
    for (const ModValue item : e.iterate(reshapeTensor(e.heap(), *known, {known->count()}))) {
        e.step();
        result = e.binary(ProgramOp::Or, result, e.binary(ProgramOp::Eq, x, item));
    }
    return result;
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"torch.abs", one<ProgramOp::Abs>},
    {"torch.absolute", one<ProgramOp::Abs>},
    {"torch.neg", one<ProgramOp::Neg>},
    {"torch.negative", one<ProgramOp::Neg>},
    {"torch.sign", one<ProgramOp::Sign>},
    {"torch.sgn", one<ProgramOp::Sign>},
    {"torch.exp", one<ProgramOp::Exp>},
    {"torch.exp2", one<ProgramOp::Exp2>},
    {"torch.expm1", one<ProgramOp::Expm1>},
    {"torch.log", one<ProgramOp::Log>},
    {"torch.log2", one<ProgramOp::Log2>},
    {"torch.log10", log10},
    {"torch.log1p", one<ProgramOp::Log1p>},
    {"torch.sqrt", one<ProgramOp::Sqrt>},
    {"torch.rsqrt", one<ProgramOp::Rsqrt>},
    {"torch.sigmoid", one<ProgramOp::Sigmoid>},
    {"torch.copysign", copySign},
    {"torch.heaviside", heaviside},
    {"torch.nan_to_num", nanToNum},
    {"torch.erf", one<ProgramOp::Erf>},
    {"torch.floor", one<ProgramOp::Floor>},
    {"torch.ceil", one<ProgramOp::Ceil>},
    {"torch.round", one<ProgramOp::Round>},
    {"torch.trunc", one<ProgramOp::Trunc>},
    {"torch.fix", one<ProgramOp::Trunc>},
    {"torch.frac", fraction},
    {"torch.square", square},
    {"torch.reciprocal", reciprocal},
    {"torch.isnan", isNan},
    {"torch.isinf", isInfinite},
    {"torch.bitwise_not", one<ProgramOp::Not>},
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
    {"torch.expit", one<ProgramOp::Sigmoid>},
    {"torch.where", where},
});

} // namespace

std::span<const ModBuiltinEntry> elementwiseBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
