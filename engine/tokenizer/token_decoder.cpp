// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/token_decoder.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

class TextStage final : public TokenSink {
public:
    explicit TextStage(std::string& out) : out_(out) {}
    void push(std::string_view fragment, bool) override { out_ += fragment; }
    void finish() override {}

private:
    std::string& out_;
};

class Stage : public TokenSink {
public:
    explicit Stage(TokenSink& next) : next_(next) {}

protected:
    TokenSink& next() { return next_; }

private:
    TokenSink& next_;
};

/// Pieces of the byte alphabet to one long text; waits for the rest of a cut code point.
class ByteLevelStage final : public Stage {
public:
    using Stage::Stage;

    void push(std::string_view fragment, bool last) override {
        token_ += fragment;
        if (!last) {
            return;
        }
        const auto bytes = alphabetToBytes(token_);
        bytes_ += bytes ? *bytes : token_;
        token_.clear();
        drain(false);
    }

    void finish() override {
        drain(true);
        next().push("", true);
        next().finish();
    }

private:
    void drain(bool atEnd) {
        std::string out;
        std::size_t at = 0;
        while (at < bytes_.size()) {
            const Utf8Step step = stepUtf8(bytes_, at);
            if (step.kind == Utf8Step::Kind::Incomplete && !atEnd) {
                break;
            }
            out +=
                step.kind == Utf8Step::Kind::Whole ? std::string_view(bytes_).substr(at, step.bytes) : kReplacementUtf8;
            at += step.bytes;
        }
        bytes_.erase(0, at);
        if (!out.empty()) {
            next().push(out, false);
        }
    }

    std::string token_;
    std::string bytes_;
};

/// Runs of "<0xXX>" to text. A run with any defect is all U+FFFD, so nothing of it is certain before it ends.
class ByteFallbackStage final : public Stage {
public:
    using Stage::Stage;

    void push(std::string_view fragment, bool last) override {
        if (!passing_) {
            token_ += fragment;
            if (!last && token_.size() <= kByteTokenSize) {
                return;
            }
            if (const int byte = last ? byteOf(token_) : -1; byte >= 0) {
                run_ += static_cast<char>(byte);
                token_.clear();
                return;
            }
            endRun();
            fragment = token_;
        }
        next().push(fragment, last);
        token_.clear();
        passing_ = !last;
    }

    void finish() override {
        endRun();
        next().finish();
    }

private:
    static constexpr std::size_t kByteTokenSize = 6;

    static int byteOf(std::string_view token) {
        if (token.size() != kByteTokenSize || !token.starts_with("<0x") || token.back() != '>') {
            return -1;
        }
        int byte = -1;
        const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
        return error == std::errc{} && end == token.data() + 5 && byte >= 0 ? byte : -1;
    }

    void endRun() {
        if (isValidUtf8(run_)) {
            if (!run_.empty()) {
                next().push(run_, true);
            }
        } else {
            for (std::size_t i = 0; i < run_.size(); ++i) {
                next().push(kReplacementUtf8, true);
            }
        }
        run_.clear();
    }

    std::string token_;
    std::string run_;
    bool passing_ = false; ///< in the middle of a token that is too long to be a byte
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
    ReplaceStage(TokenSink& next, const TextPattern& pattern, std::string_view content)
        : Stage(next), pattern_(pattern), content_(content) {}

    void push(std::string_view fragment, bool last) override {
        token_ += fragment;
        if (last) {
            next().push(pattern_.replace(token_, content_), true);
            token_.clear();
        } else if (pattern_.literal()) {
            // The end of a long token may be the beginning of the literal; a regular expression must see it whole.
            const std::string& literal = *pattern_.literal();
            const std::size_t lastMatch = endOfLastMatch(literal);
            const std::size_t keep = std::min(token_.size() - lastMatch, openEnd(literal));
            const std::string ready = token_.substr(0, token_.size() - keep);
            token_.erase(0, ready.size());
            next().push(pattern_.replace(ready, content_), false);
        }
    }
    void finish() override { next().finish(); }

private:
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

} // namespace

