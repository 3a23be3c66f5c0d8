// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Inside of the decoder: the stages that turn bytes into text.

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/token_decoder.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

/// A step of the pipeline that hands on to the next one, which must outlive it.
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

} // namespace vitrine::engine
