// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Python's own functions.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramOp;

namespace {

using E = ModEvaluator;
using C = ModCall;

ModValue length(ModEvaluator& evaluator, ModCall& call) {
    const ModValue value = call.required(0, "obj");
    call.finish();
    if (evaluator.isTensorLike(value)) {
        const ModDims dims = evaluator.dimsOf(value);
        if (dims.empty()) {
            ModEvaluator::fail("len() of a value without dimensions");
        }
        return ModValue::integer(dims[0]);
    }
    if (const auto made = evaluator.special(value, "__len__", {})) {
        return *made;
    }
    if (const auto* const range = value.as<ModRange>()) {
        return ModValue::integer(range->count);
    }
    return ModValue::integer(static_cast<std::int64_t>(evaluator.iterate(value).size()));
}

ModValue range(ModEvaluator& evaluator, ModCall& call) {
    std::array<std::int64_t, 3> bounds = {0, 0, 1};
    const std::size_t count = call.arguments.size();
    for (std::size_t i = 0; i < std::min<std::size_t>(count, 3); ++i) {
        bounds[count == 1 ? 1 : i] = evaluator.integer(call.required(i, ""), "a bound of range()");
    }
    call.finish();
    constexpr std::int64_t kLargest = std::int64_t{1} << 60;
    for (const std::int64_t bound : bounds) {
        if (bound > kLargest || bound < -kLargest) {
            ModEvaluator::fail("a bound of range() that is too large");
        }
    }
    if (count == 0 || bounds[2] == 0) {
        ModEvaluator::fail("range() needs a bound and a step that is not 0");
    }
    auto* const made = evaluator.heap().make<ModRange>();
    made->start = bounds[0];
    made->step = bounds[2];
    const std::int64_t span = bounds[2] > 0 ? bounds[1] - bounds[0] : bounds[0] - bounds[1];
    const std::int64_t pace = bounds[2] > 0 ? bounds[2] : -bounds[2];
    made->count = span <= 0 ? 0 : (span + pace - 1) / pace;
    return made;
}

template <ProgramOp Op> ModValue extreme(ModEvaluator& evaluator, ModCall& call) {
    std::vector<ModValue> items = call.arguments;
    static_cast<void>(call.optional(items.empty() ? 0 : items.size() - 1, ""));
    const auto otherwise = call.keyword("default");
    const auto key = call.keyword("key");
    call.finish();
    if (items.size() == 1) {
        items = evaluator.iterate(items[0]);
    }
    if (items.empty() && otherwise) {
        return *otherwise;
    }
    if (items.empty()) {
        ModEvaluator::fail("the smallest or largest of nothing");
    }
    const auto keyed = [&](ModValue item) { return key ? evaluator.call(*key, {item}) : item; };
    ModValue best = items[0];
    for (std::size_t i = 1; i < items.size(); ++i) {
        evaluator.step();
        const bool number = best.isNumber() && items[i].isNumber();
        if (!number && !key) {
            best = evaluator.binary(Op, best, items[i]);
            continue;
        }
        const ModValue less =
            evaluator.operate(Op == ProgramOp::Min ? PyOperator::Lt : PyOperator::Gt, keyed(items[i]), keyed(best));
        best = evaluator.truth(less) ? items[i] : best;
    }
    return best;
}

ModValue sum(ModEvaluator& evaluator, ModCall& call) {
    const std::vector<ModValue> items = evaluator.iterate(call.required(0, "iterable"));
    ModValue total = call.optional(1, "start").value_or(ModValue::integer(0));
    call.finish();
    for (const ModValue item : items) {
        evaluator.step();
        total = evaluator.operate(PyOperator::Add, total, item);
    }
    return total;
}

template <bool All> ModValue allOrAny(ModEvaluator& evaluator, ModCall& call) {
    const std::vector<ModValue> items = evaluator.iterate(call.required(0, "iterable"));
    call.finish();
    ModValue result = ModValue::boolean(All);
    for (const ModValue item : items) {
        evaluator.step();
        if (item.isSymbol()) {
            result = evaluator.binary(All ? ProgramOp::And : ProgramOp::Or, result, evaluator.cast(DType::Bool, item));
        } else if (evaluator.truth(item) != All) {
            return ModValue::boolean(!All);
        }
    }
    return result;
}

template <DType To> ModValue conversion(ModEvaluator& evaluator, ModCall& call) {
    if (call.arguments.empty()) {
        return To == DType::F64    ? ModValue::real(0)
               : To == DType::Bool ? ModValue::boolean(false)
                                   : ModValue::integer(0);
    }
    const ModValue value = call.required(0, "x");
    call.finish();
    if (const auto* const string = value.as<ModString>()) {
        std::string text = string->text;
        std::transform(text.begin(), text.end(), text.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
        if (To == DType::Bool) {
            return ModValue::boolean(!text.empty());
        }
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        if (text.empty() || *end != '\0' || (To == DType::I64 && !(std::fabs(number) < 9e18))) {
            ModEvaluator::fail(fmt::format("'{}' is no number", text.substr(0, 40)));
        }
        return To == DType::F64 ? ModValue::real(number) : ModValue::integer(std::llround(number));
    }
    const auto* const tensor = value.as<ModTensor>();
    if (tensor != nullptr && tensor->count() == 1 && !evaluator.inProgram()) {
        return To == DType::F64    ? ModValue::real(evaluator.real(value, "the value"))
               : To == DType::Bool ? ModValue::boolean(evaluator.truth(value))
                                   : ModValue::integer(static_cast<std::int64_t>(evaluator.real(value, "the value")));
    }
    if (value.isSymbol()) {
        evaluator.note(
            "a conversion by int(), float() or bool() of a value that is known only for each element is taken as "
            ".long(), .float() or .bool()");
    } else if (To == DType::Bool) {
        return ModValue::boolean(evaluator.truth(value));
    }
    return evaluator.cast(To, value);
}

ModValue roundNumber(ModEvaluator& evaluator, ModCall& call) {
    const ModValue value = call.required(0, "number");
    const auto digits = call.optional(1, "ndigits");
    call.finish();
    if (!value.isNumber()) {
        return evaluator.unary(ProgramOp::Round, value);
    }
    if (!digits || digits->isNone()) {
        return evaluator.cast(DType::I64, ModValue::real(std::nearbyint(value.number())));
    }
    const double scale = std::pow(10.0, static_cast<double>(evaluator.integer(*digits, "the number of digits")));
    return ModValue::real(std::nearbyint(value.number() * scale) / scale);
}

ModValue zip(ModEvaluator& evaluator, ModCall& call) {
    static_cast<void>(call.keyword("strict"));
    std::vector<std::vector<ModValue>> columns;
    std::size_t rows = 0;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
        columns.push_back(evaluator.iterate(call.required(i, "")));
        rows = i == 0 ? columns[0].size() : std::min(rows, columns[i].size());
    }
    call.finish();
    std::vector<ModValue> made;
    for (std::size_t row = 0; row < rows; ++row) {
        evaluator.step();
        std::vector<ModValue> items;
        items.reserve(columns.size());
        for (const std::vector<ModValue>& column : columns) {
            items.push_back(column[row]);
        }
        made.emplace_back(evaluator.heap().tuple(std::move(items)));
    }
    return evaluator.heap().list(std::move(made));
}

ModValue enumerate(ModEvaluator& evaluator, ModCall& call) {
    const std::vector<ModValue> items = evaluator.iterate(call.required(0, "iterable"));
    const auto start = call.optional(1, "start");
    call.finish();
    std::int64_t at = start ? evaluator.integer(*start, "the start of enumerate()") : 0;
    at = std::clamp<std::int64_t>(at, -kMaxModConstants, kMaxModConstants);
    std::vector<ModValue> made;
    for (const ModValue item : items) {
        evaluator.step();
        made.emplace_back(evaluator.heap().tuple({ModValue::integer(at++), item}));
    }
    return evaluator.heap().list(std::move(made));
}

ModValue mapOrFilter(ModEvaluator& evaluator, ModCall& call, bool filter) {
    const ModValue function = call.required(0, "function");
    std::vector<ModValue> made;
    for (const ModValue item : evaluator.iterate(call.required(1, "iterable"))) {
        evaluator.step();
        const ModValue result = evaluator.call(function, {item});
        if (!filter) {
            made.push_back(result);
        } else if (evaluator.truth(result)) {
            made.push_back(item);
        }
    }
    call.finish();
    return evaluator.heap().list(std::move(made));
}

template <ModKind Kind> ModValue sequence(ModEvaluator& evaluator, ModCall& call) {
    const auto from = call.optional(0, "iterable");
    call.finish();
    auto* const made = evaluator.heap().make<ModSequence>(Kind);
    for (const ModValue item : from ? evaluator.iterate(*from) : std::vector<ModValue>()) {
        evaluator.step();
        const bool known =
            Kind == ModKind::Set && std::any_of(made->items.begin(), made->items.end(), [&](ModValue other) {
                evaluator.step();
                return evaluator.equal(item, other);
            });
        if (!known) {
            made->items.push_back(item);
        }
    }
    evaluator.heap().charge(static_cast<std::int64_t>(made->items.size()));
    return made;
}

ModValue sorted(ModEvaluator& evaluator, ModCall& call) {
    std::vector<ModValue> items = evaluator.iterate(call.required(0, "iterable"));
    const auto key = call.keyword("key");
    const auto reverse = call.keyword("reverse");
    call.finish();
    std::vector<std::pair<ModValue, ModValue>> keyed;
    keyed.reserve(items.size());
    for (const ModValue item : items) {
        keyed.emplace_back(key && !key->isNone() ? evaluator.call(*key, {item}) : item, item);
    }
    const bool backwards = reverse && evaluator.truth(*reverse);
    std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
        evaluator.step();
        return backwards ? evaluator.less(b.first, a.first) : evaluator.less(a.first, b.first);
    });
    items.clear();
    for (const auto& [sortedBy, item] : keyed) {
        items.push_back(item);
    }
    return evaluator.heap().list(std::move(items));
}

