// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/scheme_row.h"

#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

using nlohmann::json;

QuantizationFields::QuantizationFields(const json& object, std::string file, std::string path)
    : object_(object), file_(std::move(file)), path_(std::move(path)) {
    if (!object.is_object()) {
        throw base::BadInput(
            fmt::format("{}: {}: must be an object", file_, path_.substr(0, path_.empty() ? 0 : path_.size() - 1)));
    }
}

void QuantizationFields::bad(std::string_view field, const std::string& what) const {
    throw base::BadInput(fmt::format("{}: {}{}: {}", file_, path_, field, what));
}

void QuantizationFields::unsupported(std::string_view field, const std::string& what) const {
    throw base::Unsupported(fmt::format("{}: {}{}: {}", file_, path_, field, what));
}

const json* QuantizationFields::find(const char* field) const {
    const auto found = object_.find(field);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool QuantizationFields::flag(const char* field, bool missing) const {
    const json* value = find(field);
    if (value != nullptr && !value->is_boolean()) {
        bad(field, "must be true or false");
    }
    return value == nullptr ? missing : value->get<bool>();
}

std::int64_t QuantizationFields::integer(const char* field, std::int64_t missing) const {
    const json* value = find(field);
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (value != nullptr &&
        (!value->is_number_integer() || (value->is_number_unsigned() && value->get<std::uint64_t>() > kLargest))) {
        bad(field, "must be a whole number of at most 63 bits");
    }
    return value == nullptr ? missing : value->get<std::int64_t>();
}

std::string QuantizationFields::text(const char* field, const std::string& missing) const {
    const json* value = find(field);
    if (value != nullptr && !value->is_string()) {
        bad(field, "must be a text");
    }
    return value == nullptr ? missing : value->get<std::string>();
}

std::vector<std::string> QuantizationFields::texts(const char* field) const {
    const json* value = find(field);
    if (value == nullptr) {
        return {};
    }
    std::vector<std::string> out;
    if (!value->is_array()) {
        bad(field, "must be a list of texts");
    }
    for (const json& item : *value) {
        if (!item.is_string()) {
            bad(field, "must be a list of texts");
        }
        out.push_back(item.get<std::string>());
    }
    return out;
}

void QuantizationFields::requireText(const char* field, const std::string& missing, std::string_view expected) const {
    if (text(field, missing) != expected) {
        unsupported(field, fmt::format("only {} is supported", expected));
    }
}

std::int64_t QuantizationFields::groupSize(const char* field, std::int64_t missing) const {
    constexpr std::int64_t kLargest = std::int64_t{1} << 20;
    const std::int64_t size = integer(field, missing);
    if (size != kWholeRow && (size < 8 || size > kLargest || size % 8 != 0)) {
        bad(field, fmt::format("must be a multiple of 8, or -1 for whole rows, and it is {}", size));
    }
    return size;
}

void failPacking(const std::string& weight, const std::string& what) {
    throw base::Unsupported(fmt::format("{}: {}", weight, what));
}

} // namespace vitrine::engine
