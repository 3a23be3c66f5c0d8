// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The "model" of tokenizer.json, of whatever type: what turns a word into tokens.

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/tokenizer/bpe_model.h"
#include "engine/tokenizer/json_field.h"
#include "engine/tokenizer/unigram_model.h"

namespace vitrine::engine {

/// Immutable after reading; safe to use from several threads, each with its own Scratch.
class TokenModel {
public:
    /// `field` is the member "model". Throws BadInput for anything inconsistent, Unsupported for other model types.
    static TokenModel read(const JsonField& field);

    struct Scratch {
        BpeModel::Scratch bpe;
        UnigramModel::Scratch unigram;
    };
    /// Appends the ids of one piece of valid UTF-8 of less than 2^31 bytes.
    void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const;

    std::optional<std::int32_t> idOf(std::string_view piece) const;
    /// Empty for ids that no piece has.
    std::string_view pieceOf(std::int32_t id) const;
    /// One more than the largest id.
    std::int32_t idEnd() const;

private:
    using Model = std::variant<BpeModel, UnigramModel>;
    explicit TokenModel(Model model) : model_(std::move(model)) {}

    Model model_;
};

} // namespace vitrine::engine
