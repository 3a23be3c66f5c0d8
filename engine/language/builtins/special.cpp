// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's functions that are made of several others: logarithms of sums, error functions, tests of floats.
#include <array>
#include <limits>
#include <numbers>

#include "engine/language/builtins/tensor.h"
#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramOp;

namespace {

using E = ModEvaluator;
using C = ModCall;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ModValue number(double value) {
    return ModValue::real(value);
}

struct Pair {
    ModValue a, b;
};
Pair twoArguments(C& c) {
    const Pair made = {c.required(0, "input"), c.required(1, "other")};
    c.finish();
    return made;
}

ModValue logSumOfTwo(E& e, C& c) {
    const auto [a, b] = twoArguments(c);
    const ModValue largest = e.binary(ProgramOp::Max, a, b);
    const ModValue gap = e.unary(ProgramOp::Abs, e.binary(ProgramOp::Sub, a, b));
    const ModValue rest = e.unary(ProgramOp::Log1p, e.unary(ProgramOp::Exp, e.unary(ProgramOp::Neg, gap)));
    return e.select(e.binary(ProgramOp::Eq, largest, number(-kInfinity)), largest,
                    e.binary(ProgramOp::Add, largest, rest));
}

ModValue errorComplement(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Sub, number(1), e.unary(ProgramOp::Erf, x));
}

ModValue logit(E& e, C& c) {
    ModValue x = c.required(0, "input");
    const auto given = c.optional(1, "eps");
    c.finish();
    if (given && !given->isNone()) {
        x = e.binary(ProgramOp::Max, x, *given);
        x = e.binary(ProgramOp::Min, x, e.binary(ProgramOp::Sub, number(1), *given));
    }
    return e.unary(ProgramOp::Log, e.binary(ProgramOp::Div, x, e.binary(ProgramOp::Sub, number(1), x)));
}

/// 0 where x is 0.
ModValue xLogY(E& e, C& c) {
    const auto [x, y] = twoArguments(c);
    return e.select(e.binary(ProgramOp::Eq, x, ModValue::integer(0)), number(0),
                    e.binary(ProgramOp::Mul, x, e.unary(ProgramOp::Log, y)));
}

/// sin(pi x) / (pi x), 1 at 0.
ModValue cardinalSine(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    const ModValue turned = e.binary(ProgramOp::Mul, x, number(std::numbers::pi));
    return e.select(e.binary(ProgramOp::Eq, x, ModValue::integer(0)), number(1),
                    e.binary(ProgramOp::Div, e.unary(ProgramOp::Sin, turned), turned));
}

/// input + value * a op b.
template <ProgramOp Op> ModValue added(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    ModValue part = e.binary(Op, c.required(1, "tensor1"), c.required(2, "tensor2"));
    const auto value = c.keyword("value");
    c.finish();
    part = value ? e.binary(ProgramOp::Mul, part, *value) : part;
    return e.binary(ProgramOp::Add, x, part);
}

ModValue isFinite(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Lt, e.unary(ProgramOp::Abs, x), number(kInfinity));
}
template <int Sign> ModValue isInfiniteOf(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    c.finish();
    return e.binary(ProgramOp::Eq, x, number(Sign * kInfinity));
}

/// |a - b| <= atol + rtol |b|.
ModValue isClose(E& e, C& c) {
    const ModValue a = c.required(0, "input");
    const ModValue b = c.required(1, "other");
    const auto relative = c.optional(2, "rtol");
    const auto absolute = c.optional(3, "atol");
    c.finish();
    const ModValue size = e.binary(ProgramOp::Mul, e.unary(ProgramOp::Abs, b), relative.value_or(number(1e-5)));
    const ModValue gap = e.unary(ProgramOp::Abs, e.binary(ProgramOp::Sub, a, b));
    return e.binary(ProgramOp::Or, e.binary(ProgramOp::Eq, a, b),
                    e.binary(ProgramOp::Le, gap, e.binary(ProgramOp::Add, size, absolute.value_or(number(1e-8)))));
}

