// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/added_tokens.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/regex.h"
#include "engine/tokenizer/token_model.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

// Bounds the search: a token is compared at every position of the text.
constexpr std::size_t kLongestToken = 4096;
// Tokens may lie above the vocabulary, with room for padding to a round size.
constexpr std::int64_t kUnusedIds = 1'000'000;

bool isWordCharacter(char32_t code) {
    static const Regex kWord(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}])", "added_tokens");
    std::string text;
    appendUtf8(text, code);
    return !kWord.findAll(text).empty();
}

bool standsAlone(std::string_view text, std::size_t begin, std::size_t end) {
    if (begin > 0 && isWordCharacter(codePointBefore(text, begin))) {
        return false;
    }
    return end == text.size() || !isWordCharacter(nextCodePoint(text, end));
}

std::size_t whiteSpaceBefore(std::string_view text, std::size_t end) {
    while (end > 0) {
        const char32_t code = codePointBefore(text, end);
        if (!isWhiteSpace(code)) {
            break;
        }
        std::string encoded;
        appendUtf8(encoded, code);
        end -= encoded.size();
    }
    return end;
}

std::size_t whiteSpaceAfter(std::string_view text, std::size_t begin) {
    while (begin < text.size()) {
        std::size_t next = begin;
        if (!isWhiteSpace(nextCodePoint(text, next))) {
            break;
        }
        begin = next;
    }
    return begin;
}

} // namespace

void AddedTokens::Trie::insert(std::string_view text, const AddedToken* token) {
    if (final.empty()) {
        final.push_back(nullptr);
    }
    std::uint64_t node = 0;
    for (const char c : text) {
        const std::uint64_t key = node << 8U | static_cast<unsigned char>(c);
        const std::int32_t* next = edges.get(key);
        if (next == nullptr) {
            edges.set(key, static_cast<std::int32_t>(final.size()));
            node = final.size();
            final.push_back(nullptr);
        } else {
            node = static_cast<std::uint64_t>(*next);
        }
    }
    final[node] = token;
}

const AddedToken* AddedTokens::Trie::longestAt(std::string_view text, std::size_t begin, std::size_t& end) const {
    const AddedToken* best = nullptr;
    std::uint64_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
        const std::int32_t* next = edges.get(node << 8U | static_cast<unsigned char>(text[at]));
        if (next == nullptr) {
            break;
        }
        node = static_cast<std::uint64_t>(*next);
        if (final[node] != nullptr) {
            best = final[node];
            end = at + 1;
        }
    }
    return best;
}

AddedToken AddedTokens::readFlags(const JsonField& field) {
    AddedToken token;
    token.content = field.at("content").asString();
    token.special = field.flag("special", false);
    token.singleWord = field.flag("single_word", false);
    token.lstrip = field.flag("lstrip", false);
    token.rstrip = field.flag("rstrip", false);
    token.normalized = field.flag("normalized", !token.special);
    if (token.content.size() > kLongestToken) {
        field.at("content").bad(fmt::format("is longer than {} bytes", kLongestToken));
    }
    return token;
}

void AddedTokens::readList(const JsonField& field, const TokenModel& model) {
    for (std::size_t i = 0; i < field.arraySize(); ++i) {
        const JsonField entry = field.element(i);
        AddedToken token = readFlags(entry);
        const JsonField id = entry.at("id");
        token.id = static_cast<std::int32_t>(id.asInteger(0, model.idEnd() + kUnusedIds));
        add(id, std::move(token), model);
    }
}

void AddedTokens::readDecoderTable(const JsonField& field, const TokenModel& model) {
    if (!field.value().is_object()) {
        field.bad(fmt::format("must be an object, not {}", field.value().type_name()));
    }
    for (const auto& [key, value] : field.value().items()) {
        const JsonField entry(value, field.file(), fmt::format("{}[{}]", field.path(), quotedForMessage(key)));
        AddedToken token = readFlags(entry);
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token.id);
        if (error != std::errc{} || end != key.data() + key.size() || token.id < 0 ||
            token.id > model.idEnd() + kUnusedIds) {
            entry.bad("the key must be the id of a token");
        }
        add(entry, std::move(token), model);
    }
}

