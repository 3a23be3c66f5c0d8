// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Python's own functions.
#include <cmath>
#include <fmt/format.h>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

PyValue length(E& e, C& c) {
    const PyValue value = c.required(0, "obj");
    c.finish();
    if (isTensorLike(value)) {
        const TensorDims dims = dimsOf(value);
        if (dims.empty()) {
            fail("len() of a value without dimensions");
        }
        return PyValue::integer(dims[0]);
    }
    if (const auto made = e.classes.special(value, "__len__", {})) {
        return *made;
    }
    if (const auto* const range = value.as<PyRangeValue>()) {
        return PyValue::integer(range->count);
    }
    return PyValue::integer(static_cast<std::int64_t>(e.containers.iterate(value).size()));
}

PyValue range(E& e, C& c) {
    std::array<std::int64_t, 3> bounds = {0, 0, 1};
    const std::size_t count = c.arguments.size();
    for (std::size_t i = 0; i < std::min<std::size_t>(count, 3); ++i) {
        bounds[count == 1 ? 1 : i] = e.convert.integer(c.required(i, ""), "a bound of range()");
    }
    c.finish();
    constexpr std::int64_t kLargest = std::int64_t{1} << 60;
    for (const std::int64_t bound : bounds) {
        if (bound > kLargest || bound < -kLargest) {
            fail("a bound of range() that is too large");
        }
    }
    if (count == 0 || bounds[2] == 0) {
        fail("range() needs a bound and a step that is not 0");
    }
    auto* const made = e.heap.make<PyRangeValue>();
    made->start = bounds[0];
    made->step = bounds[2];
    const std::int64_t span = bounds[2] > 0 ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
    const std::int64_t pace = bounds[2] > 0 ? bounds[2] : -bounds[2];
    made->count = span <= 0 ? 0 : (span + pace - 1) / pace;
    return made;
}

template <ProgramOp Op> PyValue extreme(E& e, C& c) {
    std::vector<PyValue> items = c.arguments;
    static_cast<void>(c.optional(items.empty() ? 0 : items.size() - 1, ""));
    const auto otherwise = c.keyword("default");
    const auto key = c.keyword("key");
    c.finish();
    if (items.size() == 1) {
        items = e.containers.iterate(items[0]);
    }
    if (items.empty() && otherwise) {
        return *otherwise;
    }
    if (items.empty()) {
        fail("the smallest or largest of nothing");
    }
    const auto keyed = [&](PyValue item) { return key ? e.caller.call(*key, {item}) : item; };
    PyValue best = items[0];
    for (std::size_t i = 1; i < items.size(); ++i) {
        e.evaluation.step();
        const bool number = best.isNumber() && items[i].isNumber();
        if (!number && !key) {
            best = e.elements.binary(Op, best, items[i]);
            continue;
        }
        const PyValue less =
            e.operators.operate(Op == ProgramOp::Min ? PyOperator::Lt : PyOperator::Gt, keyed(items[i]), keyed(best));
        best = e.convert.truth(less) ? items[i] : best;
    }
    return best;
}

PyValue sum(E& e, C& c) {
    const std::vector<PyValue> items = e.containers.iterate(c.required(0, "iterable"));
    PyValue total = c.optional(1, "start").value_or(PyValue::integer(0));
    c.finish();
    for (const PyValue item : items) {
        e.evaluation.step();
        total = e.operators.operate(PyOperator::Add, total, item);
    }
    return total;
}

template <bool All> PyValue allOrAny(E& e, C& c) {
    const std::vector<PyValue> items = e.containers.iterate(c.required(0, "iterable"));
    c.finish();
    PyValue result = PyValue::boolean(All);
    for (const PyValue item : items) {
        e.evaluation.step();
        if (item.isSymbol()) {
            result =
                e.elements.binary(All ? ProgramOp::And : ProgramOp::Or, result, e.elements.cast(DType::Bool, item));
        } else if (e.convert.truth(item) != All) {
            return PyValue::boolean(!All);
        }
    }
    return result;
}

