// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Reads typed fields of one JSON object that comes from outside. Every error names the file and the field.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quoted_text.h"

namespace vitrine::engine {

using base::quotedText;

/// A view of one object: the object must outlive it. A missing key and (unless a function says otherwise) a null give
/// the default. All functions throw BadInput "FILE: FIELD: what" on a value of the wrong type or out of its range.
class ConfigReader {
public:
    /// `prefix` stands before field names in messages: "rope_parameters.". Throws BadInput when `object` is no object.
    ConfigReader(const nlohmann::json& object, std::string file, std::string prefix = "");

    /// An integer; null is an error.
    std::int64_t integer(const char* key, std::int64_t defaultValue, std::int64_t low, std::int64_t high);
    /// Missing or null: nothing.
    std::optional<std::int64_t> optionalInteger(const char* key, std::int64_t low, std::int64_t high);
    double number(const char* key, double defaultValue, double low, double high);
    std::optional<double> optionalNumber(const char* key, double low, double high);
    bool boolean(const char* key, bool defaultValue);
    std::string text(const char* key, std::string_view defaultValue);
    /// The value, or null when the key is missing or null.
    const nlohmann::json* find(const char* key);
    /// True when the key is there, even if null.
    bool present(const char* key);

    /// The key was looked at, and what it says is not done: unread() names it.
    void forget(const char* key);

    [[noreturn]] void bad(std::string_view key, std::string_view what) const;
    [[noreturn]] void unsupported(std::string_view key, std::string_view what) const;

    /// A view of an object inside this one, whose fields the messages show as PREFIX FIELD. Both remember together what
    /// was asked for.
    ConfigReader inside(const nlohmann::json& object, const std::string& field);

    const std::string& file() const { return file_; }
    std::string field(std::string_view key) const { return prefix_ + std::string(key); }
    /// The keys of this object that were asked for.
    std::set<std::string, std::less<>> asked() const;
    /// Keys of this object, and of those that were read inside it, that are there, are not null, and that nothing asked
    /// for. Their full names, with their values.
    std::vector<std::pair<std::string, const nlohmann::json*>> unread() const;

private:
    const nlohmann::json& object_;
    std::string file_;
    std::string prefix_;
    /// Full names of keys, and the objects that are read with the prefix of their keys.
    struct Asked {
        std::set<std::string, std::less<>> keys;
        std::vector<std::pair<std::string, const nlohmann::json*>> objects;
    };
    std::shared_ptr<Asked> asked_;
};

} // namespace vitrine::engine
