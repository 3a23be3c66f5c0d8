// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Python's own functions, math, functools and the helpers of FlexAttention.
#include "engine/attention/mod_builtins.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <unordered_map>

#include "engine/attention/mod_evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramOp;

std::optional<ModValue> ModCall::optional(std::size_t index, std::string_view name) {
    if (index < arguments.size()) {
        taken_ = std::max(taken_, index + 1);
        return arguments[index];
    }
    return keyword(name);
}

ModValue ModCall::required(std::size_t index, std::string_view name) {
    if (const auto found = optional(index, name)) {
        return *found;
    }
    throw base::BadInput(fmt::format("the argument '{}' is missing", name));
}

std::optional<ModValue> ModCall::keyword(std::string_view name) {
    takenKeywords_.push_back(name);
    for (const auto& [given, value] : keywords) {
        if (given == name) {
            return value;
        }
    }
    return std::nullopt;
}

void ModCall::finish() const {
    static constexpr std::array<std::string_view, 9> kIgnored = {"device",        "generator",     "pin_memory",
                                                                 "memory_format", "non_blocking",  "copy",
                                                                 "layout",        "requires_grad", "flush"};
    if (taken_ < arguments.size()) {
        throw base::BadInput(fmt::format("{} arguments where at most {} are taken", arguments.size(), taken_));
    }
    for (const auto& [name, value] : keywords) {
        if (std::find(takenKeywords_.begin(), takenKeywords_.end(), name) == takenKeywords_.end() &&
            std::find(kIgnored.begin(), kIgnored.end(), name) == kIgnored.end()) {
            throw base::BadInput(
                fmt::format("the argument '{}' is not supported{}", name, suggestion(name, takenKeywords_)));
        }
    }
}

const ModBuiltinEntry* findBuiltin(std::string_view name) {
    static const std::unordered_map<std::string_view, const ModBuiltinEntry*> kTable = [] {
        std::unordered_map<std::string_view, const ModBuiltinEntry*> table;
        for (const std::span<const ModBuiltinEntry> part :
             {pythonBuiltins(), elementwiseBuiltins(), constructorBuiltins(), tensorBuiltins()}) {
            for (const ModBuiltinEntry& entry : part) {
                table.emplace(entry.name, &entry);
            }
        }
        return table;
    }();
    const auto found = kTable.find(name);
    return found == kTable.end() ? nullptr : found->second;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& known) {
    // Levenshtein's distance; a third of the name may differ.
    std::string_view best;
    std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
    for (const std::string_view other : known) {
        if (other.size() > name.size() + least || name.size() > other.size() + least || other == name ||
            name.size() > 64) {
            continue;
        }
        std::vector<std::size_t> row(other.size() + 1);
        std::iota(row.begin(), row.end(), std::size_t{0});
        for (std::size_t i = 0; i < name.size(); ++i) {
            std::size_t diagonal = row[0]++;
            for (std::size_t j = 0; j < other.size(); ++j) {
                const std::size_t change = diagonal + (name[i] == other[j] ? 0 : 1);
                diagonal = row[j + 1];
                row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
            }
        }
        if (row.back() < least) {
            least = row.back();
            best = other;
        }
    }
    return best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best);
}

std::string builtinSuggestion(std::string_view prefix, std::string_view name) {
    std::vector<std::string_view> known;
    for (const std::span<const ModBuiltinEntry> part :
         {pythonBuiltins(), elementwiseBuiltins(), constructorBuiltins(), tensorBuiltins()}) {
        for (const ModBuiltinEntry& entry : part) {
            if (entry.name.substr(0, prefix.size()) == prefix) {
                known.push_back(entry.name.substr(prefix.size()));
            }
        }
    }
    return suggestion(name, known);
}

