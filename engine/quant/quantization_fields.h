// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Typed fields of a quantization_config. It remembers which fields were asked for, so that those that nothing reads can
// be named: a key that is passed over in silence may change every number.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// A view of one object, which must outlive it. All functions throw BadInput "FILE: quantization_config.FIELD: what",
/// and Unsupported for values that are right but not known.
class QuantizationFields {
public:
    /// `path` is where the object is in the file: "quantization_config.", or empty for the file's own object.
    QuantizationFields(const nlohmann::json& object, std::string file, std::string path = "quantization_config.");
    /// The fields of an object inside this one, which must be there. Both remember together.
    QuantizationFields inside(const char* field) const;
    /// The same for one further inside; `name` is where, as messages have it.
    QuantizationFields inside(const nlohmann::json& object, const std::string& name) const;

    [[noreturn]] void bad(std::string_view field, const std::string& what) const;
    [[noreturn]] void unsupported(std::string_view field, const std::string& what) const;
    bool flag(const char* field, bool missing) const;
    std::int64_t integer(const char* field, std::int64_t missing) const;
    std::string text(const char* field, const std::string& missing) const;
    std::string lowerText(const char* field, const std::string& missing) const; ///< in small letters
    std::vector<std::string> texts(const char* field) const;                    ///< empty when missing or null
    /// Unsupported unless the field, or what it is when it is missing, is this text.
    void requireText(const char* field, const std::string& missing, std::string_view text) const;
    /// Unsupported unless the field is missing, null, false, or empty.
    void requireNothing(const char* field, const std::string& what) const;
    /// 32, 64, 128, ... or -1 for whole rows.
    std::int64_t groupSize(const char* field, std::int64_t missing) const;
    /// The one of two names of a field that is there. Throws BadInput when both are, with values that differ.
    const char* oneOf(const char* name, const char* other) const;
    const nlohmann::json* find(const char* field) const; ///< null when missing or null
    /// These fields bear on no number here: how the file was made, or which kernels other programs take.
    void harmless(std::initializer_list<const char*> fields) const;
    /// The field was looked at, and what it says is not done: unread() names it.
    void notUsed(const char* field) const;

    /// Full names of the fields, here and inside, that are there and that nothing asked for.
    std::vector<std::string> unread() const;
    const std::string& file() const { return file_; }

private:
    const nlohmann::json& object_;
    std::string file_;
    std::string path_;
    /// Full names of fields, and the objects whose fields are read one by one, with the names of these.
    struct Asked {
        std::set<std::string, std::less<>> fields;
        std::vector<std::pair<std::string, const nlohmann::json*>> objects;
    };
    std::shared_ptr<Asked> asked_;
};

} // namespace vitrine::engine
