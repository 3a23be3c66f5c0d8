// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A value inside a JSON file together with its place, so that every complaint names the file and the field.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace vitrine::engine {

/// A view: the JSON value and the file name must outlive it. Checks throw BadInput "FILE: FIELD: what".
class JsonField {
public:
    JsonField(const nlohmann::json& value, const std::string& file, std::string path = {})
        : value_(&value), file_(&file), path_(std::move(path)) {}

    const nlohmann::json& value() const { return *value_; }
    const std::string& path() const { return path_; }
    const std::string& file() const { return *file_; }
    /// "FILE: FIELD", for messages that are made later.
    std::string where() const;

    /// A member that may be absent or null.
    std::optional<JsonField> find(std::string_view key) const;
    /// A member that must be there and not null.
    JsonField at(std::string_view key) const;

    std::size_t arraySize() const;
    JsonField element(std::size_t index) const;

    const std::string& asString() const;
    bool asBool() const;
    std::int64_t asInteger(std::int64_t least, std::int64_t greatest) const;

    /// Members with a default for "absent or null".
    bool flag(std::string_view key, bool fallback) const;
    std::string text(std::string_view key, std::string_view fallback) const;

    [[noreturn]] void bad(std::string_view what) const;
    [[noreturn]] void unsupported(std::string_view what) const;

private:
    const nlohmann::json* value_;
    const std::string* file_;
    std::string path_;
};

/// Text of a file for a message: control characters escaped, cut to 40 bytes.
std::string quotedForMessage(std::string_view text);

} // namespace vitrine::engine