void AddedTokens::addSpecial(const JsonField& field, std::int32_t id, const TokenModel& model) {
    AddedToken token;
    if (field.value().is_object()) {
        token = readFlags(field);
    } else {
        token.content = field.asString();
    }
    token.special = true;
    token.id = id;
    add(field, std::move(token), model);
}

void AddedTokens::add(const JsonField& field, AddedToken token, const TokenModel& model) {
    if (token.content.empty()) {
        return; // nothing can ever match it
    }
    const auto inModel = model.idOf(token.content);
    if (inModel && *inModel != token.id) {
        field.bad(fmt::format("the token {} has the id {}, but model.vocab gives it {}",
                              quotedForMessage(token.content), token.id, *inModel));
    }
    const std::string_view piece = model.pieceOf(token.id);
    if (!inModel && !piece.empty()) {
        field.bad(fmt::format("the id {} of the token {} belongs to {} in model.vocab", token.id,
                              quotedForMessage(token.content), quotedForMessage(piece)));
    }
    const auto sameId = tokens_.find(token.id);
    const auto sameContent = ids_.find(token.content);
    if ((sameId != tokens_.end() && sameId->second.content != token.content) ||
        (sameContent != ids_.end() && sameContent->second != token.id)) {
        field.bad(fmt::format("the token {} with the id {} contradicts an earlier token",
                              quotedForMessage(token.content), token.id));
    }
    ids_[token.content] = token.id;
    tokens_[token.id] = std::move(token);
}

void AddedTokens::finish(const Normalizer& normalizer) {
    for (const auto& [id, token] : tokens_) {
        if (!token.normalized) {
            raw_.insert(token.content, &token);
            continue;
        }
        std::string text = normalizer.applyToText(token.content);
        if (text != token.content) {
            normalizedContent_[id] = text;
        }
        if (!text.empty()) {
            normalized_.insert(text, &token);
        }
    }
}

std::vector<TokenStretch> AddedTokens::find(std::string_view text, Stage stage, const SpecialRule& special) const {
    const Trie& trie = stage == Stage::Raw ? raw_ : normalized_;
    std::vector<TokenStretch> out;
    std::size_t done = 0;
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size() && trie.edges.size() > 0;) {
        const AddedToken* token = trie.longestAt(text, at, end);
        if (token == nullptr) {
            ++at;
            continue;
        }
        std::size_t begin = at;
        at = end; // also when the token is refused: its text is not searched again
        if ((token->special && !special(*token, begin, end)) || (token->singleWord && !standsAlone(text, begin, end))) {
            continue;
        }
        if (token->lstrip) {
            begin = std::max(whiteSpaceBefore(text, begin), done);
        }
        const std::size_t stop = token->rstrip ? whiteSpaceAfter(text, end) : end;
        if (done < begin) {
            out.push_back({done, begin, nullptr});
        }
        out.push_back({begin, stop, token});
        done = stop;
    }
    if (done < text.size()) {
        out.push_back({done, text.size(), nullptr});
    }
    return out;
}

const AddedToken* AddedTokens::byId(std::int32_t id) const {
    const auto it = tokens_.find(id);
    return it == tokens_.end() ? nullptr : &it->second;
}

const AddedToken* AddedTokens::byContent(std::string_view content) const {
    const auto it = ids_.find(content);
    return it == ids_.end() ? nullptr : byId(it->second);
}

std::string_view AddedTokens::decodedContent(const AddedToken& token) const {
    const auto it = normalizedContent_.find(token.id);
    return it == normalizedContent_.end() ? std::string_view(token.content) : std::string_view(it->second);
}

std::int32_t AddedTokens::idEnd() const {
    return tokens_.empty() ? 0 : tokens_.rbegin()->first + 1;
}

} // namespace vitrine::engine
