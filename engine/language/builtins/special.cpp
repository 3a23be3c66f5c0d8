// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's functions that are made of several others: logarithms of sums, error functions, tests of floats.
#include <limits>
#include <numbers>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

PyValue number(double value) {
    return PyValue::real(value);
}

struct Pair {
    PyValue a, b;
};
Pair twoArguments(C& c) {
    const Pair made = {c.required(0, "input"), c.required(1, "other")};
    c.finish();
    return made;
}

PyValue logSumOfTwo(E& e, C& c) {
    const auto [a, b] = twoArguments(c);
    const PyValue largest = e.elements.binary(ProgramOp::Max, a, b);
    const PyValue gap = e.elements.unary(ProgramOp::Abs, e.elements.binary(ProgramOp::Sub, a, b));
    const PyValue rest =
        e.elements.unary(ProgramOp::Log1p, e.elements.unary(ProgramOp::Exp, e.elements.unary(ProgramOp::Neg, gap)));
    return e.elements.select(e.elements.binary(ProgramOp::Eq, largest, number(-kInfinity)), largest,
                             e.elements.binary(ProgramOp::Add, largest, rest));
}

PyValue errorComplement(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Sub, number(1), e.elements.unary(ProgramOp::Erf, x));
}

PyValue logit(E& e, C& c) {
    PyValue x = c.required(0, "input");
    const auto given = c.optional(1, "eps");
    c.finish();
    if (given && !given->isNone()) {
        x = e.elements.binary(ProgramOp::Max, x, *given);
        x = e.elements.binary(ProgramOp::Min, x, e.elements.binary(ProgramOp::Sub, number(1), *given));
    }
    return e.elements.unary(ProgramOp::Log,
                            e.elements.binary(ProgramOp::Div, x, e.elements.binary(ProgramOp::Sub, number(1), x)));
}

/// 0 where x is 0.
PyValue xLogY(E& e, C& c) {
    const auto [x, y] = twoArguments(c);
    return e.elements.select(e.elements.binary(ProgramOp::Eq, x, PyValue::integer(0)), number(0),
                             e.elements.binary(ProgramOp::Mul, x, e.elements.unary(ProgramOp::Log, y)));
}

/// sin(pi x) / (pi x), 1 at 0.
PyValue cardinalSine(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    const PyValue turned = e.elements.binary(ProgramOp::Mul, x, number(std::numbers::pi));
    return e.elements.select(e.elements.binary(ProgramOp::Eq, x, PyValue::integer(0)), number(1),
                             e.elements.binary(ProgramOp::Div, e.elements.unary(ProgramOp::Sin, turned), turned));
}

/// input + value * a op b.
template <ProgramOp Op> PyValue added(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    PyValue part = e.elements.binary(Op, c.required(1, "tensor1"), c.required(2, "tensor2"));
    const auto value = c.keyword("value");
    c.finish();
    part = value ? e.elements.binary(ProgramOp::Mul, part, *value) : part;
    return e.elements.binary(ProgramOp::Add, x, part);
}

PyValue isFinite(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Lt, e.elements.unary(ProgramOp::Abs, x), number(kInfinity));
}
template <int Sign> PyValue isInfiniteOf(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    c.finish();
    return e.elements.binary(ProgramOp::Eq, x, number(Sign * kInfinity));
}

/// |a - b| <= atol + rtol |b|.
PyValue isClose(E& e, C& c) {
    const PyValue a = c.required(0, "input");
    const PyValue b = c.required(1, "other");
    const auto relative = c.optional(2, "rtol");
    const auto absolute = c.optional(3, "atol");
    c.finish();
    const PyValue size =
        e.elements.binary(ProgramOp::Mul, e.elements.unary(ProgramOp::Abs, b), relative.value_or(number(1e-5)));
    const PyValue gap = e.elements.unary(ProgramOp::Abs, e.elements.binary(ProgramOp::Sub, a, b));
    return e.elements.binary(
        ProgramOp::Or, e.elements.binary(ProgramOp::Eq, a, b),
        e.elements.binary(ProgramOp::Le, gap,
                          e.elements.binary(ProgramOp::Add, size, absolute.value_or(number(1e-8)))));
}

PyValue along(E& e, std::string_view reduction, PyValue x, PyValue dim, bool keep) {
    C c;
    c.arguments = {x, dim};
    c.keywords.emplace_back("keepdim", PyValue::boolean(keep));
    return e.caller.callBuiltin(reduction, c);
}

/// Exponentials of x, the largest along `dim` being 1.
struct Exponentials {
    PyValue values, largest;
};
Exponentials exponentials(E& e, PyValue x, PyValue dim) {
    const PyValue largest = along(e, "torch.amax", x, dim, true);
    return {e.elements.unary(ProgramOp::Exp, e.elements.binary(ProgramOp::Sub, x, largest)), largest};
}

