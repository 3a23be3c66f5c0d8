// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/sequence_filters.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/text_operations.h"

namespace vitrine::engine::jinja {

namespace {

struct SequenceEntry {
    std::string_view name;
    BuiltinFunction call;
};

/// The value at "a.b.0" of an item.
Value memberOf(TemplateRun& run, Value value, const Value& path) {
    if (path.isWhole()) {
        return run.item(value, path);
    }
    const std::string& text = run.needText(path).bytes();
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find('.', at), text.size());
        const std::string part = text.substr(at, end - at);
        const bool number =
            !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
        value = run.item(value, number ? Value::integer(std::stoll(part)) : run.heap().string(part));
        at = end + 1;
    }
    return value;
}

/// What sort, min, max, unique and groupby compare: a member of the item, texts in lower case.
Value keyOf(TemplateRun& run, const Value& item, const std::optional<Value>& path, bool caseSensitive) {
    const Value value = path && !path->is(Kind::None) ? memberOf(run, item, *path) : item;
    return caseSensitive || !value.is(Kind::String) ? value
                                                    : run.heap().string(withCase(value.text(), CaseChange::Lower));
}

bool flagOf(Call& call, std::size_t index, std::string_view name) {
    return isTrue(call.optional(index, name).value_or(Value::boolean(false)));
}

template <class Less> void sortItems(std::vector<Value>& items, std::vector<Value>& keys, Less less, bool reverse) {
    std::vector<std::size_t> order(items.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return reverse ? less(keys[b], keys[a]) : less(keys[a], keys[b]); });
    std::vector<Value> sortedItems;
    std::vector<Value> sortedKeys;
    for (const std::size_t i : order) {
        sortedItems.push_back(items[i]);
        sortedKeys.push_back(keys[i]);
    }
    items = std::move(sortedItems);
    keys = std::move(sortedKeys);
}

Value filterSort(TemplateRun& run, Call& call) {
    const bool reverse = flagOf(call, 0, "reverse");
    const bool caseSensitive = flagOf(call, 1, "case_sensitive");
    const std::optional<Value> path = call.optional(2, "attribute");
    std::vector<Value> items = run.iterate(call.self);
    std::vector<Value> keys;
    for (const Value& item : items) {
        if (path && path->is(Kind::String) && path->bytes().find(',') != std::string::npos) {
            std::vector<Value> parts;
            for (const auto& [begin, end] : splitRanges(path->bytes(), &run.heap().string(",").bytes(), -1, false)) {
                parts.push_back(
                    keyOf(run, item, run.heap().string(path->bytes().substr(begin, end - begin)), caseSensitive));
            }
            keys.push_back(run.heap().list(std::move(parts)));
        } else {
            keys.push_back(keyOf(run, item, path, caseSensitive));
        }
    }
    sortItems(items, keys, [&](const Value& a, const Value& b) { return run.compare(a, b) < 0; }, reverse);
    return run.heap().list(std::move(items));
}

Value filterDictSort(TemplateRun& run, Call& call) {
    const bool caseSensitive = flagOf(call, 0, "case_sensitive");
    const std::string by = printed(call.optional(1, "by").value_or(run.heap().string("key"))).bytes();
    const bool reverse = flagOf(call, 2, "reverse");
    if (!call.self.is(Kind::Dict)) {
        run.fail("dictsort needs a dict");
    }
    std::vector<Value> items;
    std::vector<Value> keys;
    for (const auto& [key, value] : call.self.dict().entries) {
        items.push_back(run.heap().list({key, value}, Kind::Tuple));
        keys.push_back(keyOf(run, by == "value" ? value : key, std::nullopt, caseSensitive));
    }
    sortItems(items, keys, [&](const Value& a, const Value& b) { return run.compare(a, b) < 0; }, reverse);
    return run.heap().list(std::move(items));
}

template <bool Least> Value filterExtreme(TemplateRun& run, Call& call) {
    const bool caseSensitive = flagOf(call, 0, "case_sensitive");
    const std::optional<Value> path = call.optional(1, "attribute");
    std::optional<Value> best;
    Value bestKey;
    for (const Value& item : run.iterate(call.self)) {
        const Value key = keyOf(run, item, path, caseSensitive);
        const int order = best ? run.compare(key, bestKey) : 0;
        if (!best || (Least ? order < 0 : order > 0)) {
            best = item;
            bestKey = key;
        }
    }
    return best ? *best : run.heap().undefined("the smallest or largest of nothing");
}

