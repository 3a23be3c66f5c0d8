// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// math, functools, collections, and the helpers of FlexAttention.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramOp;

namespace {

using E = ModEvaluator;
using C = ModCall;

ModValue partial(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModPartial>();
    made->callee = call.required(0, "func");
    made->arguments.assign(call.arguments.begin() + 1, call.arguments.end());
    for (const auto& [name, value] : call.keywords) {
        made->keywords.emplace_back(std::string(name), value);
    }
    return made;
}

ModValue reduce(ModEvaluator& evaluator, ModCall& call) {
    const ModValue function = call.required(0, "function");
    const std::vector<ModValue> items = evaluator.iterate(call.required(1, "iterable"));
    std::optional<ModValue> total = call.optional(2, "initial");
    call.finish();
    for (const ModValue item : items) {
        evaluator.step();
        total = total ? evaluator.call(function, {*total, item}) : item;
    }
    if (!total) {
        ModEvaluator::fail("reduce() of nothing");
    }
    return *total;
}

template <ProgramOp Op> ModValue combination(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModCombination>();
    made->op = Op;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
        const ModValue mask = call.required(i, "");
        if (!evaluator.isCallable(mask)) {
            ModEvaluator::fail(fmt::format("and_masks and or_masks combine functions, not {}", modTypeName(mask)));
        }
        made->masks.push_back(mask);
    }
    call.finish();
    return made;
}

ModValue blockMask(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModInstance>();
    made->typeName = "BlockMask";
    made->attributes["mask_mod"] = call.required(0, "mask_mod");
    return made;
}

/// Compilers and decorators: the function itself.
ModValue transparent(ModEvaluator& evaluator, ModCall& call) {
    for (const ModValue argument : call.arguments) {
        if (evaluator.isCallable(argument)) {
            return argument;
        }
    }
    return evaluator.heap().ignored("a decorator");
}

/// math's functions of one number: results of constants are Python numbers.
template <ProgramOp Op> ModValue mathFunction(ModEvaluator& evaluator, ModCall& call) {
    const ModValue value = call.required(0, "x");
    call.finish();
    return evaluator.unary(Op, value);
}

template <ProgramOp Op> ModValue mathRounding(ModEvaluator& evaluator, ModCall& call) {
    const ModValue value = call.required(0, "x");
    call.finish();
    return evaluator.cast(DType::I64, evaluator.unary(Op, value));
}

ModValue mathLog(ModEvaluator& evaluator, ModCall& call) {
    const ModValue value = evaluator.unary(ProgramOp::Log, call.required(0, "x"));
    const auto base = call.optional(1, "base");
    call.finish();
    return base ? evaluator.binary(ProgramOp::Div, value, evaluator.unary(ProgramOp::Log, *base)) : value;
}

ModValue product(ModEvaluator& evaluator, ModCall& call) {
    ModValue total = ModValue::integer(1);
    for (const ModValue item : evaluator.iterate(call.required(0, "iterable"))) {
        evaluator.step();
        total = evaluator.operate(PyOperator::Mul, total, item);
    }
    call.finish();
    return total;
}

