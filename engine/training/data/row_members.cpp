// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/row_members.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace vitrine::engine {

bool isAmong(std::span<const std::string_view> keys, std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
}

void badRow(const std::string& where, std::string_view what) {
    throw base::BadInput(fmt::format("{}: {}", where, what));
}

const RowJson* memberOf(const RowJson& object, std::string_view key) {
    const auto found = object.find(std::string(key));
    return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool saysNothing(const RowJson& value) {
    return value.is_null() || ((value.is_array() || value.is_object()) && value.empty()) ||
           (value.is_string() && value.get_ref<const std::string&>().empty());
}

const std::string& stringOf(const RowJson& value, const std::string& where) {
    if (!value.is_string()) {
        badRow(where, fmt::format("must be text, not {}", value.type_name()));
    }
    return value.get_ref<const std::string&>();
}

const RowJson& listOf(const RowJson& value, const std::string& where) {
    if (!value.is_array()) {
        badRow(where, fmt::format("must be a list, not {}", value.type_name()));
    }
    return value;
}

} // namespace vitrine::engine