PyValue softMax(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    const PyValue dim = c.required(1, "dim");
    static_cast<void>(c.keyword("dtype"));
    c.finish();
    const PyValue values = exponentials(e, x, dim).values;
    return e.elements.binary(ProgramOp::Div, values, along(e, "torch.sum", values, dim, true));
}

PyValue logSoftMax(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    const PyValue dim = c.required(1, "dim");
    static_cast<void>(c.keyword("dtype"));
    c.finish();
    const auto [values, largest] = exponentials(e, x, dim);
    const PyValue sum = e.elements.unary(ProgramOp::Log, along(e, "torch.sum", values, dim, true));
    return e.elements.binary(ProgramOp::Sub, e.elements.binary(ProgramOp::Sub, x, largest), sum);
}

PyValue logSum(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    const PyValue dim = c.required(1, "dim");
    const auto keeps = c.optional(2, "keepdim");
    c.finish();
    const bool keep = keeps && e.convert.truth(*keeps);
    const PyValue largest = along(e, "torch.amax", x, dim, keep);
    const PyValue sum = along(e, "torch.sum", exponentials(e, x, dim).values, dim, keep);
    return e.elements.binary(ProgramOp::Add, e.elements.unary(ProgramOp::Log, sum), largest);
}

/// Of all elements, or along `dim`; divided by one less than their number unless an argument says otherwise.
template <bool Root> PyValue spread(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    const auto dim = c.optional(1, "dim");
    const auto keeps = c.optional(2, "keepdim");
    const auto unbiased = c.keyword("unbiased");
    const auto correction = c.keyword("correction");
    c.finish();
    const TensorDims dims = dimsOf(x);
    const bool whole = !dim || dim->isNone();
    const auto rank = static_cast<int>(dims.size());
    double count = 1;
    for (int d = 0; d < rank; ++d) {
        const bool counts = whole || wrappedDim(e.convert.integer(*dim, "a dimension"), rank) == d;
        count *= counts ? static_cast<double>(dims[static_cast<std::size_t>(d)]) : 1;
    }
    const double less = correction                                ? e.convert.real(*correction, "the correction")
                        : unbiased && !e.convert.truth(*unbiased) ? 0
                                                                  : 1;
    const PyValue which = whole ? PyValue() : *dim;
    const PyValue mean = along(e, "torch.mean", e.elements.binary(ProgramOp::Mul, x, number(1)), which, !whole);
    const PyValue gap = e.elements.binary(ProgramOp::Sub, x, mean);
    const PyValue sum =
        along(e, "torch.sum", e.elements.binary(ProgramOp::Mul, gap, gap), which, keeps && e.convert.truth(*keeps));
    const PyValue variance = e.elements.binary(ProgramOp::Div, sum, number(count - less));
    return Root ? e.elements.unary(ProgramOp::Sqrt, variance) : variance;
}

/// x over its Euclidean norm along `dim`, which counts as `eps` at least.
PyValue normalize(E& e, C& c) {
    const PyValue x = c.required(0, "input");
    const auto order = c.optional(1, "p");
    const auto dim = c.optional(2, "dim");
    const auto least = c.optional(3, "eps");
    c.finish();
    if (order && e.convert.real(*order, "p") != 2) {
        fail("normalize() divides by the Euclidean norm (p=2) only");
    }
    const PyValue sum =
        along(e, "torch.sum", e.elements.binary(ProgramOp::Mul, x, x), dim.value_or(PyValue::integer(1)), true);
    const PyValue norm =
        e.elements.binary(ProgramOp::Max, e.elements.unary(ProgramOp::Sqrt, sum), least.value_or(number(1e-12)));
    return e.elements.binary(ProgramOp::Div, x, norm);
}

constexpr std::array kSpecial = std::to_array<BuiltinEntry>({
    {"torch.logaddexp", logSumOfTwo},
    {"torch.erfc", errorComplement},
    {"torch.logit", logit},
    {"torch.xlogy", xLogY},
    {"torch.sinc", cardinalSine},
    {"torch.addcmul", added<ProgramOp::Mul>},
    {"torch.addcdiv", added<ProgramOp::Div>},
    {"torch.isfinite", isFinite},
    {"torch.isposinf", isInfiniteOf<1>},
    {"torch.isneginf", isInfiniteOf<-1>},
    {"torch.isclose", isClose},
    {"torch.softmax", softMax},
    {"torch.log_softmax", logSoftMax},
    {"torch.logsumexp", logSum},
    {"torch.std", spread<true>},
    {"torch.var", spread<false>},
    {"torch.normalize", normalize},
});

} // namespace

std::span<const BuiltinEntry> specialBuiltins() {
    return kSpecial;
}

} // namespace vitrine::engine
