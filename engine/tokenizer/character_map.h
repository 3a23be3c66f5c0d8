// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// SentencePiece's table of characters and what replaces them (the normalizer Precompiled of tokenizer.json). Its bytes:
//
//     bytes of the tree (U32), the tree: a double array of units of 32 bits, as Darts-clone writes it
//     the replacements, each ended by a zero byte; a leaf of the tree is the place of one

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

/// Immutable; safe to use from several threads.
class CharacterMap {
public:
    /// `field` is "precompiled_charsmap", the bytes in base64. Throws BadInput.
    static CharacterMap read(const JsonField& field);

    /// The text with all replacements, by grapheme and by code point as Hugging Face's tokenizers do it. Ends early
    /// with more than `mostBytes` bytes.
    std::string apply(std::string_view text, std::size_t mostBytes) const;

private:
    CharacterMap() = default;

    /// What replaces the text. The shortest beginning of it that the table has counts for all of it.
    std::optional<std::string_view> replacementOf(std::string_view text) const;
    void appendGrapheme(std::string_view grapheme, std::string& out) const;

    std::vector<std::uint32_t> units_;
    std::string replacements_;
};

} // namespace vitrine::engine
