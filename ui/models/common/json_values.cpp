// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/json_values.h"

#include <nlohmann/json.hpp>

namespace vitrine::ui {

using Json = nlohmann::json;

Json parsedObject(const std::string& text) {
    Json value = Json::parse(text, nullptr, false);
    return value.is_object() ? value : Json::object();
}

QString withSetting(const std::string& text, const char* key, const std::string& value) {
    Json object = parsedObject(text);
    object[key] = value;
    return QString::fromStdString(object.dump());
}

QString textIn(const std::string& text, const char* key) {
    return textAt(parsedObject(text), key);
}

QString firstTextIn(const std::string& text, const char* key) {
    const Json object = parsedObject(text);
    const auto found = object.find(key);
    return found != object.end() && found->is_array() && !found->empty() && found->front().is_string()
               ? QString::fromStdString(found->front().get<std::string>())
               : QString();
}

QString textAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? QString::fromStdString(found->get<std::string>()) : QString();
}

std::optional<double> numberAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<std::uint64_t> bytesAt(const Json& object, const char* key) {
    const auto value = numberAt(object, key);
    return value && *value >= 0 && *value < 9e18 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
}

} // namespace vitrine::ui