std::string DecoderRun::push(std::string_view token) {
    stages_.back()->push(token, true);
    return std::exchange(*out_, {});
}

std::string DecoderRun::finish() {
    stages_.back()->finish();
    return std::exchange(*out_, {});
}

TokenDecoder TokenDecoder::read(const std::optional<JsonField>& field) {
    TokenDecoder decoder;
    if (field) {
        decoder.readInto(*field);
    } else {
        decoder.steps_.emplace_back(JoinWithSpace{});
    }
    return decoder;
}

void TokenDecoder::readInto(const JsonField& field) {
    constexpr std::int64_t kMostStripped = 1 << 20;
    const JsonField typeField = field.at("type");
    const std::string& type = typeField.asString();
    if (type == "Sequence") {
        const JsonField members = field.at("decoders");
        for (std::size_t i = 0; i < members.arraySize(); ++i) {
            readInto(members.element(i));
        }
    } else if (type == "ByteLevel") {
        steps_.emplace_back(ByteLevel{});
    } else if (type == "ByteFallback") {
        steps_.emplace_back(ByteFallback{});
    } else if (type == "Fuse") {
        steps_.emplace_back(Fuse{});
    } else if (type == "BPEDecoder") {
        const std::string suffix = field.text("suffix", "</w>");
        if (suffix.empty()) {
            field.bad("the suffix must not be empty");
        }
        steps_.emplace_back(WordSuffix{suffix});
    } else if (type == "Metaspace") {
        steps_.emplace_back(
            Metaspace{readMetaspaceReplacement(field), readPrependScheme(field) != PrependScheme::Never});
    } else if (type == "Replace") {
        steps_.emplace_back(Replace{TextPattern::read(field.at("pattern")), field.at("content").asString()});
    } else if (type == "Strip") {
        const JsonField content = field.at("content");
        if (countCodePoints(content.asString()) != 1) {
            content.bad("must be exactly one character");
        }
        std::size_t at = 0;
        steps_.emplace_back(Strip{nextCodePoint(content.asString(), at),
                                  static_cast<std::size_t>(field.at("start").asInteger(0, kMostStripped)),
                                  static_cast<std::size_t>(field.at("stop").asInteger(0, kMostStripped))});
    } else {
        typeField.unsupported(fmt::format("the decoder {} is not supported", quotedForMessage(type)));
    }
}

namespace {

template <typename... Handlers> struct Overloaded : Handlers... {
    using Handlers::operator()...;
};
template <typename... Handlers> Overloaded(Handlers...) -> Overloaded<Handlers...>;

} // namespace

DecoderRun TokenDecoder::start() const {
    DecoderRun run;
    run.out_ = std::make_unique<std::string>();
    run.stages_.push_back(std::make_unique<TextStage>(*run.out_));
    for (auto it = steps_.rbegin(); it != steps_.rend(); ++it) {
        TokenSink& next = *run.stages_.back();
        using Made = std::unique_ptr<TokenSink>;
        run.stages_.push_back(std::visit(
            Overloaded{
                [&](const ByteLevel&) -> Made { return std::make_unique<ByteLevelStage>(next); },
                [&](const ByteFallback&) -> Made { return std::make_unique<ByteFallbackStage>(next); },
                [&](const Fuse&) -> Made { return std::make_unique<FuseStage>(next); },
                [&](const JoinWithSpace&) -> Made { return std::make_unique<JoinWithSpaceStage>(next); },
                [&](const WordSuffix& s) -> Made { return std::make_unique<WordSuffixStage>(next, s.suffix); },
                [&](const Metaspace& s) -> Made {
                    return std::make_unique<MetaspaceStage>(next, s.replacement, s.dropsFirst);
                },
                [&](const Replace& s) -> Made { return std::make_unique<ReplaceStage>(next, s.pattern, s.content); },
                [&](const Strip& s) -> Made { return std::make_unique<StripStage>(next, s.content, s.start, s.stop); },
            },
            *it));
    }
    return run;
}

} // namespace vitrine::engine
