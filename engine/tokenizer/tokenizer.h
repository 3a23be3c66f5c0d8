// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Text to token ids and back, as Hugging Face's tokenizer.json describes it: byte-level BPE (GPT-2, Llama 3, Qwen,
// gpt-oss), SentencePiece-style BPE (Llama 2, Mistral, Gemma) and SentencePiece's Unigram. Not used, as in
// transformers: the members "truncation" and "padding".

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// Immutable after loading; any number of threads may use one object.
class Tokenizer {
public:
    /// Reads a GGUF file, or tokenizer.json and what a tokenizer_config.json beside it changes about it, if there.
    /// Throws BadInput "FILE: FIELD: what" for a broken file, Unsupported for a kind that cannot be run exactly.
    static std::shared_ptr<const Tokenizer> load(const std::string& path);
    /// The same from text in memory; `name` stands for the file in messages.
    static std::shared_ptr<const Tokenizer> fromJsonText(std::string_view text, const std::string& name);

    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete; // shared by pointer
    Tokenizer& operator=(const Tokenizer&) = delete;

    /// The ids of `text`. Added tokens written in the text become their ids. `addSpecialTokens` puts what the
    /// post-processor asks for (a BOS, for example) around it. Invalid UTF-8 is read as U+FFFD.
    std::vector<std::int32_t> encode(std::string_view text, bool addSpecialTokens) const;

    /// The ids of a prompt that a program and its user wrote together. `written` has a number for each byte, not 0
    /// where the byte is the user's: no special token is read there. Empty: all is the program's. Nothing is put around
    /// the text. REQUIRES valid UTF-8.
    std::vector<std::int32_t> encodePrompt(std::string_view text, std::span<const std::uint8_t> written) const;

    /// Ids that no token has are left out. No clean-up of spaces. Linear in the text.
    std::string decode(std::span<const std::int32_t> ids, bool skipSpecialTokens = false) const;

    /// One more than the largest id; a model's vocab_size may be larger.
    std::int32_t vocabSize() const;
    std::optional<std::int32_t> idOf(std::string_view piece) const;
    /// The piece as it stands in the vocabulary ("Ġworld", "▁the"); empty for an id that no token has.
    std::string_view pieceOf(std::int32_t id) const;
    /// The bytes that a token stands for, perhaps a part of a character only. Empty for an id that no token has.
    std::string bytesOf(std::int32_t id) const;
    bool isKnown(std::int32_t id) const;
    /// An added token with the flag "special".
    bool isSpecial(std::int32_t id) const;

private:
    friend class StreamDecoder;
    struct Parts;
    explicit Tokenizer(std::unique_ptr<const Parts> parts);
    std::string_view decodedPiece(std::int32_t id) const;

    std::unique_ptr<const Parts> parts_;
};

/// Text of a growing list of ids. All that push() and finish() returned, joined, equals decode() of the whole list;
/// every returned text is whole code points. One thread at a time.
class StreamDecoder {
public:
    explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skipSpecialTokens = false);
    ~StreamDecoder();
    StreamDecoder(StreamDecoder&&) noexcept;
    StreamDecoder& operator=(StreamDecoder&&) noexcept;
    StreamDecoder(const StreamDecoder&) = delete; // the state of a stream has one owner
    StreamDecoder& operator=(const StreamDecoder&) = delete;

    /// The text that is certain once this token is known; empty while a code point is not complete.
    std::string push(std::int32_t id);
    /// What was held back; the decoder is ready for a new list after it.
    std::string finish();

private:
    struct Run;
    std::shared_ptr<const Tokenizer> tokenizer_;
    std::unique_ptr<Run> run_;
    bool skipSpecialTokens_;
};

} // namespace vitrine::engine
