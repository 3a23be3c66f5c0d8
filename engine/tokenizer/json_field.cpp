// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/json_field.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace vitrine::engine {

std::string quotedForMessage(std::string_view text) {
    constexpr std::size_t kLongest = 40;
    std::string out = "\"";
    std::size_t end = std::min(text.size(), kLongest);
    // A cut inside a code point would make the message itself invalid UTF-8.
    while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
        --end;
    }
    for (const char c : text.substr(0, end)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F) {
            out += fmt::format("\\x{:02x}", byte);
        } else {
            out += c;
        }
    }
    out += end < text.size() ? "...\"" : "\"";
    return out;
}

std::string JsonField::where() const {
    return path_.empty() ? *file_ : *file_ + ": " + path_;
}

void JsonField::bad(std::string_view what) const {
    throw base::BadInput(fmt::format("{}: {}", where(), what));
}

void JsonField::unsupported(std::string_view what) const {
    throw base::Unsupported(fmt::format("{}: {}", where(), what));
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
    if (!value_->is_object()) {
        bad(fmt::format("must be an object, not {}", value_->type_name()));
    }
    const auto it = value_->find(key);
    if (it == value_->end() || it->is_null()) {
        return std::nullopt;
    }
    std::string path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
    return JsonField(*it, *file_, std::move(path));
}

JsonField JsonField::at(std::string_view key) const {
    if (auto field = find(key)) {
        return *field;
    }
    bad(fmt::format("the member \"{}\" is missing", key));
}

std::size_t JsonField::arraySize() const {
    if (!value_->is_array()) {
        bad(fmt::format("must be an array, not {}", value_->type_name()));
    }
    return value_->size();
}

JsonField JsonField::element(std::size_t index) const {
    return JsonField((*value_)[index], *file_, fmt::format("{}[{}]", path_, index));
}

const std::string& JsonField::asString() const {
    if (!value_->is_string()) {
        bad(fmt::format("must be a string, not {}", value_->type_name()));
    }
    return value_->get_ref<const std::string&>();
}

bool JsonField::asBool() const {
    if (!value_->is_boolean()) {
        bad(fmt::format("must be true or false, not {}", value_->type_name()));
    }
    return value_->get<bool>();
}

std::int64_t JsonField::asInteger(std::int64_t least, std::int64_t greatest) const {
    if (!value_->is_number_integer()) {
        bad(fmt::format("must be an integer, not {}", value_->is_number() ? "a fraction" : value_->type_name()));
    }
    const bool tooLarge =
        value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    const std::int64_t number = tooLarge ? INT64_MAX : value_->get<std::int64_t>();
    if (tooLarge || number < least || number > greatest) {
        bad(fmt::format("must be between {} and {}, not {}", least, greatest, value_->dump()));
    }
    return number;
}

bool JsonField::flag(std::string_view key, bool fallback) const {
    const auto field = find(key);
    return field ? field->asBool() : fallback;
}

std::string JsonField::text(std::string_view key, std::string_view fallback) const {
    const auto field = find(key);
    return field ? field->asString() : std::string(fallback);
}

} // namespace vitrine::engine
