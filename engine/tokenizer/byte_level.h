// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The byte alphabet of GPT-2: every byte is written as one printable code point.

#include <optional>
#include <string>
#include <string_view>

namespace vitrine::engine {

/// Each byte of `text` as its code point, in UTF-8.
std::string bytesToAlphabet(std::string_view text);

/// The bytes that a piece stands for; nothing when it has a code point outside the alphabet.
std::optional<std::string> alphabetToBytes(std::string_view piece);

} // namespace vitrine::engine
