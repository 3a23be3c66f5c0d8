// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/bpe_model.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {

namespace {

// Ids index tables, so a single huge id must not make a huge table; real vocabularies have few holes.
constexpr std::int64_t kIdSlack = 65536;
constexpr std::int64_t kIdsPerPiece = 4;

constexpr std::uint64_t pairKey(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U | static_cast<std::uint32_t>(right);
}

} // namespace

BpeModel BpeModel::read(const JsonField& field) {
    if (const auto dropout = field.find("dropout")) {
        if (!dropout->value().is_number()) {
            dropout->bad("must be a number or null");
        }
        if (dropout->value().get<double>() != 0.0) {
            dropout->unsupported("dropout other than 0 is for training and is not supported");
        }
    }
    BpeModel model;
    model.fuseUnknown_ = field.flag("fuse_unk", false);
    model.byteFallback_ = field.flag("byte_fallback", false);
    model.ignoreMerges_ = field.flag("ignore_merges", false);
    model.continuingPrefix_ = field.text("continuing_subword_prefix", "");
    model.endSuffix_ = field.text("end_of_word_suffix", "");
    model.readVocabulary(field.at("vocab"));
    model.readMerges(field.at("merges"));
    if (const auto unknown = field.find("unk_token"); unknown && !unknown->asString().empty()) {
        const auto id = model.idOf(unknown->asString());
        if (!id) {
            unknown->bad(fmt::format("{} is not in model.vocab", quotedForMessage(unknown->asString())));
        }
        model.unknown_ = *id;
    }
    model.indexSingles();
    return model;
}

void BpeModel::readVocabulary(const JsonField& vocab) {
    const nlohmann::json& object = vocab.value();
    if (!object.is_object()) {
        vocab.bad(fmt::format("must be an object, not {}", object.type_name()));
    }
    const std::int64_t limit = static_cast<std::int64_t>(object.size()) * kIdsPerPiece + kIdSlack;
    std::int64_t largest = -1;
    for (const auto& [piece, value] : object.items()) {
        const JsonField entry(value, vocab.file(), fmt::format("{}[{}]", vocab.path(), quotedForMessage(piece)));
        largest = std::max(largest, entry.asInteger(0, limit));
    }
    pieces_.resize(static_cast<std::size_t>(largest + 1));
    std::vector<bool> taken(pieces_.size(), false);
    ids_.reserve(object.size());
    for (const auto& [piece, value] : object.items()) {
        const auto id = value.get<std::size_t>();
        if (taken[id]) {
            vocab.bad(fmt::format("the id {} belongs to both {} and {}", id, quotedForMessage(pieces_[id]),
                                  quotedForMessage(piece)));
        }
        taken[id] = true;
        pieces_[id] = piece;
        ids_.emplace(pieces_[id], static_cast<std::int32_t>(id));
    }
}

void BpeModel::readMerges(const JsonField& merges) {
    const std::size_t count = merges.arraySize();
    if (count > static_cast<std::size_t>(INT32_MAX)) {
        merges.bad("has too many entries");
    }
    std::size_t rank = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const nlohmann::json& entry = merges.value()[i];
        if (entry.is_string()) {
            const std::string& line = entry.get_ref<const std::string&>();
            if (line.starts_with("#version")) {
                continue;
            }
            const std::size_t space = line.find(' ');
            if (space == std::string::npos || line.find(' ', space + 1) != std::string::npos) {
                merges.element(i).bad(fmt::format("{} is not two pieces and one space", quotedForMessage(line)));
            }
            addMerge(merges.element(i), rank, std::string_view(line).substr(0, space),
                     std::string_view(line).substr(space + 1));
        } else {
            if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string()) {
                merges.element(i).bad("must be a pair of strings or one string \"a b\"");
            }
            addMerge(merges.element(i), rank, entry[0].get_ref<const std::string&>(),
                     entry[1].get_ref<const std::string&>());
        }
        ++rank;
    }
}

void BpeModel::addMerge(const JsonField& entry, std::size_t rank, std::string_view left, std::string_view right) {
    const auto known = [&](std::string_view piece) {
        const auto id = idOf(piece);
        if (!id) {
            entry.bad(fmt::format("the piece {} is not in model.vocab", quotedForMessage(piece)));
        }
        return *id;
    };
    const std::int32_t leftId = known(left);
    const std::int32_t rightId = known(right);
    if (right.size() < continuingPrefix_.size()) {
        entry.bad(fmt::format("the piece {} is shorter than continuing_subword_prefix", quotedForMessage(right)));
    }
    const std::string merged = std::string(left) + std::string(right.substr(continuingPrefix_.size()));
    // A pair that is listed twice has the rank of its last place, as in Hugging Face's tokenizers.
    merges_.set(pairKey(leftId, rightId), {static_cast<std::int32_t>(rank), known(merged)});
}

void BpeModel::indexSingles() {
    byteIds_.assign(256, -1);
    for (int byte = 0; byte < 256; ++byte) {
        if (const auto id = idOf(fmt::format("<0x{:02X}>", byte))) {
            byteIds_[static_cast<std::size_t>(byte)] = *id;
        }
    }
    for (const auto& [piece, id] : ids_) {
        if (!piece.empty() && utf8Length(piece.front()) == piece.size()) {
            std::size_t at = 0;
            singles_.set(nextCodePoint(piece, at), id);
        }
    }
}

