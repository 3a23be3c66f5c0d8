// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of lists, dicts, loops, cyclers and joiners, the tests ("is ...") and the global functions.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/chat/jinja/text_operations.h"

namespace vitrine::engine::jinja {

namespace {

struct ContainerEntry {
    std::string_view name;
    BuiltinFunction call;
};

template <std::size_t Count> BuiltinFunction entryNamed(const ContainerEntry (&table)[Count], std::string_view name) {
    const auto* found = std::ranges::find_if(table, [&](const ContainerEntry& entry) { return entry.name == name; });
    return found == std::end(table) ? nullptr : found->call;
}

enum class DictPart : std::uint8_t { Keys, Values, Items };
template <DictPart Part> Value dictView(TemplateRun& run, Call& call) {
    std::vector<Value> out;
    for (const auto& [key, value] : call.self.dict().entries) {
        run.step();
        out.push_back(Part == DictPart::Keys     ? key
                      : Part == DictPart::Values ? value
                                                 : run.heap().list({key, value}, Kind::Tuple));
    }
    return run.heap().list(std::move(out), Kind::View);
}

Value dictGet(TemplateRun& run, Call& call) {
    const Value key = run.need(call, 0, "key");
    const Value standard = call.optional(1, "default").value_or(Value::none());
    run.step(call.self.dict().entries.size() / 8);
    const Value* found = call.self.dict().find(key);
    return found != nullptr ? *found : standard;
}

Value dictCopy(TemplateRun& run, Call& call) {
    const Value out = run.heap().dict();
    run.heap().charge(call.self.dict().entries.size() * sizeof(Value) * 2);
    out.dict().entries = call.self.dict().entries;
    return out;
}

Value listCopy(TemplateRun& run, Call& call) {
    return run.heap().list(call.self.sequence().items);
}

Value listCount(TemplateRun& run, Call& call) {
    const Value wanted = run.need(call, 0, "value");
    const std::vector<Value>& items = call.self.sequence().items;
    run.step(items.size() / 8);
    return Value::integer(std::ranges::count_if(items, [&](const Value& each) { return equals(each, wanted); }));
}

Value listIndex(TemplateRun& run, Call& call) {
    const Value wanted = run.need(call, 0, "value");
    const std::vector<Value>& items = call.self.sequence().items;
    run.step(items.size() / 8);
    const auto found = std::ranges::find_if(items, [&](const Value& each) { return equals(each, wanted); });
    if (found == items.end()) {
        run.fail("the value is not in the list");
    }
    return Value::integer(found - items.begin());
}

Value refuseChange(TemplateRun& run, Call& /*call*/) {
    run.fail("a template must not change lists and dicts; make a new one, or use a namespace");
}

Value loopCycle(TemplateRun& run, Call& call) {
    call.taken = call.items.size();
    if (call.items.empty()) {
        run.fail("cycle needs values");
    }
    return call.items[call.self.loop().index % call.items.size()];
}

Value loopChanged(TemplateRun& /*run*/, Call& call) {
    call.taken = call.items.size();
    LoopState& loop = call.self.loop();
    const bool same = loop.everChanged && std::ranges::equal(loop.lastChanged, call.items, equals);
    loop.lastChanged = call.items;
    loop.everChanged = true;
    return Value::boolean(!same);
}

constexpr ContainerEntry kDictMethods[] = {
    {"items", dictView<DictPart::Items>},
    {"keys", dictView<DictPart::Keys>},
    {"values", dictView<DictPart::Values>},
    {"get", dictGet},
    {"copy", dictCopy},
    {"clear", refuseChange},
    {"pop", refuseChange},
    {"popitem", refuseChange},
    {"setdefault", refuseChange},
    {"update", refuseChange},
};
constexpr ContainerEntry kListMethods[] = {
    {"copy", listCopy},       {"count", listCount},      {"index", listIndex},     {"append", refuseChange},
    {"clear", refuseChange},  {"extend", refuseChange},  {"insert", refuseChange}, {"pop", refuseChange},
    {"remove", refuseChange}, {"reverse", refuseChange}, {"sort", refuseChange},
};
constexpr ContainerEntry kTupleMethods[] = {{"count", listCount}, {"index", listIndex}};
constexpr ContainerEntry kLoopMethods[] = {{"cycle", loopCycle}, {"changed", loopChanged}};

Value floatIsInteger(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(std::floor(call.self.number()) == call.self.number());
}
constexpr ContainerEntry kFloatMethods[] = {{"is_integer", floatIsInteger}};

// Cyclers and joiners keep their state in the function that they are.
Value cyclerNext(TemplateRun& /*run*/, Call& call) {
    std::vector<Value>& items = call.self.callable().state.sequence().items;
    const Value out = items.front();
    std::ranges::rotate(items, items.begin() + 1);
    return out;
}
constexpr ContainerEntry kFunctionMethods[] = {{"next", cyclerNext}};

Value range(TemplateRun& run, Call& call) {
    constexpr std::int64_t kMostNumbers = 100'000; // of Jinja's sandbox
    const std::int64_t first = run.needInteger(run.need(call, 0, "start"));
    const std::optional<Value> second = call.optional(1, "stop");
    const std::int64_t start = second ? first : 0;
    const std::int64_t stop = second ? run.needInteger(*second) : first;
    const std::int64_t step = run.needInteger(call.optional(2, "step").value_or(Value::integer(1)));
    if (step == 0) {
        run.fail("the step of range cannot be 0");
    }
    std::vector<Value> items;
    for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (static_cast<std::int64_t>(items.size()) >= kMostNumbers) {
            run.fail(fmt::format("range gives more than {} numbers", kMostNumbers));
        }
        items.push_back(Value::integer(i));
        if (__builtin_add_overflow(i, step, &i)) {
            break;
        }
    }
    run.step(items.size() / 8);
    return run.heap().list(std::move(items));
}

/// dict(...) and namespace(...): a dict or pairs, then names.
Value entriesOf(TemplateRun& run, Call& call, Kind kind) {
    const Value out = kind == Kind::Dict ? run.heap().dict() : Value(kind, run.heap().make<Dict>());
    if (const std::optional<Value> given = call.optional(0, "entries"); given && given->is(Kind::Dict)) {
        out.dict().entries = given->dict().entries;
    } else if (given) {
        for (const Value& pair : run.iterate(*given)) {
            const std::vector<Value> two = run.iterate(pair);
            if (two.size() != 2) {
                run.fail("dict needs pairs of a key and a value");
            }
            run.step(out.dict().entries.size() / 8 + 1);
            out.dict().set(two[0], two[1]);
        }
    }
    for (const auto& [name, value] : call.keywords) {
        if (kind == Kind::Namespace && name.starts_with('_')) {
            run.fail("names that begin with an underscore cannot be set");
        }
        out.dict().set(run.heap().string(name), value);
    }
    call.keywords.clear();
    return out;
}

Value makeDict(TemplateRun& run, Call& call) {
    return entriesOf(run, call, Kind::Dict);
}
Value makeNamespace(TemplateRun& run, Call& call) {
    return entriesOf(run, call, Kind::Namespace);
}

Value raiseException(TemplateRun& run, Call& call) {
    throw TemplateRefusal(printed(run.need(call, 0, "message")).bytes());
}

Value strftimeNow(TemplateRun& run, Call& call) {
    const Value format = run.need(call, 0, "format");
    std::array<char, 256> buffer{};
    const std::string& text = run.needText(format).bytes();
    const std::size_t size = std::strftime(buffer.data(), buffer.size(), text.c_str(), &run.now());
    if (size == 0 && !text.empty()) {
        run.fail("strftime_now: the format gives nothing or too much");
    }
    return run.heap().string(std::string(buffer.data(), size));
}

Value joinerCall(TemplateRun& run, Call& call) {
    // self is the text; the first call gives nothing.
    std::vector<Value>& state = call.self.sequence().items;
    const Value out = state.size() > 1 ? state[0] : run.heap().string("");
    state.resize(2, Value::none());
    return out;
}

Value makeJoiner(TemplateRun& run, Call& call) {
    const Value separator = call.optional(0, "sep").value_or(run.heap().string(", "));
    return run.builtin("joiner", joinerCall, run.heap().list({separator}));
}

Value cyclerCall(TemplateRun& run, Call& /*call*/) {
    run.fail("a cycler is no function; call its next()");
}

Value makeCycler(TemplateRun& run, Call& call) {
    if (call.items.empty()) {
        run.fail("cycler needs values");
    }
    call.taken = call.items.size();
    const Value out = run.builtin("cycler", cyclerCall, Value());
    out.callable().state = run.heap().list(call.items);
    return out;
}

} // namespace

BuiltinFunction containerMethod(Kind kind, std::string_view name) {
    switch (kind) {
    case Kind::Dict:
        return entryNamed(kDictMethods, name);
    case Kind::List:
        return entryNamed(kListMethods, name);
    case Kind::Tuple:
        return entryNamed(kTupleMethods, name);
    case Kind::Loop:
        return entryNamed(kLoopMethods, name);
    case Kind::Float:
        return entryNamed(kFloatMethods, name);
    case Kind::Callable:
        return entryNamed(kFunctionMethods, name);
    default:
        return nullptr;
    }
}

void addGlobals(TemplateRun& run, Scope& scope) {
    constexpr ContainerEntry kGlobals[] = {
        {"range", range},
        {"dict", makeDict},
        {"namespace", makeNamespace},
        {"raise_exception", raiseException},
        {"strftime_now", strftimeNow},
        {"joiner", makeJoiner},
        {"cycler", makeCycler},
    };
    for (const ContainerEntry& entry : kGlobals) {
        scope.set(entry.name, run.builtin(std::string(entry.name), entry.call, Value()));
    }
}

} // namespace vitrine::engine::jinja
