// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Single values out of the JSON texts that a session keeps of a run. What is missing or of another type is nothing.

#include <QString>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace vitrine::ui {

/// The object of a text; an empty one when it is no JSON object.
nlohmann::json parsedObject(const std::string& text);
/// The text of a JSON object with one setting of text changed or added; what is no object counts as an empty one.
QString withSetting(const std::string& text, const char* key, const std::string& value);
/// A text in the object of a text; empty where there is none.
QString textIn(const std::string& text, const char* key);
/// The first text of an array in the object of a text; empty where there is none.
QString firstTextIn(const std::string& text, const char* key);
QString textAt(const nlohmann::json& object, const char* key);
std::optional<double> numberAt(const nlohmann::json& object, const char* key);
std::optional<std::uint64_t> bytesAt(const nlohmann::json& object, const char* key);

} // namespace vitrine::ui
