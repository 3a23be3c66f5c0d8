// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/tokenizer.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strict_json.h"
#include "engine/checkpoint/gguf_file.h"
#include "engine/checkpoint/unused_keys.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/normalizer.h"
#include "engine/tokenizer/post_processor.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/token_decoder.h"
#include "engine/tokenizer/token_model.h"
#include "engine/tokenizer/tokenizer_keys.h"
#include "engine/tokenizer/tokenizer_settings.h"
#include "engine/tokenizer/unicode_text.h"
#include "engine/tokenizer/written_text.h"

namespace vitrine::engine {

struct Tokenizer::Parts {
    TokenModel model;
    Normalizer normalizer;
    PreTokenizer preTokenizer;
    AddedTokens added;
    TokenDecoder decoder;
    PostProcessor postProcessor;
    TokenizerSettings settings;

    static std::unique_ptr<const Parts> read(const nlohmann::json& json, const std::string& file,
                                             const nlohmann::json* config, const std::string& configFile);
    bool isKnown(std::int64_t id) const {
        return id >= 0 && id <= INT32_MAX &&
               (!model.pieceOf(static_cast<std::int32_t>(id)).empty() ||
                added.byId(static_cast<std::int32_t>(id)) != nullptr);
    }
    /// `text` is valid UTF-8. `written` says which of its bytes are a user's; empty: none.
    std::vector<std::int32_t> encodeText(std::string_view text, std::span<const std::uint8_t> written) const;
};

std::unique_ptr<const Tokenizer::Parts> Tokenizer::Parts::read(const nlohmann::json& json, const std::string& file,
                                                               const nlohmann::json* config,
                                                               const std::string& configFile) {
    const JsonField root(json, file);
    if (const auto version = root.find("version"); version && version->asString() != "1.0") {
        version->unsupported(fmt::format("the version {} is not known", quotedForMessage(version->asString())));
    }
    auto parts = std::make_unique<Parts>(Parts{TokenModel::read(root.at("model")),
                                               Normalizer::read(root.find("normalizer")),
                                               PreTokenizer::read(root.find("pre_tokenizer")),
                                               AddedTokens{},
                                               TokenDecoder::read(root.find("decoder")),
                                               PostProcessor{},
                                               {}});
    warnOfUnusedKeys(file, unknownTokenizerKeys(root));
    if (const auto added = root.find("added_tokens")) {
        parts->added.readList(*added, parts->model);
    }
    if (config != nullptr) {
        parts->settings = readTokenizerSettings(JsonField(*config, configFile), root, parts->model, parts->added);
    }
    parts->added.finish(parts->normalizer);
    parts->postProcessor =
        PostProcessor::read(root.find("post_processor"), [&](std::int64_t id) { return parts->isKnown(id); });
    return parts;
}

std::vector<std::int32_t> Tokenizer::Parts::encodeText(std::string_view text,
                                                       std::span<const std::uint8_t> written) const {
    std::vector<std::int32_t> ids;
    TokenModel::Scratch scratch;
    const WrittenText user(text, written);
    const bool splits = settings.splitsSpecialTokens;
    const auto inRaw = [&](const AddedToken&, std::size_t begin, std::size_t end) {
        return !splits && !user.touches(begin, end);
    };
    for (const TokenStretch& raw : added.find(text, AddedTokens::Stage::Raw, inRaw)) {
        if (raw.token != nullptr) {
            ids.push_back(raw.token->id);
            continue;
        }
        WrittenText::Occurrences occurrences(user, raw.begin, raw.end);
        const auto inNormalized = [&](const AddedToken& token, std::size_t, std::size_t) {
            return !splits && !occurrences.nextIsWritten(token.content);
        };
        TextPiece piece{std::string(text.substr(raw.begin, raw.end - raw.begin)), raw.begin == 0};
        normalizer.apply(piece);
        for (const TokenStretch& s : added.find(piece.text, AddedTokens::Stage::Normalized, inNormalized)) {
            if (s.token != nullptr) {
                ids.push_back(s.token->id);
                continue;
            }
            TextPiece part{piece.text.substr(s.begin, s.end - s.begin), piece.atStart && s.begin == 0};
            for (const TextPiece& word : preTokenizer.apply(std::move(part))) {
                model.encode(word.text, scratch, ids);
            }
        }
    }
    return ids;
}

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored) && GgufFile::is(path)) {
        const nlohmann::json made = ggufTokenizerJson(GgufFile(path).header());
        return std::shared_ptr<const Tokenizer>(new Tokenizer(Parts::read(made, path, nullptr, "")));
    }
    const nlohmann::json json = base::readStrictJson(path);
    const std::filesystem::path configPath = std::filesystem::path(path).parent_path() / "tokenizer_config.json";
    if (!std::filesystem::is_regular_file(configPath, ignored)) {
        return std::shared_ptr<const Tokenizer>(new Tokenizer(Parts::read(json, path, nullptr, "")));
    }
    const nlohmann::json config = base::readStrictJson(configPath.string());
    return std::shared_ptr<const Tokenizer>(new Tokenizer(Parts::read(json, path, &config, configPath.string())));
}