Value filterUnique(TemplateRun& run, Call& call) {
    const bool caseSensitive = flagOf(call, 0, "case_sensitive");
    const std::optional<Value> path = call.optional(1, "attribute");
    std::vector<Value> seen;
    std::vector<Value> out;
    for (const Value& item : run.iterate(call.self)) {
        const Value key = keyOf(run, item, path, caseSensitive);
        run.step(seen.size() / 8);
        if (std::ranges::none_of(seen, [&](const Value& each) { return equals(each, key); })) {
            seen.push_back(key);
            out.push_back(item);
        }
    }
    return run.heap().list(std::move(out), Kind::Iterator);
}

Value filterGroupBy(TemplateRun& run, Call& call) {
    const Value path = run.need(call, 0, "attribute");
    const std::optional<Value> standard = call.optional(1, "default");
    const bool caseSensitive = flagOf(call, 2, "case_sensitive");
    std::vector<Value> items = run.iterate(call.self);
    std::vector<Value> keys;
    std::vector<Value> members;
    for (Value& item : items) {
        Value member = memberOf(run, item, path);
        member = member.is(Kind::Undefined) && standard ? *standard : member;
        keys.push_back(keyOf(run, member, std::nullopt, caseSensitive));
        members.push_back(run.heap().list({item, member}));
    }
    sortItems(members, keys, [&](const Value& a, const Value& b) { return run.compare(a, b) < 0; }, false);
    std::vector<Value> groups;
    for (std::size_t i = 0; i < members.size();) {
        const Value grouper = members[i].sequence().items[1];
        std::vector<Value> group;
        std::size_t end = i;
        while (end < members.size() && equals(keys[end], keys[i])) {
            group.push_back(members[end++].sequence().items[0]);
        }
        groups.push_back(run.heap().list({grouper, run.heap().list(std::move(group))}, Kind::Tuple));
        i = end;
    }
    return run.heap().list(std::move(groups));
}

Value filterMap(TemplateRun& run, Call& call) {
    std::vector<Value> out;
    const std::optional<Value> path = call.keyword("attribute");
    const std::optional<Value> standard = path ? call.keyword("default") : std::nullopt;
    const Value name = path ? Value() : run.need(call, 0, "name");
    for (const Value& item : run.iterate(call.self)) {
        run.step();
        if (path) {
            const Value member = memberOf(run, item, *path);
            out.push_back(member.is(Kind::Undefined) && standard ? *standard : member);
            continue;
        }
        Call made;
        made.self = item;
        made.items.assign(call.items.begin() + 1, call.items.end());
        made.keywords = call.keywords;
        out.push_back(run.filter(run.needText(name).bytes(), made));
    }
    call.taken = call.items.size();
    call.keywords.clear();
    return run.heap().list(std::move(out), Kind::Iterator);
}

/// select, reject, selectattr and rejectattr.
template <bool Keep, bool OfMember> Value filterSelect(TemplateRun& run, Call& call) {
    constexpr std::size_t kName = OfMember ? 1 : 0;
    const Value path = OfMember ? run.need(call, 0, "attribute") : Value();
    std::vector<Value> out;
    for (const Value& item : run.iterate(call.self)) {
        run.step();
        const Value value = OfMember ? memberOf(run, item, path) : item;
        bool holds = false;
        if (call.items.size() > kName) {
            Call made;
            made.self = value;
            made.items.assign(call.items.begin() + kName + 1, call.items.end());
            made.keywords = call.keywords;
            holds = run.test(run.needText(call.items[kName]).bytes(), made);
        } else {
            holds = isTrue(value);
        }
        if (holds == Keep) {
            out.push_back(item);
        }
    }
    call.taken = call.items.size();
    call.keywords.clear();
    return run.heap().list(std::move(out), Kind::Iterator);
}

Value filterJoin(TemplateRun& run, Call& call) {
    const Text separator = printed(call.optional(0, "d").value_or(run.heap().string("")));
    const std::optional<Value> path = call.optional(1, "attribute");
    Text out;
    bool first = true;
    for (const Value& item : run.iterate(call.self)) {
        run.step();
        if (!std::exchange(first, false)) {
            out.append(separator);
        }
        out.append(printed(path && !path->is(Kind::None) ? memberOf(run, item, *path) : item));
    }
    return run.heap().string(std::move(out));
}

