// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The "normalizer" of tokenizer.json: what is done to the text between added tokens before it is split.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/tokenizer/character_map.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/text_split.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

/// A stretch of text on its way to the model.
struct TextPiece {
    std::string text;
    /// The piece begins where the whole input began; Metaspace's scheme "first" asks for it.
    bool atStart = false;
};

/// Immutable; safe to use from several threads.
class Normalizer {
public:
    /// `field` absent or null: nothing is changed. Throws BadInput or Unsupported.
    static Normalizer read(const std::optional<JsonField>& field);

    void apply(TextPiece& piece) const;
    std::string applyToText(std::string_view text) const;
    bool empty() const { return steps_.empty(); }

private:
    struct Form {
        NormalizationForm form;
    };
    struct Lowercase {};
    struct StripAccents {};
    struct ByteLevel {};
    struct Strip {
        bool left;
        bool right;
    };
    struct Prepend {
        std::string text;
    };
    struct Replace {
        TextPattern pattern;
        std::string content;
    };
    struct Cleaned {}; // Nmt: control characters vanish, odd spaces become plain ones
    using Step = std::variant<Form, Lowercase, StripAccents, ByteLevel, Strip, Prepend, Replace, Cleaned, CharacterMap>;

    void readInto(const JsonField& field);
    static void applyStep(const Form& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const Lowercase& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const StripAccents& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const ByteLevel& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const Strip& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const Prepend& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const Replace& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const Cleaned& step, TextPiece& piece, std::size_t mostBytes);
    static void applyStep(const CharacterMap& step, TextPiece& piece, std::size_t mostBytes);

    std::vector<Step> steps_;
    std::string where_;
};

} // namespace vitrine::engine
