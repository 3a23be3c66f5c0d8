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
QString textAt(const nlohmann::json& object, const char* key);
std::optional<double> numberAt(const nlohmann::json& object, const char* key);
std::optional<std::uint64_t> bytesAt(const nlohmann::json& object, const char* key);

} // namespace vitrine::ui