namespace {

ModValue ignored(ModEvaluator& evaluator, const char* what) {
    auto* const made = evaluator.heap().make<ModIgnored>();
    made->what = what;
    return made;
}

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
        for (const std::vector<ModValue>& column : columns) {
            items.push_back(column[row]);
        }
        made.push_back(evaluator.heap().tuple(std::move(items)));
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
        made.push_back(evaluator.heap().tuple({ModValue::integer(at++), item}));
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
    std::vector<std::pair<double, ModValue>> keyed;
    for (const ModValue item : items) {
        keyed.emplace_back(evaluator.real(key ? evaluator.call(*key, {item}) : item, "what sorted() compares"), item);
    }
    const bool backwards = reverse && evaluator.truth(*reverse);
    std::stable_sort(keyed.begin(), keyed.end(),
                     [&](const auto& a, const auto& b) { return backwards ? a.first > b.first : a.first < b.first; });
    items.clear();
    for (const auto& [number, item] : keyed) {
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
        return instance != nullptr && instance->type == wanted;
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
    return ignored(evaluator, "a decorator");
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

ModValue accumulate(ModEvaluator& evaluator, ModCall& call) {
    std::vector<ModValue> made;
    for (const ModValue item : evaluator.iterate(call.required(0, "iterable"))) {
        made.push_back(made.empty() ? item : evaluator.operate(PyOperator::Add, made.back(), item));
    }
    const auto initial = call.keyword("initial");
    call.finish();
    if (initial) {
        for (ModValue& item : made) {
            item = evaluator.operate(PyOperator::Add, item, *initial);
        }
        made.insert(made.begin(), *initial);
    }
    return evaluator.heap().list(std::move(made));
}

ModSequence& listOf(ModCall& call) {
    auto* const list = call.required(0, "self").as<ModSequence>();
    if (list == nullptr || list->kind == ModKind::Tuple) {
        ModEvaluator::fail("this is a method of lists");
    }
    return *list;
}

const ModDict& dictOf(ModCall& call) {
    const auto* const dict = call.required(0, "self").as<ModDict>();
    if (dict == nullptr) {
        ModEvaluator::fail("this is a method of dicts");
    }
    return *dict;
}

ModValue append(ModEvaluator& evaluator, ModCall& call) {
    evaluator.heap().charge(1);
    ModSequence& list = listOf(call);
    list.items.push_back(call.required(1, "object"));
    call.finish();
    return {};
}

ModValue extend(ModEvaluator& evaluator, ModCall& call) {
    const std::vector<ModValue> more = evaluator.iterate(call.required(1, "iterable"));
    evaluator.heap().charge(static_cast<std::int64_t>(more.size()));
    ModSequence& list = listOf(call);
    list.items.insert(list.items.end(), more.begin(), more.end());
    call.finish();
    return {};
}

ModValue insert(ModEvaluator& evaluator, ModCall& call) {
    ModSequence& list = listOf(call);
    const auto extent = static_cast<std::int64_t>(list.items.size());
    std::int64_t at = evaluator.integer(call.required(1, "index"), "a list's index");
    at = std::clamp<std::int64_t>(at < 0 ? std::max<std::int64_t>(at, -extent) + extent : at, 0, extent);
    evaluator.heap().charge(1 + extent / 16);
    list.items.insert(list.items.begin() + at, call.required(2, "object"));
    call.finish();
    return {};
}

ModValue pop(ModEvaluator& evaluator, ModCall& call) {
    ModSequence& list = listOf(call);
    const auto index = call.optional(1, "index");
    call.finish();
    const auto extent = static_cast<std::int64_t>(list.items.size());
    const std::int64_t at = index ? evaluator.integer(*index, "a list's index") : -1;
    if (at < -extent || at >= extent) {
        ModEvaluator::fail(fmt::format("index {} of {} elements", at, extent));
    }
    const auto place = list.items.begin() + (at < 0 ? at + extent : at);
    const ModValue made = *place;
    list.items.erase(place);
    return made;
}

ModValue dictItems(ModEvaluator& evaluator, ModCall& call, bool keys, bool values) {
    const ModDict& dict = dictOf(call);
    call.finish();
    std::vector<ModValue> made;
    for (const auto& [key, value] : dict.entries) {
        evaluator.step();
        made.push_back(keys && values ? ModValue(evaluator.heap().tuple({key, value})) : keys ? key : value);
    }
    return evaluator.heap().list(std::move(made));
}

ModValue dictGet(ModEvaluator& evaluator, ModCall& call) {
    const ModDict& dict = dictOf(call);
    const ModValue wanted = call.required(1, "key");
    const ModValue otherwise = call.optional(2, "default").value_or(ModValue());
    call.finish();
    for (const auto& [key, value] : dict.entries) {
        evaluator.step();
        if (evaluator.equal(key, wanted)) {
            return value;
        }
    }
    return otherwise;
}

ModValue makeDict(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModDict>();
    for (const auto& [name, value] : call.keywords) {
        made->entries.emplace_back(evaluator.heap().string(std::string(name)), value);
    }
    return made;
}

using E = ModEvaluator;
using C = ModCall;

constexpr std::array kPython = std::to_array<ModBuiltinEntry>({
    {"len", length},
    {"range", range},
    {"min", extreme<ProgramOp::Min>},
    {"max", extreme<ProgramOp::Max>},
    {"abs", mathFunction<ProgramOp::Abs>},
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
    {"str", [](E& e, C& c) -> ModValue { return e.heap().string(c.arguments.empty() ? "" : modText(c.required(0, "object"))); }},
    {"repr", [](E& e, C& c) -> ModValue { return e.heap().string(modText(c.required(0, "object"))); }},
    {"print",
     [](E& e, C&) -> ModValue {
         e.note("print() is ignored");
         return {};
     }},
    {"type", [](E& e, C&) { return ignored(e, "a type"); }},
    {"super", [](E& e, C&) { return ignored(e, "super()"); }},
    {"object", [](E& e, C&) { return ignored(e, "object"); }},
    {"slice",
     [](E& e, C& c) -> ModValue {
         auto* const made = e.heap().make<ModSlice>();
         made->start = c.arguments.size() > 1 ? c.required(0, "start") : ModValue();
         made->stop = c.required(c.arguments.size() > 1 ? 1 : 0, "stop");
         made->step = c.optional(2, "step").value_or(ModValue());
         return made;
     }},
    {"cdiv",
     [](E& e, C& c) {
         const ModValue a = c.required(0, "a");
         const ModValue b = c.required(1, "b");
         return e.operate(PyOperator::FloorDiv, e.operate(PyOperator::Sub, e.operate(PyOperator::Add, a, b), ModValue::integer(1)), b);
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
    {"math.tanh", mathFunction<ProgramOp::Tanh>},
    {"math.sin", mathFunction<ProgramOp::Sin>},
    {"math.cos", mathFunction<ProgramOp::Cos>},
    {"math.erf", mathFunction<ProgramOp::Erf>},
    {"math.fabs", [](E& e, C& c) { return e.unary(ProgramOp::Abs, e.binary(ProgramOp::Mul, c.required(0, "x"), ModValue::real(1))); }},
    {"math.pow", [](E& e, C& c) { return e.binary(ProgramOp::Pow, e.binary(ProgramOp::Mul, c.required(0, "x"), ModValue::real(1)), c.required(1, "y")); }},
    {"math.prod", product},
    {"math.isqrt", [](E& e, C& c) { return ModValue::integer(static_cast<std::int64_t>(std::sqrt(static_cast<long double>(std::max<std::int64_t>(0, e.integer(c.required(0, "n"), "the number")))))); }},
    {"math.gcd", [](E& e, C& c) { return ModValue::integer(std::gcd(e.integer(c.required(0, "a"), "a number") % kMaxModConstants, e.integer(c.required(1, "b"), "a number") % kMaxModConstants)); }},
    {"functools.partial", partial},
    {"partial", partial},
    {"functools.reduce", reduce},
    {"reduce", reduce},
    {"functools.lru_cache", transparent},
    {"functools.cache", transparent},
    {"functools.wraps", [](E& e, C&) { return ignored(e, "a decorator"); }},
    {"itertools.accumulate", accumulate},
    {"operator.and_", [](E& e, C& c) { return e.operate(PyOperator::And, c.required(0, "a"), c.required(1, "b")); }},
    {"operator.or_", [](E& e, C& c) { return e.operate(PyOperator::Or, c.required(0, "a"), c.required(1, "b")); }},
    {"operator.add", [](E& e, C& c) { return e.operate(PyOperator::Add, c.required(0, "a"), c.required(1, "b")); }},
    {"operator.mul", [](E& e, C& c) { return e.operate(PyOperator::Mul, c.required(0, "a"), c.required(1, "b")); }},
    {"and_masks", combination<ProgramOp::And>},
    {"or_masks", combination<ProgramOp::Or>},
    {"create_block_mask", blockMask},
    {"create_block_mask_cached", blockMask},
    {"BlockMask.from_kv_blocks", blockMask},
    {"torch.compile", transparent},
    {"list.append", append},
    {"list.extend", extend},
    {"list.insert", insert},
    {"list.pop", pop},
    {"list.add", append},
    {"list.copy", sequence<ModKind::List>},
    {"list.reverse",
     [](E&, C& c) -> ModValue {
         ModSequence& list = listOf(c);
         std::reverse(list.items.begin(), list.items.end());
         return {};
     }},
    {"list.sort",
     [](E& e, C& c) -> ModValue {
         const ModValue made = sorted(e, c);
         listOf(c).items = made.as<ModSequence>()->items;
         return {};
     }},
    {"list.index",
     [](E& e, C& c) {
         const ModSequence& list = listOf(c);
         const ModValue wanted = c.required(1, "value");
         for (std::size_t i = 0; i < list.items.size(); ++i) {
             e.step();
             if (e.equal(list.items[i], wanted)) {
                 return ModValue::integer(static_cast<std::int64_t>(i));
             }
         }
         ModEvaluator::fail("the list has no such element");
     }},
    {"dict.items", [](E& e, C& c) { return dictItems(e, c, true, true); }},
    {"dict.keys", [](E& e, C& c) { return dictItems(e, c, true, false); }},
    {"dict.values", [](E& e, C& c) { return dictItems(e, c, false, true); }},
    {"dict.get", dictGet},
    {"str.format", [](E&, C& c) { return c.arguments[0]; }},
    {"str.lower",
     [](E& e, C& c) -> ModValue {
         std::string text = e.text(c.required(0, "self"), "the text");
         std::transform(text.begin(), text.end(), text.begin(), [](char x) { return x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x; });
         return e.heap().string(std::move(text));
     }},
    {"str.startswith",
     [](E& e, C& c) {
         const std::string text = e.text(c.required(0, "self"), "the text");
         return ModValue::boolean(text.rfind(e.text(c.required(1, "prefix"), "the prefix"), 0) == 0);
     }},
    {"str.join",
     [](E& e, C& c) -> ModValue {
         std::string text;
         for (const ModValue item : e.iterate(c.required(1, "iterable"))) {
             text += (text.empty() ? "" : e.text(c.arguments[0], "the separator")) + e.text(item, "an item");
         }
         return e.heap().string(std::move(text));
     }},
});

} // namespace

std::span<const ModBuiltinEntry> pythonBuiltins() {
    return kPython;
}

} // namespace vitrine::engine
