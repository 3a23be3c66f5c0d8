// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/unigram_model.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

constexpr double kUnknownPenalty = 10; ///< below the worst piece, as SentencePiece has it

} // namespace

UnigramModel UnigramModel::read(const JsonField& field) {
    UnigramModel model;
    model.where_ = field.where();
    model.byteFallback_ = field.flag("byte_fallback", false);
    const JsonField vocab = field.at("vocab");
    const std::size_t count = vocab.arraySize();
    if (count > static_cast<std::size_t>(INT32_MAX)) {
        vocab.bad("has too many entries");
    }
    model.pieces_.reserve(count);
    double worst = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < count; ++i) {
        const nlohmann::json& entry = vocab.value()[i];
        if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
            vocab.element(i).bad("must be a piece and its score");
        }
        const auto score = entry[1].get<double>();
        if (!std::isfinite(score)) {
            vocab.element(i).bad("the score must be a number");
        }
        worst = std::min(worst, score);
        model.pieces_.push_back(entry[0].get<std::string>());
        model.scores_.push_back(score);
    }
    model.unknownScore_ = worst - kUnknownPenalty;
    model.pieceAt_.push_back(-1);
    for (std::size_t i = 0; i < count; ++i) {
        // A piece that is there twice has its last id, as in Hugging Face's tokenizers.
        model.ids_[model.pieces_[i]] = static_cast<std::int32_t>(i);
        model.addToTrie(model.pieces_[i], static_cast<std::int32_t>(i));
    }
    if (const auto unknown = field.find("unk_id")) {
        model.unknown_ = static_cast<std::int32_t>(unknown->asInteger(0, static_cast<std::int64_t>(count) - 1));
    }
    model.byteIds_.assign(256, -1);
    for (int byte = 0; byte < 256; ++byte) {
        model.byteIds_[static_cast<std::size_t>(byte)] = model.idOf(fmt::format("<0x{:02X}>", byte)).value_or(-1);
    }
    return model;
}

void UnigramModel::addToTrie(std::string_view piece, std::int32_t id) {
    if (piece.empty()) {
        return; // nothing can ever match it
    }
    std::uint64_t node = 0;
    for (const char c : piece) {
        const std::uint64_t key = node << 8U | static_cast<unsigned char>(c);
        if (const std::int32_t* next = edges_.get(key)) {
            node = static_cast<std::uint64_t>(*next);
        } else {
            node = pieceAt_.size();
            edges_.set(key, static_cast<std::int32_t>(node));
            pieceAt_.push_back(-1);
        }
    }
    pieceAt_[node] = id;
}

std::optional<std::int32_t> UnigramModel::idOf(std::string_view piece) const {
    const auto it = ids_.find(piece);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

std::string_view UnigramModel::pieceOf(std::int32_t id) const {
    return id >= 0 && id < idEnd() ? std::string_view(pieces_[static_cast<std::size_t>(id)]) : std::string_view();
}

void UnigramModel::failUnknown() const {
    throw base::BadInput(where_ + ": unk_id is missing, and the text has a character that no piece has");
}

void UnigramModel::findWays(std::string_view text, std::vector<Scratch::Node>& ends) const {
    ends.assign(text.size() + 1, Scratch::Node{});
    const auto offer = [&](std::size_t begin, std::size_t end, double score, std::int32_t piece) {
        Scratch::Node& node = ends[end];
        if (node.begin < 0 || score > node.score) {
            node = {score, piece, static_cast<std::int32_t>(begin)};
        }
    };
    for (std::size_t begin = 0; begin < text.size();) {
        const double before = ends[begin].score;
        const std::size_t next = begin + utf8Length(text[begin]);
        bool hasCharacter = false;
        std::uint64_t node = 0;
        for (std::size_t at = begin; at < text.size(); ++at) {
            const std::int32_t* edge = edges_.get(node << 8U | static_cast<unsigned char>(text[at]));
            if (edge == nullptr) {
                break;
            }
            node = static_cast<std::uint64_t>(*edge);
            if (const std::int32_t piece = pieceAt_[node]; piece >= 0) {
                offer(begin, at + 1, scores_[static_cast<std::size_t>(piece)] + before, piece);
                hasCharacter = hasCharacter || at + 1 == next;
            }
        }
        if (!hasCharacter) {
            if (unknown_ < 0) {
                failUnknown();
            }
            offer(begin, next, unknownScore_ + before, unknown_);
        }
        begin = next;
    }
}

bool UnigramModel::appendBytes(std::string_view text, std::vector<std::int32_t>& ids) const {
    const auto idOfByte = [&](char c) { return byteIds_[static_cast<unsigned char>(c)]; };
    if (!byteFallback_ || std::ranges::any_of(text, [&](char c) { return idOfByte(c) < 0; })) {
        return false;
    }
    std::ranges::transform(text, std::back_inserter(ids), idOfByte);
    return true;
}

void UnigramModel::encode(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    findWays(text, scratch.ends_);
    scratch.cuts_.clear();
    bool unknownFollows = false;
    for (std::size_t end = text.size(); end > 0;) {
        const Scratch::Node& node = scratch.ends_[end];
        const auto begin = static_cast<std::size_t>(node.begin);
        const bool unknown = node.piece == unknown_ && unknown_ >= 0;
        if (unknown && unknownFollows) {
            scratch.cuts_.back().first = begin; // neighbours that are unknown are one
        } else {
            scratch.cuts_.emplace_back(begin, end);
        }
        unknownFollows = unknown;
        end = begin;
    }
    for (auto cut = scratch.cuts_.rbegin(); cut != scratch.cuts_.rend(); ++cut) {
        const std::string_view piece = text.substr(cut->first, cut->second - cut->first);
        if (const auto id = idOf(piece)) {
            ids.push_back(*id);
        } else if (!appendBytes(piece, ids)) {
            ids.push_back(unknown_);
        }
    }
}

} // namespace vitrine::engine
