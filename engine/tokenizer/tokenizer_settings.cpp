// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/tokenizer_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/unused_keys.h"
#include "engine/tokenizer/added_tokens.h"
#include "engine/tokenizer/token_model.h"

namespace vitrine::engine {

namespace {

constexpr auto kNamedTokens = std::to_array<const char*>(
    {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"});

/// A token by its text: a string, or an object with the text and its flags.
std::optional<std::string> textOfToken(const std::optional<JsonField>& field) {
    if (!field) {
        return std::nullopt;
    }
    if (field->value().is_object()) {
        return field->at("content").asString();
    }
    return field->value().is_string() ? std::optional(field->asString()) : std::nullopt;
}

class SettingsReader {
public:
    SettingsReader(const JsonField& config, const JsonField& tokenizer, const TokenModel& model, AddedTokens& added)
        : config_(config), tokenizer_(tokenizer), model_(model), added_(added) {}

    TokenizerSettings read() {
        if (const auto table = config_.find("added_tokens_decoder")) {
            added_.readDecoderTable(*table, model_);
        }
        for (const char* key : kNamedTokens) {
            addNamed(config_.find(key));
        }
        for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
            addList(config_.find(key));
        }
        TokenizerSettings out;
        out.splitsSpecialTokens = config_.flag("split_special_tokens", false);
        noteWhatIsNotFollowed();
        warnOfUnusedKeys(config_.file(), std::move(notes_));
        return out;
    }

private:
    void addNamed(const std::optional<JsonField>& field) {
        const auto text = textOfToken(field);
        if (!text || text->empty() || added_.byContent(*text) != nullptr) {
            return;
        }
        if (const auto id = model_.idOf(*text)) {
            added_.addSpecial(*field, *id, model_);
        } else {
            notes_.push_back(field->path() + " (" + quotedForMessage(*text) + " is no token of tokenizer.json)");
        }
    }

    void addList(const std::optional<JsonField>& field) {
        if (!field) {
            return;
        }
        if (field->value().is_object()) { // names and tokens
            for (const auto& [name, token] : field->value().items()) {
                addNamed(JsonField(token, field->file(), field->path() + "." + name));
            }
            return;
        }
        for (std::size_t i = 0; i < field->arraySize(); ++i) {
            addNamed(field->element(i));
        }
    }

    /// Whether an object anywhere in tokenizer.json's part has the type, and passes.
    template <class Passes> static bool anyPart(const nlohmann::json& part, std::string_view type, Passes passes) {
        if (part.is_object() && part.contains("type") && part["type"] == type && passes(part)) {
            return true;
        }
        if (!part.is_structured()) {
            return false;
        }
        return std::any_of(part.begin(), part.end(),
                           [&](const nlohmann::json& member) { return anyPart(member, type, passes); });
    }
    bool has(const char* key, std::string_view type, bool (*passes)(const nlohmann::json&)) const {
        const auto part = tokenizer_.find(key);
        return part && anyPart(part->value(), type, passes);
    }

    /// transformers rebuilds some tokenizers from these, or cleans texts with them; here tokenizer.json counts.
    void noteWhatIsNotFollowed() {
        const auto always = [](const nlohmann::json&) { return true; };
        const bool prefixed =
            has("normalizer", "Prepend", always) ||
            has("pre_tokenizer", "ByteLevel", [](const auto& part) { return part.value("add_prefix_space", false); }) ||
            has("pre_tokenizer", "Metaspace",
                [](const auto& part) { return part.value("prepend_scheme", "always") != "never"; });
        if (const auto wanted = config_.find("add_prefix_space");
            wanted && wanted->value().is_boolean() && wanted->asBool() != prefixed) {
            notes_.emplace_back("add_prefix_space (tokenizer.json says otherwise)");
        }
        if (on("do_lower_case") && !has("normalizer", "Lowercase", always)) {
            notes_.emplace_back("do_lower_case (tokenizer.json keeps upper case)");
        }
        const auto type = tokenizer_.at("model").find("type");
        if (on("clean_up_tokenization_spaces") && type && type->value() == "Unigram") {
            notes_.emplace_back("clean_up_tokenization_spaces (of decoded texts)");
        }
        if (on("fix_mistral_regex")) {
            notes_.emplace_back("fix_mistral_regex");
        }
    }
    bool on(const char* key) const {
        const auto value = config_.find(key);
        return value && value->value() == true;
    }

    const JsonField& config_;
    const JsonField& tokenizer_;
    const TokenModel& model_;
    AddedTokens& added_;
    std::vector<std::string> notes_;
};

} // namespace

TokenizerSettings readTokenizerSettings(const JsonField& config, const JsonField& tokenizer, const TokenModel& model,
                                        AddedTokens& added) {
    return SettingsReader(config, tokenizer, model, added).read();
}

} // namespace vitrine::engine
