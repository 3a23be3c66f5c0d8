// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of lists and dicts.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

namespace {

using E = ModEvaluator;
using C = ModCall;

ModSequence& listOf(ModCall& call) {
    auto* const list = call.required(0, "self").as<ModSequence>();
    if (list == nullptr || list->kind == ModKind::Tuple) {
        ModEvaluator::fail("this is a method of lists");
    }
    return *list;
}

ModDict& dictOf(ModCall& call) {
    auto* const dict = call.required(0, "self").as<ModDict>();
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

ModValue* entryOf(ModEvaluator& evaluator, ModDict& dict, ModValue wanted) {
    for (auto& [key, value] : dict.entries) {
        evaluator.step();
        if (evaluator.equal(key, wanted)) {
            return &value;
        }
    }
    return nullptr;
}

ModValue dictGet(ModEvaluator& evaluator, ModCall& call) {
    ModDict& dict = dictOf(call);
    const ModValue wanted = call.required(1, "key");
    const ModValue otherwise = call.optional(2, "default").value_or(ModValue());
    call.finish();
    const ModValue* const known = entryOf(evaluator, dict, wanted);
    return known != nullptr ? *known : otherwise;
}

void setEntry(ModEvaluator& evaluator, ModDict& dict, ModValue key, ModValue value) {
    if (ModValue* const known = entryOf(evaluator, dict, key)) {
        *known = value;
        return;
    }
    evaluator.heap().charge(2);
    dict.entries.emplace_back(key, value);
}

ModValue setDefault(ModEvaluator& evaluator, ModCall& call) {
    ModDict& dict = dictOf(call);
    const ModValue key = call.required(1, "key");
    const ModValue otherwise = call.optional(2, "default").value_or(ModValue());
    call.finish();
    if (const ModValue* const known = entryOf(evaluator, dict, key)) {
        return *known;
    }
    setEntry(evaluator, dict, key, otherwise);
    return otherwise;
}

ModValue update(ModEvaluator& evaluator, ModCall& call) {
    ModDict& dict = dictOf(call);
    if (const auto other = call.optional(1, "other")) {
        const auto* const from = other->as<ModDict>();
        if (from == nullptr) {
            ModEvaluator::fail(fmt::format("update() takes a dict, not {}", modTypeName(*other)));
        }
        const std::vector<std::pair<ModValue, ModValue>> entries = from->entries;
        for (const auto& [key, value] : entries) {
            setEntry(evaluator, dict, key, value);
        }
    }
    for (const auto& [name, value] : call.keywords) {
        setEntry(evaluator, dict, evaluator.heap().string(std::string(name)), value);
    }
    return {};
}

ModValue popEntry(ModEvaluator& evaluator, ModCall& call) {
    ModDict& dict = dictOf(call);
    const ModValue wanted = call.required(1, "key");
    const auto otherwise = call.optional(2, "default");
    call.finish();
    if (const ModValue* const known = entryOf(evaluator, dict, wanted)) {
        const ModValue made = *known;
        std::erase_if(dict.entries, [known](const auto& entry) { return &entry.second == known; });
        return made;
    }
    if (!otherwise) {
        ModEvaluator::fail(fmt::format("the dict has no key {}", modText(wanted)));
    }
    return *otherwise;
}

ModValue removeItem(ModEvaluator& evaluator, ModCall& call) {
    ModSequence& list = listOf(call);
    const ModValue wanted = call.required(1, "value");
    call.finish();
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        evaluator.step();
        if (evaluator.equal(list.items[i], wanted)) {
            list.items.erase(list.items.begin() + static_cast<std::ptrdiff_t>(i));
            return {};
        }
    }
    ModEvaluator::fail("the list has no such element");
}

ModValue countItems(ModEvaluator& evaluator, ModCall& call) {
    const auto* const list = call.required(0, "self").as<ModSequence>();
    const ModValue wanted = call.required(1, "value");
    call.finish();
    std::int64_t count = 0;
    for (const ModValue item : list != nullptr ? list->items : std::vector<ModValue>()) {
        evaluator.step();
        count += evaluator.equal(item, wanted) ? 1 : 0;
    }
    return ModValue::integer(count);
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"list.append", append},
    {"list.extend", extend},
    {"list.insert", insert},
    {"list.pop", pop},
    {"list.remove", removeItem},
    {"list.count", countItems},
    {"list.add", append},
    {"list.copy", [](E& e, C& c) { return findBuiltin("list")->call(e, c); }},
    {"list.reverse",
     [](E&, C& c) -> ModValue {
         ModSequence& list = listOf(c);
         std::reverse(list.items.begin(), list.items.end());
         return {};
     }},
    {"list.sort",
     [](E& e, C& c) -> ModValue {
         const ModValue made = findBuiltin("sorted")->call(e, c);
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
    {"dict.setdefault", setDefault},
    {"dict.update", update},
    {"dict.pop", popEntry},
    {"dict.copy",
     [](E& e, C& c) -> ModValue {
         auto* const made = e.heap().make<ModDict>();
         made->entries = dictOf(c).entries;
         e.heap().charge(static_cast<std::int64_t>(made->entries.size()));
         return made;
     }},
});

} // namespace

std::span<const ModBuiltinEntry> containerBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
