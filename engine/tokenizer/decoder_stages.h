// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Inside of the decoder: one stage for each step of the pipeline. A stage gets tokens in fragments of whole code points
// and hands on what is certain; it keeps a reference to the next stage and to what it was made from.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/tokenizer/decoder_byte_stages.h"
#include "engine/tokenizer/text_split.h"
#include "engine/tokenizer/token_decoder.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

class TextStage final : public TokenSink {
public:
    explicit TextStage(std::string& out) : out_(out) {}
    void push(std::string_view fragment, bool) override { out_ += fragment; }
    void finish() override {}

private:
    std::string& out_;
};

class FuseStage final : public Stage {
public:
    using Stage::Stage;
    void push(std::string_view fragment, bool) override { next().push(fragment, false); }
    void finish() override {
        next().push("", true);
        next().finish();
    }
};

class JoinWithSpaceStage final : public Stage {
public:
    using Stage::Stage;
    void push(std::string_view fragment, bool last) override {
        if (betweenTokens_ && !first_) {
            next().push(" ", false);
        }
        first_ = false;
        betweenTokens_ = last;
        next().push(fragment, false);
    }
    void finish() override {
        next().push("", true);
        next().finish();
    }

private:
    bool first_ = true;
    bool betweenTokens_ = true;
};

class WordSuffixStage final : public Stage {
public:
    WordSuffixStage(TokenSink& next, std::string_view suffix) : Stage(next), suffix_(suffix) {}

    void push(std::string_view fragment, bool last) override {
        token_ += fragment;
        if (last) {
            release(" ");
            held_ = std::move(token_);
            token_.clear();
        }
    }
    void finish() override {
        release("");
        next().finish();
    }

private:
    void release(std::string_view replacement) {
        if (!held_) {
            return;
        }
        std::string out;
        for (const Stretch& stretch : findLiteral(*held_, suffix_)) {
            out += stretch.isMatch ? replacement
                                   : std::string_view(*held_).substr(stretch.begin, stretch.end - stretch.begin);
        }
        held_.reset();
        next().push(out, true);
    }

    std::string_view suffix_;
    std::string token_;
    std::optional<std::string> held_;
};

class MetaspaceStage final : public Stage {
public:
    MetaspaceStage(TokenSink& next, std::string_view replacement, bool dropsFirst)
        : Stage(next), replacement_(replacement), drops_(dropsFirst) {}

    void push(std::string_view fragment, bool last) override {
        std::string out;
        for (const Stretch& stretch : findLiteral(fragment, replacement_)) {
            if (!stretch.isMatch) {
                out += fragment.substr(stretch.begin, stretch.end - stretch.begin);
            } else if (!drops_) {
                out += ' ';
            }
        }
        drops_ = drops_ && !last;
        next().push(out, last);
    }
    void finish() override { next().finish(); }

private:
    std::string_view replacement_;
    bool drops_;
};

class ReplaceStage final : public Stage {
public:
    /// `fed` counts the bytes that went into the whole pipeline.
    ReplaceStage(TokenSink& next, const TextPattern& pattern, std::string_view content, const std::size_t& fed)
        : Stage(next), pattern_(pattern), content_(content), fed_(fed) {}

    void push(std::string_view fragment, bool last) override {
        token_ += fragment;
        if (last) {
            replaceAndPush(token_, true);
            token_.clear();
        } else if (pattern_.literal()) {
            // The end of a long token may be the beginning of the literal; a regular expression must see it whole.
            const std::string& literal = *pattern_.literal();
            const std::size_t lastMatch = endOfLastMatch(literal);
            const std::size_t keep = std::min(token_.size() - lastMatch, openEnd(literal));
            const std::string ready = token_.substr(0, token_.size() - keep);
            token_.erase(0, ready.size());
            replaceAndPush(ready, false);
        }
    }
    void finish() override { next().finish(); }

private:
    // The limit keeps a chain of steps that each double the text from taking all memory.
    void replaceAndPush(std::string_view text, bool last) {
        const std::size_t most = growthLimit(fed_);
        const std::string out = pattern_.replace(text, content_, most - std::min(most, made_));
        made_ += out.size();
        next().push(out, last);
    }
    std::size_t endOfLastMatch(const std::string& literal) const {
        std::size_t end = 0;
        for (std::size_t at = token_.find(literal); at != std::string::npos; at = token_.find(literal, end)) {
            end = at + literal.size();
        }
        return end;
    }
    std::size_t openEnd(const std::string& literal) const {
        for (std::size_t size = std::min(token_.size(), literal.size() - 1); size > 0; --size) {
            if (token_.compare(token_.size() - size, size, literal, 0, size) == 0) {
                return size;
            }
        }
        return 0;
    }

    const TextPattern& pattern_;
    std::string_view content_;
    const std::size_t& fed_;
    std::size_t made_ = 0;
    std::string token_;
};

class StripStage final : public Stage {
public:
    StripStage(TokenSink& next, char32_t content, std::size_t start, std::size_t stop)
        : Stage(next), content_(content), start_(start), stop_(stop), startLeft_(start) {}

    void push(std::string_view fragment, bool last) override {
        std::string out;
        for (std::size_t at = 0; at < fragment.size();) {
            const char32_t code = nextCodePoint(fragment, at);
            if (code == content_ && startLeft_ > 0) {
                --startLeft_;
                continue;
            }
            startLeft_ = 0;
            if (code == content_ && held_ < stop_) {
                ++held_;
                continue;
            }
            for (; code != content_ && held_ > 0; --held_) {
                appendUtf8(out, content_);
            }
            appendUtf8(out, code);
        }
        if (last) {
            startLeft_ = start_;
            held_ = 0;
        }
        next().push(out, last);
    }
    void finish() override { next().finish(); }

private:
    char32_t content_;
    std::size_t start_;
    std::size_t stop_;
    std::size_t startLeft_;
    std::size_t held_ = 0; ///< trailing characters that are cut if the token ends here
};

} // namespace vitrine::engine
