// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of lists, tuples, dicts, loops, floats and cyclers.
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

} // namespace vitrine::engine::jinja