std::optional<std::int32_t> BpeModel::idOf(std::string_view piece) const {
    const auto it = ids_.find(piece);
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

std::string_view BpeModel::pieceOf(std::int32_t id) const {
    return id >= 0 && id < idEnd() ? std::string_view(pieces_[static_cast<std::size_t>(id)]) : std::string_view();
}

std::int32_t BpeModel::symbolId(std::string_view character, bool first, bool last) const {
    const bool prefixed = !first && !continuingPrefix_.empty();
    const bool suffixed = last && !endSuffix_.empty();
    if (!prefixed && !suffixed) {
        std::size_t at = 0;
        const std::int32_t* id = singles_.get(nextCodePoint(character, at));
        return id != nullptr ? *id : -1;
    }
    std::string text = prefixed ? continuingPrefix_ : std::string();
    text += character;
    text += suffixed ? endSuffix_ : std::string();
    return idOf(text).value_or(-1);
}

void BpeModel::appendSymbols(std::string_view piece, Scratch& scratch) const {
    const auto add = [&](std::int32_t id) {
        const auto index = static_cast<std::int32_t>(scratch.symbols_.size());
        scratch.symbols_.push_back({id, index - 1, -1, true});
        if (index > 0) {
            scratch.symbols_[static_cast<std::size_t>(index) - 1].next = index;
        }
    };
    const auto missing = [&](unsigned char byte) { return byteIds_[byte] < 0; };
    // An unknown piece waits until a known one follows; byte pieces overtake it. That is what the reference does.
    bool unknownWaits = false;
    for (std::size_t at = 0; at < piece.size();) {
        const std::string_view character = piece.substr(at, utf8Length(piece[at]));
        const bool first = at == 0;
        at += character.size();
        const bool last = at >= piece.size();
        const std::int32_t id = symbolId(character, first, last);
        if (id >= 0) {
            if (unknownWaits) {
                add(unknown_);
                unknownWaits = false;
            }
            add(id);
            continue;
        }
        if (byteFallback_) {
            std::string bytes = !first ? continuingPrefix_ : std::string();
            bytes += character;
            bytes += last ? endSuffix_ : std::string();
            if (std::none_of(bytes.begin(), bytes.end(),
                             [&](char c) { return missing(static_cast<unsigned char>(c)); })) {
                for (const char c : bytes) {
                    add(byteIds_[static_cast<unsigned char>(c)]);
                }
                continue;
            }
        }
        if (unknown_ >= 0) {
            if (unknownWaits && !fuseUnknown_) {
                add(unknown_);
            }
            unknownWaits = true;
        }
    }
    if (unknownWaits) {
        add(unknown_);
    }
}

namespace {

/// Orders a heap so that its front is the lowest rank and, among equals, the leftmost position.
constexpr auto kLater = [](const auto& a, const auto& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
};

} // namespace

void BpeModel::pushCandidate(Scratch& scratch, std::int32_t position) const {
    const Scratch::Symbol& left = scratch.symbols_[static_cast<std::size_t>(position)];
    const Scratch::Symbol& right = scratch.symbols_[static_cast<std::size_t>(left.next)];
    if (const Merge* merge = merges_.get(pairKey(left.id, right.id))) {
        scratch.heap_.push_back({merge->rank, position, merge->id});
        std::push_heap(scratch.heap_.begin(), scratch.heap_.end(), kLater);
    }
}

void BpeModel::mergeSymbols(Scratch& scratch) const {
    auto& symbols = scratch.symbols_;
    scratch.heap_.clear();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (const Merge* merge = merges_.get(pairKey(symbols[i].id, symbols[i + 1].id))) {
            scratch.heap_.push_back({merge->rank, static_cast<std::int32_t>(i), merge->id});
        }
    }
    std::make_heap(scratch.heap_.begin(), scratch.heap_.end(), kLater);
    while (!scratch.heap_.empty()) {
        std::pop_heap(scratch.heap_.begin(), scratch.heap_.end(), kLater);
        const Scratch::Candidate top = scratch.heap_.back();
        scratch.heap_.pop_back();
        Scratch::Symbol& left = symbols[static_cast<std::size_t>(top.position)];
        if (!left.alive || left.next < 0) {
            continue;
        }
        Scratch::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
        const Merge* merge = merges_.get(pairKey(left.id, right.id));
        // A stale entry counts when the pair that is there now makes the same piece: the reference compares only that.
        if (merge == nullptr || merge->id != top.merged) {
            continue;
        }
        left.id = top.merged;
        left.next = right.next;
        right.alive = false;
        if (left.next >= 0) {
            symbols[static_cast<std::size_t>(left.next)].previous = top.position;
            pushCandidate(scratch, top.position);
        }
        if (left.previous >= 0) {
            pushCandidate(scratch, left.previous);
        }
    }
}

void BpeModel::encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    if (ignoreMerges_) {
        if (const auto id = idOf(piece)) {
            ids.push_back(*id);
            return;
        }
    }
    scratch.symbols_.clear();
    appendSymbols(piece, scratch);
    mergeSymbols(scratch);
    for (const Scratch::Symbol& symbol : scratch.symbols_) {
        if (symbol.alive) {
            ids.push_back(symbol.id);
        }
    }
}

} // namespace vitrine::engine