std::shared_ptr<const Tokenizer> Tokenizer::fromJsonText(std::string_view text, const std::string& name) {
    const nlohmann::json json = base::parseStrictJson(text, name);
    return std::shared_ptr<const Tokenizer>(new Tokenizer(Parts::read(json, name, nullptr, "")));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool addSpecialTokens) const {
    std::vector<std::int32_t> ids;
    if (addSpecialTokens) {
        ids = parts_->postProcessor.before();
    }
    const std::vector<std::int32_t> own =
        isValidUtf8(text) ? parts_->encodeText(text, {}) : parts_->encodeText(replaceInvalidUtf8(text), {});
    ids.insert(ids.end(), own.begin(), own.end());
    if (addSpecialTokens) {
        const auto& after = parts_->postProcessor.after();
        ids.insert(ids.end(), after.begin(), after.end());
    }
    return ids;
}

std::vector<std::int32_t> Tokenizer::encodePrompt(std::string_view text, std::span<const std::uint8_t> written) const {
    return parts_->encodeText(text, written);
}

std::string_view Tokenizer::decodedPiece(std::int32_t id) const {
    const AddedToken* token = parts_->added.byId(id);
    return token != nullptr ? parts_->added.decodedContent(*token) : parts_->model.pieceOf(id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skipSpecialTokens) const {
    std::string out;
    DecoderRun run = parts_->decoder.start();
    for (const std::int32_t id : ids) {
        if (isKnown(id) && !(skipSpecialTokens && isSpecial(id))) {
            out += run.push(decodedPiece(id));
        }
    }
    return out + run.finish();
}

std::int32_t Tokenizer::vocabSize() const {
    return std::max(parts_->model.idEnd(), parts_->added.idEnd());
}

std::optional<std::int32_t> Tokenizer::idOf(std::string_view piece) const {
    const AddedToken* token = parts_->added.byContent(piece);
    return token != nullptr ? std::optional(token->id) : parts_->model.idOf(piece);
}

std::string_view Tokenizer::pieceOf(std::int32_t id) const {
    const AddedToken* token = parts_->added.byId(id);
    return token != nullptr ? std::string_view(token->content) : parts_->model.pieceOf(id);
}

std::string Tokenizer::bytesOf(std::int32_t id) const {
    constexpr std::string_view kWordStart = "\xE2\x96\x81", kByteForm = "<0x00>";
    std::string piece(decodedPiece(id));
    if (parts_->added.byId(id) != nullptr) {
        return piece;
    }
    if (piece.starts_with(kWordStart)) { // alone, its space would be taken for the beginning of a text
        return " " + piece.substr(kWordStart.size());
    }
    int byte = 0;
    const char* end = piece.data() + piece.size();
    if (piece.size() == kByteForm.size() && piece.starts_with("<0x") &&
        std::from_chars(piece.data() + 3, end, byte, 16).ptr == end - 1) {
        return std::string(1, static_cast<char>(byte));
    }
    std::string text = decode(std::span(&id, 1));
    return text.find(kReplacementUtf8) == std::string::npos ? text : alphabetToBytes(piece).value_or(text);
}

bool Tokenizer::isKnown(std::int32_t id) const {
    return parts_->isKnown(id);
}

bool Tokenizer::isSpecial(std::int32_t id) const {
    const AddedToken* token = parts_->added.byId(id);
    return token != nullptr && token->special;
}

struct StreamDecoder::Run {
    DecoderRun run;
};

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skipSpecialTokens)
    : tokenizer_(std::move(tokenizer)), run_(new Run{tokenizer_->parts_->decoder.start()}),
      skipSpecialTokens_(skipSpecialTokens) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

std::string StreamDecoder::push(std::int32_t id) {
    if (!tokenizer_->isKnown(id) || (skipSpecialTokens_ && tokenizer_->isSpecial(id))) {
        return {};
    }
    return run_->run.push(tokenizer_->decodedPiece(id));
}

std::string StreamDecoder::finish() {
    std::string rest = run_->run.finish();
    run_->run = tokenizer_->parts_->decoder.start();
    return rest;
}

} // namespace vitrine::engine
