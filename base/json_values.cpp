// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/json_values.h"

#include <nlohmann/json.hpp>

namespace vitrine::base {

using Json = nlohmann::json;

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

std::optional<std::uint64_t> bytesAt(const Json& object, const char* key) {
    const auto value = numberAt(object, key);
    return value && *value >= 0 && *value < 9e18 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

std::string textIn(std::string_view text, const char* key) {
    return textAt(parsedObject(text), key);
}

} // namespace vitrine::base
