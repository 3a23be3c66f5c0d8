// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Single values out of JSON that this program wrote earlier, such as the texts that a session keeps of a run. What is
// missing, of another type or damaged is nothing. Pure functions.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace vitrine::base {

/// The object of a text; an empty one when it is no JSON object.
nlohmann::json parsedObject(std::string_view text);
/// True where the text is a JSON object.
bool holdsObject(std::string_view text);
/// The value as one line of UTF-8; what is no UTF-8 in it is replaced.
std::string compactText(const nlohmann::json& value);

// Of an object: the value of a key.
std::string textAt(const nlohmann::json& object, const char* key); ///< empty where there is none
std::optional<double> numberAt(const nlohmann::json& object, const char* key);
std::optional<std::int64_t> integerAt(const nlohmann::json& object, const char* key);
/// A number of bytes or of other things that are counted: not below 0 and below 9e18.
std::optional<std::uint64_t> bytesAt(const nlohmann::json& object, const char* key);

// The same of the object of a text.
std::string textIn(std::string_view text, const char* key);

/// Every number in a JSON text by its path, "peak_by_category.weights". A row of a list goes by its name ("name",
/// "weights", "id"), else by its index. Lists of numbers are data and left out. Empty for a text that is no JSON.
std::map<std::string, double> numbersByPath(std::string_view text);

} // namespace vitrine::base
