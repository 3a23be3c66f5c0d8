// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Members of a row of training data, whose keys stay in the order of the file. `where` begins a message: "FILE: line 3:
// messages[0]".

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::engine {

using RowJson = nlohmann::ordered_json;

[[noreturn]] void badRow(const std::string& where, std::string_view what);

bool isAmong(std::span<const std::string_view> keys, std::string_view key);
/// A member that is there and not null; else null.
const RowJson* memberOf(const RowJson& object, std::string_view key);
/// Null, "", [] and {}: a member that says nothing.
bool saysNothing(const RowJson& value);
/// Throw BadInput where the value is something else.
const std::string& stringOf(const RowJson& value, const std::string& where);
const RowJson& listOf(const RowJson& value, const std::string& where);

} // namespace vitrine::engine