bool isInstance(ModEvaluator& evaluator, ModValue value, ModValue type, int depth) {
    if (const auto* const types = type.as<ModSequence>(); types != nullptr && depth < 8) {
        return std::any_of(types->items.begin(), types->items.end(),
                           [&](ModValue each) { return isInstance(evaluator, value, each, depth + 1); });
    }
    if (const auto* const wanted = type.as<ModClass>()) {
        const auto* const instance = value.as<ModInstance>();
        return instance != nullptr && instance->type != nullptr && evaluator.isSubclass(*instance->type, *wanted);
    }
    if (const auto* const other = type.as<ModIgnored>()) {
        return other->what.find("Tensor") != std::string::npos && evaluator.isTensorLike(value);
    }
    const auto* const builtin = type.as<ModBuiltin>();
    const std::string_view name = builtin == nullptr ? "" : builtin->entry->name;
    const auto* const slider = value.as<ModSlider>();
    const ModValue::Kind kind = slider != nullptr ? slider->value.kind() : value.kind();
    const auto* const items = value.as<ModSequence>();
    if (name == "int") {
        return kind == ModValue::Kind::Int || kind == ModValue::Kind::Bool;
    }
    if (name == "float") {
        return kind == ModValue::Kind::Float;
    }
    if (name == "bool") {
        return kind == ModValue::Kind::Bool;
    }
    if (name == "list" || name == "tuple" || name == "set") {
        const ModKind wanted = name == "list" ? ModKind::List : name == "tuple" ? ModKind::Tuple : ModKind::Set;
        return items != nullptr && items->kind == wanted;
    }
    if (name == "str") {
        return value.as<ModString>() != nullptr;
    }
    if (name.find("Tensor") != std::string_view::npos) {
        return evaluator.isTensorLike(value);
    }
    return name == "dict" && value.as<ModDict>() != nullptr;
}