ModValue along(E& e, std::string_view reduction, ModValue x, ModValue dim, bool keep) {
    C call;
    call.arguments = {x, dim};
    call.keywords.emplace_back("keepdim", ModValue::boolean(keep));
    return findBuiltin(reduction)->call(e, call);
}

/// Exponentials of x, the largest along `dim` being 1.
struct Exponentials {
    ModValue values, largest;
};
Exponentials exponentials(E& e, ModValue x, ModValue dim) {
    const ModValue largest = along(e, "torch.amax", x, dim, true);
    return {e.unary(ProgramOp::Exp, e.binary(ProgramOp::Sub, x, largest)), largest};
}

ModValue softMax(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    const ModValue dim = c.required(1, "dim");
    static_cast<void>(c.keyword("dtype"));
    c.finish();
    const ModValue values = exponentials(e, x, dim).values;
    return e.binary(ProgramOp::Div, values, along(e, "torch.sum", values, dim, true));
}

ModValue logSoftMax(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    const ModValue dim = c.required(1, "dim");
    static_cast<void>(c.keyword("dtype"));
    c.finish();
    const auto [values, largest] = exponentials(e, x, dim);
    const ModValue sum = e.unary(ProgramOp::Log, along(e, "torch.sum", values, dim, true));
    return e.binary(ProgramOp::Sub, e.binary(ProgramOp::Sub, x, largest), sum);
}

ModValue logSum(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    const ModValue dim = c.required(1, "dim");
    const auto keeps = c.optional(2, "keepdim");
    c.finish();
    const bool keep = keeps && e.truth(*keeps);
    const ModValue largest = along(e, "torch.amax", x, dim, keep);
    const ModValue sum = along(e, "torch.sum", exponentials(e, x, dim).values, dim, keep);
    return e.binary(ProgramOp::Add, e.unary(ProgramOp::Log, sum), largest);
}

/// Of all elements, or along `dim`; divided by one less than their number unless told otherwise.
template <bool Root> ModValue spread(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    const auto dim = c.optional(1, "dim");
    const auto keeps = c.optional(2, "keepdim");
    const auto unbiased = c.keyword("unbiased");
    const auto correction = c.keyword("correction");
    c.finish();
    const ModDims dims = e.dimsOf(x);
    const bool whole = !dim || dim->isNone();
    const auto rank = static_cast<int>(dims.size());
    double count = 1;
    for (int d = 0; d < rank; ++d) {
        const bool counts = whole || wrappedDim(e.integer(*dim, "a dimension"), rank) == d;
        count *= counts ? static_cast<double>(dims[static_cast<std::size_t>(d)]) : 1;
    }
    const double less = correction ? e.real(*correction, "the correction") : unbiased && !e.truth(*unbiased) ? 0 : 1;
    const ModValue which = whole ? ModValue() : *dim;
    const ModValue mean = along(e, "torch.mean", e.binary(ProgramOp::Mul, x, number(1)), which, !whole);
    const ModValue gap = e.binary(ProgramOp::Sub, x, mean);
    const ModValue sum = along(e, "torch.sum", e.binary(ProgramOp::Mul, gap, gap), which, keeps && e.truth(*keeps));
    const ModValue variance = e.binary(ProgramOp::Div, sum, number(count - less));
    return Root ? e.unary(ProgramOp::Sqrt, variance) : variance;
}

/// x over its Euclidean norm along `dim`, which counts as `eps` at least.
ModValue normalize(E& e, C& c) {
    const ModValue x = c.required(0, "input");
    const auto order = c.optional(1, "p");
    const auto dim = c.optional(2, "dim");
    const auto least = c.optional(3, "eps");
    c.finish();
    if (order && e.real(*order, "p") != 2) {
        E::fail("normalize() divides by the Euclidean norm (p=2) only");
    }
    const ModValue sum =
        along(e, "torch.sum", e.binary(ProgramOp::Mul, x, x), dim.value_or(ModValue::integer(1)), true);
    const ModValue norm = e.binary(ProgramOp::Max, e.unary(ProgramOp::Sqrt, sum), least.value_or(number(1e-12)));
    return e.binary(ProgramOp::Div, x, norm);
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
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

std::span<const ModBuiltinEntry> specialBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
