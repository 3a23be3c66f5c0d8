// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// JSON from files that others wrote. Strict: valid UTF-8, one value, no duplicate keys, bounded depth, no trailing
// text.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vitrine::base {

struct JsonLimits {
    std::size_t maxBytes = std::size_t{512} << 20;
    int maxDepth = 64;
    /// Values and keys together. The limit is needed because a value takes many times the bytes of its text
    /// ("[[],[],...").
    std::size_t maxValues = std::size_t{16} << 20;
    /// The number that errors give to the first line of the text. For a text that is one line of a larger file.
    std::int64_t firstLine = 1;
};

/// Parses `text`. Throws BadInput "NAME: line L, column C: what" on any defect (the place is where
/// reading stopped); never recurses. Refused too: NUL bytes, a byte order mark, numbers beyond the range of a double.
nlohmann::json parseStrictJson(std::string_view text, const std::string& name, const JsonLimits& limits = {});

/// The same with the members of objects in the order of the text. For values that are printed for a model.
nlohmann::ordered_json parseOrderedJson(std::string_view text, const std::string& name, const JsonLimits& limits = {});

/// Takes the members of an object one after the other, in the order of the text.
using JsonMember = std::function<void(const std::string& key, nlohmann::json value)>;

/// The same for an object with very many members: only one of them is in memory at a time. The caller must notice when
/// a key of the outermost object appears twice. Exceptions of `member` are passed on.
void forStrictMembers(std::string_view text, const std::string& name, const JsonLimits& limits,
                      const JsonMember& member);

/// Reads and parses a whole regular file. Throws BadInput when it cannot be read or is larger than limits.maxBytes.
nlohmann::json readStrictJson(const std::string& path, const JsonLimits& limits = {});
nlohmann::ordered_json readOrderedJson(const std::string& path, const JsonLimits& limits = {});

/// The same of all that comes on `input`, which errors call `name`.
nlohmann::json readStrictJson(std::istream& input, const std::string& name, const JsonLimits& limits = {});

} // namespace vitrine::base
