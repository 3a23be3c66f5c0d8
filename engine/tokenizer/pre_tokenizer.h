// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The "pre_tokenizer" of tokenizer.json: how text is cut into the pieces within which the model merges.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/tokenizer/normalizer.h"

namespace vitrine::engine {

enum class PrependScheme { First, Always, Never };

/// "prepend_scheme" and the older "add_prefix_space" of a Metaspace pre-tokenizer or decoder.
PrependScheme readPrependScheme(const JsonField& field);
/// "replacement" of a Metaspace pre-tokenizer or decoder: exactly one code point.
std::string readMetaspaceReplacement(const JsonField& field);

/// Immutable; safe to use from several threads.
class PreTokenizer {
public:
    /// `field` absent or null: texts stay whole. Throws BadInput or Unsupported.
    static PreTokenizer read(const std::optional<JsonField>& field);

    /// Splits the text; empty pieces are left out.
    std::vector<TextPiece> apply(TextPiece text) const;

private:
    struct Split {
        TextPattern pattern;
        SplitBehavior behavior;
        bool invert;
    };
    struct ByteLevel {
        bool addPrefixSpace;
        bool useRegex;
    };
    struct Metaspace {
        std::string replacement;
        PrependScheme scheme;
        bool split;
    };
    struct Words {}; // Whitespace: runs of word characters, runs of other visible characters
    struct WhiteSpaceSplit {};
    struct Digits {
        bool individual;
    };
    struct Punctuation {
        SplitBehavior behavior;
    };
    using Step = std::variant<Split, ByteLevel, Metaspace, Words, WhiteSpaceSplit, Digits, Punctuation>;

    void readInto(const JsonField& field);
    static void applyStep(const Split& step, TextPiece& piece, std::vector<TextPiece>& out);
    static void applyStep(const ByteLevel& step, TextPiece& piece, std::vector<TextPiece>& out);
    static void applyStep(const Metaspace& step, TextPiece& piece, std::vector<TextPiece>& out);
    static void applyStep(const Words& step, TextPiece& piece, std::vector<TextPiece>& out);
    static void applyStep(const WhiteSpaceSplit& step, TextPiece& piece, std::vector<TextPiece>& out);
    static void applyStep(const Digits& step, TextPiece& piece, std::vector<TextPiece>& out);
    static void applyStep(const Punctuation& step, TextPiece& piece, std::vector<TextPiece>& out);

    std::vector<Step> steps_;
    std::string where_;
};

} // namespace vitrine::engine
