// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The "decoder" of tokenizer.json as a pipeline that works token by token, so that a stream of tokens and a whole list
// of them give the same text.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/text_split.h"

namespace vitrine::engine {

/// Receives tokens in fragments; `last` ends a token.
class TokenSink {
public:
    virtual ~TokenSink() = default;
    virtual void push(std::string_view fragment, bool last) = 0;
    /// No token follows.
    virtual void finish() = 0;
};

/// One run of the decoder over one list of tokens. Used by one thread.
class DecoderRun {
public:
    /// Takes the text of the next token; returns the text that is now certain (whole code points).
    std::string push(std::string_view token);
    /// Returns the text that was held back. The run must not be used afterwards.
    std::string finish();

private:
    friend class TokenDecoder;
    struct Progress {
        std::string out;
        std::size_t fed = 0; ///< bytes of all tokens so far
    };
    std::unique_ptr<Progress> progress_;
    std::vector<std::unique_ptr<TokenSink>> stages_; // each writes to the one before it; the last is fed
};

/// Immutable; safe to use from several threads. Must outlive its runs.
class TokenDecoder {
public:
    /// `field` absent or null: tokens are joined with a space, as Hugging Face's tokenizers do. Throws BadInput or
    /// Unsupported.
    static TokenDecoder read(const std::optional<JsonField>& field);

    DecoderRun start() const;

private:
    struct ByteLevel {};
    struct ByteFallback {};
    struct Fuse {};
    struct JoinWithSpace {};
    struct WordSuffix {
        std::string suffix; ///< becomes a space, at the end of the text nothing
    };
    struct Metaspace {
        std::string replacement;
        bool dropsFirst; ///< the first token loses its replacement characters
    };
    struct Replace {
        TextPattern pattern;
        std::string content;
    };
    struct Strip {
        char32_t content;
        std::size_t start;
        std::size_t stop;
    };
    using Step = std::variant<ByteLevel, ByteFallback, Fuse, JoinWithSpace, WordSuffix, Metaspace, Replace, Strip>;

    void readInto(const JsonField& field);

    std::vector<Step> steps_;
};

} // namespace vitrine::engine