template <DType To> PyValue conversion(E& e, C& c) {
    if (c.arguments.empty()) {
        return To == DType::F64 ? PyValue::real(0) : To == DType::Bool ? PyValue::boolean(false) : PyValue::integer(0);
    }
    const PyValue value = c.required(0, "x");
    c.finish();
    if (const auto* const string = value.as<PyString>()) {
        std::string text = string->text;
        std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
            return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
        });
        if (To == DType::Bool) {
            return PyValue::boolean(!text.empty());
        }
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        if (text.empty() || *end != '\0' || (To == DType::I64 && !(std::fabs(number) < 9e18))) {
            fail(fmt::format("'{}' is no number", text.substr(0, 40)));
        }
        return To == DType::F64 ? PyValue::real(number) : PyValue::integer(std::llround(number));
    }
    const auto* const tensor = value.as<PyTensor>();
    if (tensor != nullptr && tensor->count() == 1 && !e.evaluation.inProgram) {
        return To == DType::F64    ? PyValue::real(e.convert.real(value, "the value"))
               : To == DType::Bool ? PyValue::boolean(e.convert.truth(value))
                                   : PyValue::integer(static_cast<std::int64_t>(e.convert.real(value, "the value")));
    }
    if (value.isSymbol()) {
        e.evaluation.note(
            "a conversion by int(), float() or bool() of a value that is known only for each element is taken as "
            ".long(), .float() or .bool()");
    } else if (To == DType::Bool) {
        return PyValue::boolean(e.convert.truth(value));
    }
    return e.elements.cast(To, value);
}

PyValue roundNumber(E& e, C& c) {
    const PyValue value = c.required(0, "number");
    const auto digits = c.optional(1, "ndigits");
    c.finish();
    if (!value.isNumber()) {
        return e.elements.unary(ProgramOp::Round, value);
    }
    if (!digits || digits->isNone()) {
        return e.elements.cast(DType::I64, PyValue::real(std::nearbyint(value.number())));
    }
    const double scale = std::pow(10.0, static_cast<double>(e.convert.integer(*digits, "the number of digits")));
    return PyValue::real(std::nearbyint(value.number() * scale) / scale);
}

PyValue zip(E& e, C& c) {
    static_cast<void>(c.keyword("strict"));
    std::vector<std::vector<PyValue>> columns;
    std::size_t rows = 0;
    for (std::size_t i = 0; i < c.arguments.size(); ++i) {
        columns.push_back(e.containers.iterate(c.required(i, "")));
        rows = i == 0 ? columns[0].size() : std::min(rows, columns[i].size());
    }
    c.finish();
    std::vector<PyValue> made;
    for (std::size_t row = 0; row < rows; ++row) {
        e.evaluation.step();
        std::vector<PyValue> items;
        items.reserve(columns.size());
        for (const std::vector<PyValue>& column : columns) {
            items.push_back(column[row]);
        }
        made.emplace_back(e.heap.tuple(std::move(items)));
    }
    return e.heap.list(std::move(made));
}

PyValue enumerate(E& e, C& c) {
    const std::vector<PyValue> items = e.containers.iterate(c.required(0, "iterable"));
    const auto start = c.optional(1, "start");
    c.finish();
    std::int64_t at = start ? e.convert.integer(*start, "the start of enumerate()") : 0;
    at = std::clamp<std::int64_t>(at, -kMaxElements, kMaxElements);
    std::vector<PyValue> made;
    for (const PyValue item : items) {
        e.evaluation.step();
        made.emplace_back(e.heap.tuple({PyValue::integer(at++), item}));
    }
    return e.heap.list(std::move(made));
}

PyValue mapOrFilter(E& e, C& c, bool filter) {
    const PyValue function = c.required(0, "function");
    std::vector<PyValue> made;
    for (const PyValue item : e.containers.iterate(c.required(1, "iterable"))) {
        e.evaluation.step();
        const PyValue result = e.caller.call(function, {item});
        if (!filter) {
            made.push_back(result);
        } else if (e.convert.truth(result)) {
            made.push_back(item);
        }
    }
    c.finish();
    return e.heap.list(std::move(made));
}