template <bool First> Value filterEnd(TemplateRun& run, Call& call) {
    if (call.self.is(Kind::Iterator)) {
        if (!First) {
            run.fail("last needs a list, not what a filter gives one by one; put |list before it");
        }
        std::vector<Value>& items = call.self.sequence().items;
        if (call.self.sequence().read || items.empty()) {
            return run.heap().undefined("the first of nothing");
        }
        const Value out = items.front();
        items.erase(items.begin());
        return out;
    }
    const std::vector<Value> items = run.iterate(call.self);
    return items.empty() ? run.heap().undefined("the first or last of nothing") : First ? items.front() : items.back();
}

Value filterItems(TemplateRun& run, Call& call) {
    if (call.self.is(Kind::Undefined)) {
        return run.heap().list({}, Kind::Iterator);
    }
    if (!call.self.is(Kind::Dict)) {
        run.fail("items needs a dict");
    }
    std::vector<Value> out;
    for (const auto& [key, value] : call.self.dict().entries) {
        out.push_back(run.heap().list({key, value}, Kind::Tuple));
    }
    return run.heap().list(std::move(out), Kind::Iterator);
}

Value filterList(TemplateRun& run, Call& call) {
    return run.heap().list(run.iterate(call.self));
}

Value filterReverse(TemplateRun& run, Call& call) {
    std::vector<Value> items = run.iterate(call.self);
    std::ranges::reverse(items);
    if (!call.self.is(Kind::String)) {
        return run.heap().list(std::move(items), Kind::Iterator);
    }
    Text out;
    for (const Value& item : items) {
        out.append(item.text());
    }
    return run.heap().string(std::move(out));
}

Value filterSum(TemplateRun& run, Call& call) {
    const std::optional<Value> path = call.optional(0, "attribute");
    Value out = call.optional(1, "start").value_or(Value::integer(0));
    for (const Value& item : run.iterate(call.self)) {
        out = run.arithmetic("+", out, path && !path->is(Kind::None) ? memberOf(run, item, *path) : item);
    }
    return out;
}

Value filterBatch(TemplateRun& run, Call& call) {
    const std::int64_t size = run.needInteger(run.need(call, 0, "linecount"));
    const std::optional<Value> fill = call.optional(1, "fill_with");
    constexpr std::int64_t kLargest = 100'000;
    if (size < 1 || size > kLargest) {
        run.fail("batch: the size is too small or too large");
    }
    std::vector<Value> out;
    std::vector<Value> part;
    const auto finish = [&] { out.push_back(run.heap().list(std::exchange(part, {}))); };
    for (const Value& item : run.iterate(call.self)) {
        part.push_back(item);
        if (static_cast<std::int64_t>(part.size()) == size) {
            finish();
        }
    }
    if (!part.empty()) {
        part.resize(fill && !fill->is(Kind::None) ? static_cast<std::size_t>(size) : part.size(),
                    fill.value_or(Value::none()));
        finish();
    }
    return run.heap().list(std::move(out), Kind::Iterator);
}

constexpr SequenceEntry kSequenceFilters[] = {
    {"batch", filterBatch},
    {"dictsort", filterDictSort},
    {"first", filterEnd<true>},
    {"groupby", filterGroupBy},
    {"items", filterItems},
    {"join", filterJoin},
    {"last", filterEnd<false>},
    {"list", filterList},
    {"map", filterMap},
    {"max", filterExtreme<false>},
    {"min", filterExtreme<true>},
    {"reject", filterSelect<false, false>},
    {"rejectattr", filterSelect<false, true>},
    {"reverse", filterReverse},
    {"select", filterSelect<true, false>},
    {"selectattr", filterSelect<true, true>},
    {"sort", filterSort},
    {"sum", filterSum},
    {"unique", filterUnique},
};

} // namespace

BuiltinFunction sequenceFilter(std::string_view name) {
    const auto* found =
        std::ranges::find_if(kSequenceFilters, [&](const SequenceEntry& entry) { return entry.name == name; });
    return found == std::end(kSequenceFilters) ? nullptr : found->call;
}

} // namespace vitrine::engine::jinja
