// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/json_value.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace vitrine::engine {

using Json = nlohmann::ordered_json;

namespace {

jinja::Value numberOf(const Json& json) {
    const bool fits =
        json.is_number_unsigned() ? json.get<std::uint64_t>() <= std::uint64_t{INT64_MAX} : json.is_number_integer();
    return fits ? jinja::Value::integer(json.get<std::int64_t>()) : jinja::Value::real(json.get<double>());
}

} // namespace

jinja::Value templateValue(jinja::Heap& heap, const Json& json, jinja::Origin origin) {
    if (json.is_object()) {
        const jinja::Value out = heap.dict();
        heap.charge(json.size() * sizeof(std::pair<jinja::Value, jinja::Value>));
        for (const auto& [key, member] : json.items()) {
            // A JSON object has each key once, so nothing has to be looked for.
            out.dict().entries.emplace_back(heap.string(jinja::Text(key, origin)), templateValue(heap, member, origin));
        }
        return out;
    }
    if (json.is_array()) {
        std::vector<jinja::Value> items;
        items.reserve(json.size());
        for (const Json& item : json) {
            items.push_back(templateValue(heap, item, origin));
        }
        return heap.list(std::move(items));
    }
    if (json.is_string()) {
        return heap.string(jinja::Text(json.get<std::string>(), origin));
    }
    if (json.is_boolean()) {
        return jinja::Value::boolean(json.get<bool>());
    }
    return json.is_number() ? numberOf(json) : jinja::Value::none();
}

} // namespace vitrine::engine
