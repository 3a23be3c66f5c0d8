// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/json_values.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace vitrine::base {

using Json = nlohmann::json;

namespace {

/// The name of a row of a table in the metrics: its own name where it has one, so that rows of two runs are compared
/// even where their order differs.
std::string rowLabel(const Json& row, std::size_t index) {
    for (const char* key : {"name", "weights", "id"}) {
        if (row.is_object() && row.contains(key) && row[key].is_string()) {
            return row[key].get<std::string>();
        }
    }
    return std::to_string(index);
}

void addNumbers(const Json& value, const std::string& name, std::map<std::string, double>& out) {
    const std::string prefix = name.empty() ? name : name + ".";
    if (value.is_number()) {
        out.emplace(name, value.get<double>());
    } else if (value.is_object()) {
        for (const auto& [key, member] : value.items()) {
            addNumbers(member, prefix + key, out);
        }
    } else if (value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) {
            // Lists of numbers are data (token ids, losses), not metrics.
            if (value[i].is_object()) {
                addNumbers(value[i], prefix + rowLabel(value[i], i), out);
            }
        }
    }
}

} // namespace

Json parsedObject(std::string_view text) {
    Json value = Json::parse(text, nullptr, false);
    return value.is_object() ? value : Json::object();
}

bool holdsObject(std::string_view text) {
    return Json::parse(text, nullptr, false).is_object();
}

std::string compactText(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string textAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> numberAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<std::int64_t> integerAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const bool fits = found != object.end() && found->is_number_integer() &&
                      !(found->is_number_unsigned() && found->get<std::uint64_t>() > kMost);
    return fits ? std::optional(found->get<std::int64_t>()) : std::nullopt;
}

std::optional<std::uint64_t> bytesAt(const Json& object, const char* key) {
    const auto value = numberAt(object, key);
    return value && *value >= 0 && *value < 9e18 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::string textIn(std::string_view text, const char* key) {
    return textAt(parsedObject(text), key);
}

std::map<std::string, double> numbersByPath(std::string_view text) {
    std::map<std::string, double> result;
    addNumbers(Json::parse(text, nullptr, false), {}, result);
    return result;
}

} // namespace vitrine::base