ModValue getAttribute(ModEvaluator& evaluator, ModCall& call) {
    const ModValue object = call.required(0, "object");
    const std::string name = evaluator.text(call.required(1, "name"), "an attribute's name");
    const auto otherwise = call.optional(2, "default");
    call.finish();
    if (const auto found = evaluator.findAttribute(object, name)) {
        return *found;
    }
    return otherwise ? *otherwise : evaluator.attribute(object, name);
}

ModValue makeDict(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModDict>();
    for (const auto& [name, value] : call.keywords) {
        made->entries.emplace_back(evaluator.heap().string(std::string(name)), value);
    }
    return made;
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"len", length},
    {"range", range},
    {"min", extreme<ProgramOp::Min>},
    {"max", extreme<ProgramOp::Max>},
    {"abs", [](E& e, C& c) { return e.unary(ProgramOp::Abs, c.required(0, "x")); }},
    {"int", conversion<DType::I64>},
    {"float", conversion<DType::F64>},
    {"bool", conversion<DType::Bool>},
    {"round", roundNumber},
    {"pow", [](E& e, C& c) { return e.operate(PyOperator::Pow, c.required(0, "base"), c.required(1, "exp")); }},
    {"divmod",
     [](E& e, C& c) -> ModValue {
         const ModValue a = c.required(0, "a");
         const ModValue b = c.required(1, "b");
         return e.heap().tuple({e.operate(PyOperator::FloorDiv, a, b), e.operate(PyOperator::Mod, a, b)});
     }},
    {"sum", sum},
    {"all", allOrAny<true>},
    {"any", allOrAny<false>},
    {"zip", zip},
    {"enumerate", enumerate},
    {"map", [](E& e, C& c) { return mapOrFilter(e, c, false); }},
    {"filter", [](E& e, C& c) { return mapOrFilter(e, c, true); }},
    {"list", sequence<ModKind::List>},
    {"tuple", sequence<ModKind::Tuple>},
    {"set", sequence<ModKind::Set>},
    {"frozenset", sequence<ModKind::Set>},
    {"dict", makeDict},
    {"sorted", sorted},
    {"reversed",
     [](E& e, C& c) -> ModValue {
         std::vector<ModValue> items = e.iterate(c.required(0, "sequence"));
         std::reverse(items.begin(), items.end());
         return e.heap().list(std::move(items));
     }},
    {"isinstance",
     [](E& e, C& c) { return ModValue::boolean(isInstance(e, c.required(0, "object"), c.required(1, "type"), 0)); }},
    {"callable", [](E& e, C& c) { return ModValue::boolean(e.isCallable(c.required(0, "object"))); }},
    {"hasattr",
     [](E& e, C& c) {
         const ModValue object = c.required(0, "object");
         return ModValue::boolean(e.findAttribute(object, e.text(c.required(1, "name"), "an attribute's name")).has_value());
     }},
    {"getattr", getAttribute},
    {"setattr",
     [](E& e, C& c) -> ModValue {
         auto* const instance = c.required(0, "object").as<ModInstance>();
         if (instance == nullptr) {
             E::fail("setattr() changes objects of the text's classes");
         }
         instance->attributes[e.text(c.required(1, "name"), "an attribute's name")] = c.required(2, "value");
         c.finish();
         return {};
     }},
    {"str", [](E& e, C& c) -> ModValue { return e.heap().string(c.arguments.empty() ? "" : modText(c.required(0, "object"))); }},
    {"repr", [](E& e, C& c) -> ModValue { return e.heap().string(modText(c.required(0, "object"))); }},
    {"print",
     [](E& e, C&) -> ModValue {
         e.note("print() is ignored");
         return {};
     }},
    {"type", [](E& e, C&) { return e.heap().ignored("a type"); }},
    {"super", [](E& e, C&) { return e.parents(); }},
    {"object", [](E& e, C&) { return e.heap().ignored("object"); }},
    {"slice",
     [](E& e, C& c) -> ModValue {
         auto* const made = e.heap().make<ModSlice>();
         made->start = c.arguments.size() > 1 ? c.required(0, "start") : ModValue();
         made->stop = c.required(c.arguments.size() > 1 ? 1 : 0, "stop");
         made->step = c.optional(2, "step").value_or(ModValue());
         return made;
     }},
});

} // namespace

std::span<const ModBuiltinEntry> pythonBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
