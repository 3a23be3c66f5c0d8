// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/token_model.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace vitrine::engine {

TokenModel TokenModel::read(const JsonField& field) {
    const auto type = field.find("type");
    // Old files name no type. A list of pieces with scores is Unigram's alone.
    const bool scored = !type && field.at("vocab").value().is_array();
    const std::string name = type ? type->asString() : scored ? "Unigram" : "BPE";
    if (name == "Unigram") {
        return TokenModel(UnigramModel::read(field));
    }
    if (name != "BPE") {
        type->unsupported(fmt::format("the model {} is not supported; BPE and Unigram are", quotedForMessage(name)));
    }
    return TokenModel(BpeModel::read(field));
}

void TokenModel::encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& ids) const {
    if (const auto* bpe = std::get_if<BpeModel>(&model_)) {
        bpe->encode(piece, scratch.bpe, ids);
    } else {
        std::get<UnigramModel>(model_).encode(piece, scratch.unigram, ids);
    }
}

std::optional<std::int32_t> TokenModel::idOf(std::string_view piece) const {
    return std::visit([&](const auto& model) { return model.idOf(piece); }, model_);
}

std::string_view TokenModel::pieceOf(std::int32_t id) const {
    return std::visit([&](const auto& model) { return model.pieceOf(id); }, model_);
}

std::int32_t TokenModel::idEnd() const {
    return std::visit([](const auto& model) { return model.idEnd(); }, model_);
}

} // namespace vitrine::engine
