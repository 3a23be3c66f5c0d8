// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// math, functools, collections, and the helpers of FlexAttention.
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

PyValue partial(E& e, C& c) {
    auto* const made = e.heap.make<PyPartial>();
    made->callee = c.required(0, "func");
    made->arguments.assign(c.arguments.begin() + 1, c.arguments.end());
    for (const auto& [name, value] : c.keywords) {
        made->keywords.emplace_back(std::string(name), value);
    }
    return made;
}

PyValue reduce(E& e, C& c) {
    const PyValue function = c.required(0, "function");
    const std::vector<PyValue> items = e.containers.iterate(c.required(1, "iterable"));
    std::optional<PyValue> total = c.optional(2, "initial");
    c.finish();
    for (const PyValue item : items) {
        e.evaluation.step();
        total = total ? e.caller.call(function, {*total, item}) : item;
    }
    if (!total) {
        fail("reduce() of nothing");
    }
    return *total;
}

template <ProgramOp Op> PyValue combination(E& e, C& c) {
    auto* const made = e.heap.make<PyCombination>();
    made->op = Op;
    for (std::size_t i = 0; i < c.arguments.size(); ++i) {
        const PyValue mask = c.required(i, "");
        if (!e.classes.isCallable(mask)) {
            fail(fmt::format("and_masks and or_masks combine functions, not {}", pyTypeName(mask)));
        }
        made->masks.push_back(mask);
    }
    c.finish();
    return made;
}

PyValue blockMask(E& e, C& c) {
    auto* const made = e.heap.make<PyInstance>();
    made->typeName = "BlockMask";
    made->attributes["mask_mod"] = c.required(0, "mask_mod");
    return made;
}

/// Compilers and decorators: the function itself.
PyValue transparent(E& e, C& c) {
    for (const PyValue argument : c.arguments) {
        if (e.classes.isCallable(argument)) {
            return argument;
        }
    }
    return e.heap.ignored("a decorator");
}

/// math's functions of one number: results of constants are Python numbers.
template <ProgramOp Op> PyValue mathFunction(E& e, C& c) {
    const PyValue value = c.required(0, "x");
    c.finish();
    return e.elements.unary(Op, value);
}

template <ProgramOp Op> PyValue mathRounding(E& e, C& c) {
    const PyValue value = c.required(0, "x");
    c.finish();
    return e.elements.cast(DType::I64, e.elements.unary(Op, value));
}

PyValue mathLog(E& e, C& c) {
    const PyValue value = e.elements.unary(ProgramOp::Log, c.required(0, "x"));
    const auto base = c.optional(1, "base");
    c.finish();
    return base ? e.elements.binary(ProgramOp::Div, value, e.elements.unary(ProgramOp::Log, *base)) : value;
}

PyValue productOfNumbers(E& e, C& c) {
    PyValue total = PyValue::integer(1);
    for (const PyValue item : e.containers.iterate(c.required(0, "iterable"))) {
        e.evaluation.step();
        total = e.operators.operate(PyOperator::Mul, total, item);
    }
    c.finish();
    return total;
}

/// Limits of a dtype: an object with PyTorch's names.
PyValue limits(E& e, C& c) {
    const auto given = c.optional(0, "type");
    c.finish();
    const DType dtype = given ? e.convert.dtype(*given) : DType::F32;
    auto* const made = e.heap.make<PyInstance>();
    made->typeName = "finfo";
    const auto whole = [&](std::int64_t low, std::int64_t high) {
        made->attributes = {{"min", PyValue::integer(low)}, {"max", PyValue::integer(high)}};
    };
    const auto real = [&](double largest, double epsilon, double tiny) {
        made->attributes = {{"min", PyValue::real(-largest)},
                            {"max", PyValue::real(largest)},
                            {"eps", PyValue::real(epsilon)},
                            {"tiny", PyValue::real(tiny)},
                            {"smallest_normal", PyValue::real(tiny)}};
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
        fail("limits of a dtype that is neither a float nor an integer");
    }
    made->attributes["bits"] = PyValue::integer(kernels::bitsOf(dtype));
    return made;
}

PyValue nameSpace(E& e, C& c) {
    auto* const made = e.heap.make<PyInstance>();
    made->typeName = "SimpleNamespace";
    for (const auto& [name, value] : c.keywords) {
        made->attributes[std::string(name)] = value;
    }
    return made;
}

