// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What string methods and filters share: operations on texts that keep the origin of each byte.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat/jinja/template_run.h"

namespace vitrine::engine::jinja {

enum class CaseChange : std::uint8_t { Lower, Upper, Capitalize, Title, Swap, Fold };
Text withCase(const Text& text, CaseChange change);

enum class CharacterClass : std::uint8_t { Alphanumeric, Letters, Ascii, Digits, Numbers, Lower, Upper, Spaces };
/// As Python's str.isalpha and its siblings: false for an empty text, but for Ascii.
bool consistsOf(std::string_view text, CharacterClass wanted);

/// `letters` null: white space.
Text stripped(const Text& text, const std::string* letters, bool left, bool right);
/// Byte ranges of the parts; `separator` null: runs of white space. `most` splits at most; negative: all.
std::vector<std::pair<std::size_t, std::size_t>> splitRanges(std::string_view text, const std::string* separator,
                                                             std::int64_t most, bool fromRight);
Text replaced(TemplateRun& run, const Text& text, std::string_view from, const Text& to, std::int64_t most);
/// `side`: 0 the text stands left, 1 right, 2 in the middle. `width` counts characters.
Text padded(TemplateRun& run, const Text& text, std::int64_t width, std::string_view fill, int side);

} // namespace vitrine::engine::jinja
