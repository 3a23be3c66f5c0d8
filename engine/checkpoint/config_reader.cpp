// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/config_reader.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace vitrine::engine {

using nlohmann::json;

namespace {

/// A short form of a wrong value for a message.
std::string shownValue(const json& value) {
    if (value.is_string()) {
        return quotedText(value.get_ref<const std::string&>());
    }
    if (value.is_object()) {
        return "an object";
    }
    return value.is_array() ? "a list" : value.dump();
}

} // namespace

ConfigReader::ConfigReader(const json& object, std::string file, std::string prefix)
    : object_(object), file_(std::move(file)), prefix_(std::move(prefix)), asked_(std::make_shared<Asked>()) {
    if (!object_.is_object()) {
        const std::string field = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1) + ": ";
        throw base::BadInput(fmt::format("{}: {}must be a JSON object, found {}", file_, field, shownValue(object_)));
    }
    asked_->objects.emplace_back(prefix_, &object_);
}

ConfigReader ConfigReader::inside(const json& object, const std::string& field) {
    ConfigReader out(object, file_, prefix_ + field + ".");
    out.asked_ = asked_;
    const std::pair<std::string, const json*> entry{out.prefix_, &object};
    if (std::ranges::find(asked_->objects, entry) == asked_->objects.end()) {
        asked_->objects.push_back(entry);
    }
    return out;
}

std::set<std::string, std::less<>> ConfigReader::asked() const {
    std::set<std::string, std::less<>> out;
    for (const std::string& key : asked_->keys) {
        if (key.starts_with(prefix_) && key.find('.', prefix_.size()) == std::string::npos) {
            out.insert(key.substr(prefix_.size()));
        }
    }
    return out;
}

std::vector<std::pair<std::string, const json*>> ConfigReader::unread() const {
    std::vector<std::pair<std::string, const json*>> out;
    for (const auto& [prefix, object] : asked_->objects) {
        for (const auto& [key, value] : object->items()) {
            if (!value.is_null() && asked_->keys.find(prefix + key) == asked_->keys.end()) {
                out.emplace_back(prefix + key, &value);
            }
        }
    }
    return out;
}

void ConfigReader::bad(std::string_view key, std::string_view what) const {
    throw base::BadInput(fmt::format("{}: {}: {}", file_, field(key), what));
}

void ConfigReader::unsupported(std::string_view key, std::string_view what) const {
    throw base::Unsupported(fmt::format("{}: {}: {}", file_, field(key), what));
}

void ConfigReader::forget(const char* key) {
    asked_->keys.erase(prefix_ + key);
}

bool ConfigReader::present(const char* key) {
    asked_->keys.insert(prefix_ + key);
    return object_.contains(key);
}

const json* ConfigReader::find(const char* key) {
    asked_->keys.insert(prefix_ + key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> ConfigReader::optionalInteger(const char* key, std::int64_t low, std::int64_t high) {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number_integer()) {
        bad(key, fmt::format("must be an integer, found {}", shownValue(*value)));
    }
    constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > kLargest;
    const std::int64_t result = huge ? std::numeric_limits<std::int64_t>::max() : value->get<std::int64_t>();
    if (result < low || result > high) {
        bad(key, fmt::format("must be from {} to {}, found {}", low, high, value->dump()));
    }
    return result;
}

std::int64_t ConfigReader::integer(const char* key, std::int64_t defaultValue, std::int64_t low, std::int64_t high) {
    const std::optional<std::int64_t> value = optionalInteger(key, low, high);
    if (!value && object_.contains(key)) {
        bad(key, "must be an integer, found null");
    }
    return value.value_or(defaultValue);
}

std::optional<double> ConfigReader::optionalNumber(const char* key, double low, double high) {
    const json* value = find(key);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number()) {
        bad(key, fmt::format("must be a number, found {}", shownValue(*value)));
    }
    const double result = value->get<double>();
    if (!std::isfinite(result) || result < low || result > high) {
        bad(key, fmt::format("must be from {} to {}, found {}", low, high, value->dump()));
    }
    return result;
}

double ConfigReader::number(const char* key, double defaultValue, double low, double high) {
    return optionalNumber(key, low, high).value_or(defaultValue);
}

bool ConfigReader::boolean(const char* key, bool defaultValue) {
    const json* value = find(key);
    if (value == nullptr) {
        return defaultValue;
    }
    if (!value->is_boolean()) {
        bad(key, fmt::format("must be true or false, found {}", shownValue(*value)));
    }
    return value->get<bool>();
}

std::string ConfigReader::text(const char* key, std::string_view defaultValue) {
    const json* value = find(key);
    if (value == nullptr) {
        return std::string(defaultValue);
    }
    if (!value->is_string()) {
        bad(key, fmt::format("must be a text, found {}", shownValue(*value)));
    }
    return value->get<std::string>();
}

} // namespace vitrine::engine