/// A class with the fields as its arguments.
PyValue namedTuple(E& e, C& c) {
    auto* const made = e.heap.make<PyClass>();
    made->name = e.heap.string(e.convert.text(c.required(0, "typename"), "the name"))->text;
    made->scope = e.heap.scope(nullptr);
    made->isData = true;
    const PyValue fields = c.required(1, "field_names");
    c.finish();
    const auto add = [&](std::string name) {
        if (!name.empty()) {
            made->fields.emplace_back(e.heap.string(std::move(name))->text);
        }
    };
    if (const auto* const text = fields.as<PyString>()) {
        std::string name;
        for (const char letter : text->text + " ") {
            if (letter != ' ' && letter != ',') {
                name += letter;
                continue;
            }
            add(std::move(name));
            name.clear();
        }
        return made;
    }
    for (const PyValue item : e.containers.iterate(fields)) {
        add(e.convert.text(item, "a field's name"));
    }
    return made;
}

constexpr std::array kLibrary = std::to_array<BuiltinEntry>({
    {"cdiv",
     [](E& e, C& c) {
         const PyValue a = c.required(0, "a");
         const PyValue b = c.required(1, "b");
         const PyValue sum = e.operators.operate(PyOperator::Add, a, b);
         return e.operators.operate(PyOperator::FloorDiv,
                                    e.operators.operate(PyOperator::Sub, sum, PyValue::integer(1)), b);
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
         return e.elements.binary(ProgramOp::Div, e.elements.unary(ProgramOp::Log, c.required(0, "x")),
                                  PyValue::real(std::log(10.0)));
     }},
    {"math.erf", mathFunction<ProgramOp::Erf>},
    {"math.fabs",
     [](E& e, C& c) {
         return e.elements.unary(ProgramOp::Abs,
                                 e.elements.binary(ProgramOp::Mul, c.required(0, "x"), PyValue::real(1)));
     }},
    {"math.pow",
     [](E& e, C& c) {
         return e.elements.binary(ProgramOp::Pow,
                                  e.elements.binary(ProgramOp::Mul, c.required(0, "x"), PyValue::real(1)),
                                  c.required(1, "y"));
     }},
    {"math.prod", productOfNumbers},
    {"math.isqrt",
     [](E& e, C& c) {
         const std::int64_t number = std::max<std::int64_t>(0, e.convert.integer(c.required(0, "n"), "the number"));
         return PyValue::integer(static_cast<std::int64_t>(std::sqrt(static_cast<long double>(number))));
     }},
    {"math.gcd",
     [](E& e, C& c) {
         return PyValue::integer(std::gcd(e.convert.integer(c.required(0, "a"), "a number") % kMaxElements,
                                           e.convert.integer(c.required(1, "b"), "a number") % kMaxElements));
     }},
    {"functools.partial", partial},
    {"partial", partial},
    {"functools.reduce", reduce},
    {"reduce", reduce},
    {"functools.lru_cache", transparent},
    {"functools.cache", transparent},
    {"functools.cached_property", transparent},
    {"functools.wraps", [](E& e, C&) { return e.heap.ignored("a decorator"); }},
    {"torch.finfo", limits},
    {"torch.iinfo", limits},
    {"types.SimpleNamespace", nameSpace},
    {"argparse.Namespace", nameSpace},
    {"collections.namedtuple", namedTuple},
    {"collections.OrderedDict", [](E& e, C& c) { return e.caller.callBuiltin("dict", c); }},
    {"float.is_integer",
     [](E&, C& c) {
         const double value = c.required(0, "self").number();
         return PyValue::boolean(std::floor(value) == value);
     }},
    {"int.bit_length",
     [](E&, C& c) {
         const std::int64_t value = c.required(0, "self").integer();
         const auto bits = static_cast<std::uint64_t>(value);
         const std::uint64_t size = value < 0 ? ~bits + 1 : bits;
         return PyValue::integer(std::bit_width(size));
     }},
    {"and_masks", combination<ProgramOp::And>},
    {"or_masks", combination<ProgramOp::Or>},
    {"create_block_mask", blockMask},
    {"torch.compile", transparent},
});

} // namespace

std::span<const BuiltinEntry> libraryBuiltins() {
    return kLibrary;
}

} // namespace vitrine::engine