/// Limits of a dtype: an object with PyTorch's names.
ModValue limits(ModEvaluator& evaluator, ModCall& call) {
    const auto given = call.optional(0, "type");
    call.finish();
    const DType dtype = given ? evaluator.dtype(*given) : DType::F32;
    auto* const made = evaluator.heap().make<ModInstance>();
    made->typeName = "finfo";
    const auto whole = [&](std::int64_t low, std::int64_t high) {
        made->attributes = {{"min", ModValue::integer(low)}, {"max", ModValue::integer(high)}};
    };
    const auto real = [&](double largest, double epsilon, double tiny) {
        made->attributes = {{"min", ModValue::real(-largest)},
                            {"max", ModValue::real(largest)},
                            {"eps", ModValue::real(epsilon)},
                            {"tiny", ModValue::real(tiny)},
                            {"smallest_normal", ModValue::real(tiny)}};
    };
    switch (dtype) {
    case DType::F16:
        real(65504, 0x1p-10, 0x1p-14);
        break;
    case DType::BF16:
        real(0x1.FEp127, 0x1p-7, 0x1p-126);
        break;
    case DType::F32:
        real(std::numeric_limits<float>::max(), 0x1p-23, 0x1p-126);
        break;
    case DType::F64:
        real(std::numeric_limits<double>::max(), 0x1p-52, 0x1p-1022);
        break;
    case DType::U8:
        whole(0, 255);
        break;
    case DType::I8:
        whole(-128, 127);
        break;
    case DType::I16:
        whole(-32768, 32767);
        break;
    case DType::I32:
        whole(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
        break;
    case DType::I64:
        whole(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
        break;
    default:
        ModEvaluator::fail("limits of a dtype that is neither a float nor an integer");
    }
    made->attributes["bits"] = ModValue::integer(kernels::bitsOf(dtype));
    return made;
}

ModValue nameSpace(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModInstance>();
    made->typeName = "SimpleNamespace";
    for (const auto& [name, value] : call.keywords) {
        made->attributes[std::string(name)] = value;
    }
    return made;
}

/// A class with the fields as its arguments.
ModValue namedTuple(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModClass>();
    made->name = evaluator.heap().string(evaluator.text(call.required(0, "typename"), "the name"))->text;
    made->scope = evaluator.heap().scope(nullptr);
    made->isData = true;
    const ModValue fields = call.required(1, "field_names");
    call.finish();
    const auto add = [&](std::string name) {
        if (!name.empty()) {
            made->fields.emplace_back(evaluator.heap().string(std::move(name))->text);
        }
    };
    if (const auto* const text = fields.as<ModString>()) {
        std::string name;
        for (const char c : text->text + " ") {
            if (c != ' ' && c != ',') {
                name += c;
                continue;
            }
            add(std::move(name));
            name.clear();
        }
        return made;
    }
    for (const ModValue item : evaluator.iterate(fields)) {
        add(evaluator.text(item, "a field's name"));
    }
    return made;
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"cdiv",
     [](E& e, C& c) {
         const ModValue a = c.required(0, "a");
         const ModValue b = c.required(1, "b");
         return e.operate(PyOperator::FloorDiv,
                          e.operate(PyOperator::Sub, e.operate(PyOperator::Add, a, b), ModValue::integer(1)), b);
     }},
    {"math.floor", mathRounding<ProgramOp::Floor>},
    {"math.ceil", mathRounding<ProgramOp::Ceil>},
    {"math.trunc", mathRounding<ProgramOp::Trunc>},
    {"math.sqrt", mathFunction<ProgramOp::Sqrt>},
    {"math.exp", mathFunction<ProgramOp::Exp>},
    {"math.exp2", mathFunction<ProgramOp::Exp2>},
    {"math.expm1", mathFunction<ProgramOp::Expm1>},
    {"math.log", mathLog},
    {"math.log2", mathFunction<ProgramOp::Log2>},
    {"math.log1p", mathFunction<ProgramOp::Log1p>},
    {"math.log10",
     [](E& e, C& c) {
         return e.binary(ProgramOp::Div, e.unary(ProgramOp::Log, c.required(0, "x")), ModValue::real(std::log(10.0)));
     }},
    {"math.erf", mathFunction<ProgramOp::Erf>},
    {"math.fabs",
     [](E& e, C& c) {
         return e.unary(ProgramOp::Abs, e.binary(ProgramOp::Mul, c.required(0, "x"), ModValue::real(1)));
     }},
    {"math.pow",
     [](E& e, C& c) {
         return e.binary(ProgramOp::Pow, e.binary(ProgramOp::Mul, c.required(0, "x"), ModValue::real(1)),
                         c.required(1, "y"));
     }},
    {"math.prod", product},
    {"math.isqrt",
     [](E& e, C& c) {
         return ModValue::integer(static_cast<std::int64_t>(std::sqrt(
             static_cast<long double>(std::max<std::int64_t>(0, e.integer(c.required(0, "n"), "the number"))))));
     }},
    {"math.gcd",
     [](E& e, C& c) {
         return ModValue::integer(std::gcd(e.integer(c.required(0, "a"), "a number") % kMaxModConstants,
                                           e.integer(c.required(1, "b"), "a number") % kMaxModConstants));
     }},
    {"functools.partial", partial},
    {"partial", partial},
    {"functools.reduce", reduce},
    {"reduce", reduce},
    {"functools.lru_cache", transparent},
    {"functools.cache", transparent},
    {"functools.wraps", [](E& e, C&) { return e.heap().ignored("a decorator"); }},
    {"torch.finfo", limits},
    {"torch.iinfo", limits},
    {"types.SimpleNamespace", nameSpace},
    {"argparse.Namespace", nameSpace},
    {"collections.namedtuple", namedTuple},
    {"collections.OrderedDict", [](E& e, C& c) { return findBuiltin("dict")->call(e, c); }},
    {"float.is_integer", [](E&, C& c) { return ModValue::boolean(std::floor(c.arguments[0].number()) == c.arguments[0].number()); }},
    {"int.bit_length",
     [](E&, C& c) {
         const std::int64_t value = c.arguments[0].integer();
         const std::uint64_t size = value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
         return ModValue::integer(std::bit_width(size));
     }},
    {"and_masks", combination<ProgramOp::And>},
    {"or_masks", combination<ProgramOp::Or>},
    {"create_block_mask", blockMask},
    {"torch.compile", transparent},
});

} // namespace

std::span<const ModBuiltinEntry> libraryBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
