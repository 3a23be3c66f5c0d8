// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/token_decoder.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/tokenizer/decoder_stages.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

std::string DecoderRun::push(std::string_view token) {
    progress_->fed += token.size();
    stages_.back()->push(token, true);
    return std::exchange(progress_->out, {});
}

std::string DecoderRun::finish() {
    stages_.back()->finish();
    return std::exchange(progress_->out, {});
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
    // Stages call each other, so their number is bounded by the stack.
    constexpr std::size_t kMostSteps = 64;
    if (steps_.size() >= kMostSteps) {
        field.bad(fmt::format("more than {} decoders in a row", kMostSteps));
    }
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
    run.progress_ = std::make_unique<DecoderRun::Progress>();
    const std::size_t& fed = run.progress_->fed;
    run.stages_.push_back(std::make_unique<TextStage>(run.progress_->out));
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
                [&](const Replace& s) -> Made {
                    return std::make_unique<ReplaceStage>(next, s.pattern, s.content, fed);
                },
                [&](const Strip& s) -> Made { return std::make_unique<StripStage>(next, s.content, s.start, s.stop); },
            },
            *it));
    }
    return run;
}

} // namespace vitrine::engine