template <PyKind Kind> PyValue sequence(E& e, C& c) {
    const auto from = c.optional(0, "iterable");
    c.finish();
    auto* const made = e.heap.make<PySequence>(Kind);
    for (const PyValue item : from ? e.containers.iterate(*from) : std::vector<PyValue>()) {
        e.evaluation.step();
        const bool known =
            Kind == PyKind::Set && std::any_of(made->items.begin(), made->items.end(), [&](PyValue other) {
                e.evaluation.step();
                return e.operators.equal(item, other);
            });
        if (!known) {
            made->items.push_back(item);
        }
    }
    e.heap.charge(static_cast<std::int64_t>(made->items.size()));
    return made;
}

PyValue sorted(E& e, C& c) {
    std::vector<PyValue> items = e.containers.iterate(c.required(0, "iterable"));
    const auto key = c.keyword("key");
    const auto reverse = c.keyword("reverse");
    c.finish();
    std::vector<std::pair<PyValue, PyValue>> keyed;
    keyed.reserve(items.size());
    for (const PyValue item : items) {
        keyed.emplace_back(key && !key->isNone() ? e.caller.call(*key, {item}) : item, item);
    }
    const bool backwards = reverse && e.convert.truth(*reverse);
    std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
        e.evaluation.step();
        return backwards ? e.operators.less(b.first, a.first) : e.operators.less(a.first, b.first);
    });
    items.clear();
    for (const auto& [sortedBy, item] : keyed) {
        items.push_back(item);
    }
    return e.heap.list(std::move(items));
}

bool isInstance(E& e, PyValue value, PyValue type, int depth) {
    if (const auto* const types = type.as<PySequence>(); types != nullptr && depth < 8) {
        return std::any_of(types->items.begin(), types->items.end(),
                           [&](PyValue each) { return isInstance(e, value, each, depth + 1); });
    }
    if (const auto* const wanted = type.as<PyClass>()) {
        const auto* const instance = value.as<PyInstance>();
        return instance != nullptr && instance->type != nullptr && e.classes.isSubclass(*instance->type, *wanted);
    }
    if (const auto* const other = type.as<PyIgnored>()) {
        return other->what.find("Tensor") != std::string::npos && isTensorLike(value);
    }
    const auto* const builtin = type.as<PyBuiltin>();
    const std::string_view name = builtin == nullptr ? "" : builtin->entry->name;
    const auto* const slider = value.as<PySlider>();
    const PyValue::Kind kind = slider != nullptr ? slider->value.kind() : value.kind();
    const auto* const items = value.as<PySequence>();
    if (name == "int") {
        return kind == PyValue::Kind::Int || kind == PyValue::Kind::Bool;
    }
    if (name == "float") {
        return kind == PyValue::Kind::Float;
    }
    if (name == "bool") {
        return kind == PyValue::Kind::Bool;
    }
    if (name == "list" || name == "tuple" || name == "set") {
        const PyKind wanted = name == "list" ? PyKind::List : name == "tuple" ? PyKind::Tuple : PyKind::Set;
        return items != nullptr && items->kind == wanted;
    }
    if (name == "str") {
        return value.as<PyString>() != nullptr;
    }
    if (name.find("Tensor") != std::string_view::npos) {
        return isTensorLike(value);
    }
    return name == "dict" && value.as<PyDict>() != nullptr;
}

PyValue getAttribute(E& e, C& c) {
    const PyValue object = c.required(0, "object");
    const std::string name = e.convert.text(c.required(1, "name"), "an attribute's name");
    const auto otherwise = c.optional(2, "default");
    c.finish();
    if (const auto found = e.attributes.find(object, name)) {
        return *found;
    }
    return otherwise ? *otherwise : e.attributes.attribute(object, name);
}

PyValue makeDict(E& e, C& c) {
    auto* const made = e.heap.make<PyDict>();
    for (const auto& [name, value] : c.keywords) {
        made->entries.emplace_back(e.heap.string(std::string(name)), value);
    }
    return made;
}

