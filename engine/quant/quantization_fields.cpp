// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/quantization_fields.h"

#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "engine/quant/packing.h"

namespace vitrine::engine {

using nlohmann::json;

QuantizationFields::QuantizationFields(const json& object, std::string file, std::string path)
    : object_(object), file_(std::move(file)), path_(std::move(path)), asked_(std::make_shared<Asked>()) {
    if (!object.is_object()) {
        const std::string field = path_.empty() ? "" : path_.substr(0, path_.size() - 1) + ": ";
        throw base::BadInput(fmt::format("{}: {}must be an object", file_, field));
    }
    asked_->objects.emplace_back(path_, &object);
}

QuantizationFields QuantizationFields::inside(const char* field) const {
    const json* value = find(field);
    if (value == nullptr) {
        bad(field, "is missing");
    }
    return inside(*value, field);
}

QuantizationFields QuantizationFields::inside(const json& object, const std::string& name) const {
    QuantizationFields out(object, file_, path_ + name + ".");
    out.asked_ = asked_;
    asked_->objects.emplace_back(out.path_, &object);
    return out;
}

void QuantizationFields::bad(std::string_view field, const std::string& what) const {
    throw base::BadInput(fmt::format("{}: {}{}: {}", file_, path_, field, what));
}

void QuantizationFields::unsupported(std::string_view field, const std::string& what) const {
    throw base::Unsupported(fmt::format("{}: {}{}: {}", file_, path_, field, what));
}

const json* QuantizationFields::find(const char* field) const {
    asked_->fields.insert(path_ + field);
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

std::string QuantizationFields::lowerText(const char* field, const std::string& missing) const {
    std::string out = text(field, missing);
    for (char& c : out) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return out;
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

void QuantizationFields::requireNothing(const char* field, const std::string& what) const {
    const json* value = find(field);
    if (value != nullptr && *value != json(false) &&
        !((value->is_structured() || value->is_string()) && value->empty())) {
        unsupported(field, what);
    }
}

const char* QuantizationFields::oneOf(const char* name, const char* other) const {
    const json* first = find(name);
    const json* second = find(other);
    if (first != nullptr && second != nullptr) {
        const bool texts = first->is_string() && second->is_string();
        if (texts ? lowerText(name, "") != lowerText(other, "") : *first != *second) {
            bad(name, fmt::format("differs from {}, which is another name of it; take one of them away", other));
        }
    }
    return first != nullptr ? name : other;
}

void QuantizationFields::harmless(std::initializer_list<const char*> fields) const {
    for (const char* field : fields) {
        asked_->fields.insert(path_ + field);
    }
}

void QuantizationFields::notUsed(const char* field) const {
    asked_->fields.erase(path_ + field);
}

std::vector<std::string> QuantizationFields::unread() const {
    std::vector<std::string> out;
    for (const auto& [path, object] : asked_->objects) {
        for (const auto& [key, value] : object->items()) {
            if (!value.is_null() && asked_->fields.find(path + key) == asked_->fields.end()) {
                out.push_back(path + key);
            }
        }
    }
    return out;
}

std::int64_t QuantizationFields::groupSize(const char* field, std::int64_t missing) const {
    constexpr std::int64_t kLargest = std::int64_t{1} << 20;
    const std::int64_t size = integer(field, missing);
    if (size != kWholeRow && (size < 8 || size > kLargest || size % 8 != 0)) {
        bad(field, fmt::format("must be a multiple of 8, or -1 for whole rows, and it is {}", size));
    }
    return size;
}

} // namespace vitrine::engine