constexpr std::array kPython = std::to_array<BuiltinEntry>({
    {"len", length},
    {"range", range},
    {"min", extreme<ProgramOp::Min>},
    {"max", extreme<ProgramOp::Max>},
    {"abs", [](E& e, C& c) { return e.elements.unary(ProgramOp::Abs, c.required(0, "x")); }},
    {"int", conversion<DType::I64>},
    {"float", conversion<DType::F64>},
    {"bool", conversion<DType::Bool>},
    {"round", roundNumber},
    {"pow",
     [](E& e, C& c) {
         return e.operators.operate(PyOperator::Pow, c.required(0, "base"), c.required(1, "exp"));
     }},
    {"divmod",
     [](E& e, C& c) -> PyValue {
         const PyValue a = c.required(0, "a");
         const PyValue b = c.required(1, "b");
         return e.heap.tuple(
             {e.operators.operate(PyOperator::FloorDiv, a, b), e.operators.operate(PyOperator::Mod, a, b)});
     }},
    {"sum", sum},
    {"all", allOrAny<true>},
    {"any", allOrAny<false>},
    {"zip", zip},
    {"enumerate", enumerate},
    {"map", [](E& e, C& c) { return mapOrFilter(e, c, false); }},
    {"filter", [](E& e, C& c) { return mapOrFilter(e, c, true); }},
    {"list", sequence<PyKind::List>},
    {"tuple", sequence<PyKind::Tuple>},
    {"set", sequence<PyKind::Set>},
    {"frozenset", sequence<PyKind::Set>},
    {"dict", makeDict},
    {"sorted", sorted},
    {"reversed",
     [](E& e, C& c) -> PyValue {
         std::vector<PyValue> items = e.containers.iterate(c.required(0, "sequence"));
         std::reverse(items.begin(), items.end());
         return e.heap.list(std::move(items));
     }},
    {"isinstance",
     [](E& e, C& c) { return PyValue::boolean(isInstance(e, c.required(0, "object"), c.required(1, "type"), 0)); }},
    {"callable", [](E& e, C& c) { return PyValue::boolean(e.classes.isCallable(c.required(0, "object"))); }},
    {"hasattr",
     [](E& e, C& c) {
         const PyValue object = c.required(0, "object");
         const std::string name = e.convert.text(c.required(1, "name"), "an attribute's name");
         return PyValue::boolean(e.attributes.find(object, name).has_value());
     }},
    {"getattr", getAttribute},
    {"setattr",
     [](E& e, C& c) -> PyValue {
         if (auto* const type = c.required(0, "object").as<PyClass>()) {
             const std::string name = e.convert.text(c.required(1, "name"), "an attribute's name");
             type->scope->names[e.heap.string(name)->text] = c.required(2, "value");
             c.finish();
             return {};
         }
         auto* const instance = c.required(0, "object").as<PyInstance>();
         if (instance == nullptr) {
             fail("setattr() changes objects of the text's classes");
         }
         instance->attributes[e.convert.text(c.required(1, "name"), "an attribute's name")] = c.required(2, "value");
         c.finish();
         return {};
     }},
    {"str",
     [](E& e, C& c) -> PyValue {
         return e.heap.string(c.arguments.empty() ? "" : pyText(c.required(0, "object")));
     }},
    {"repr", [](E& e, C& c) -> PyValue { return e.heap.string(pyText(c.required(0, "object"))); }},
    {"print",
     [](E& e, C&) -> PyValue {
         e.evaluation.note("print() is ignored");
         return {};
     }},
    {"type", [](E& e, C&) { return e.heap.ignored("a type"); }},
    {"super", [](E& e, C&) { return e.classes.parents(); }},
    {"object", [](E& e, C&) { return e.heap.ignored("object"); }},
    {"slice",
     [](E& e, C& c) -> PyValue {
         auto* const made = e.heap.make<PySlice>();
         made->start = c.arguments.size() > 1 ? c.required(0, "start") : PyValue();
         made->stop = c.required(c.arguments.size() > 1 ? 1 : 0, "stop");
         made->step = c.optional(2, "step").value_or(PyValue());
         return made;
     }},
});

} // namespace

std::span<const BuiltinEntry> pythonBuiltins() {
    return kPython;
}

} // namespace vitrine::engine
