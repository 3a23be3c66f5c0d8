// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/chat_files.h"

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/checkpoint/gguf_header.h"
#include "engine/checkpoint/small_files.h"

namespace vitrine::engine {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view kDefaultTemplate = "default";
constexpr std::string_view kGgufTemplate = "tokenizer.chat_template";

void add(ChatFiles& files, const std::string& name, std::string text, std::string place) {
    files.templates.insert_or_assign(name, std::move(text));
    files.places.insert_or_assign(name, std::move(place));
}

/// chat_template.jinja and the folder beside it. False: there are none.
bool readTemplateFiles(const fs::path& folder, ChatFiles& files) {
    const fs::path own = folder / "chat_template.jinja";
    if (hasFile(own)) {
        add(files, std::string(kDefaultTemplate), readSmallFile(own), own.string());
    }
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder / kTemplateFolder, none)) {
        if (entry.path().extension() == ".jinja" && hasFile(entry.path())) {
            add(files, entry.path().stem().string(), readSmallFile(entry.path()), entry.path().string());
        }
    }
    return !files.templates.empty();
}

/// The member chat_template of tokenizer_config.json.
void readTemplateMember(const json& value, const std::string& path, ChatFiles& files) {
    const std::string place = path + ": chat_template";
    if (value.is_null()) {
        return;
    }
    if (value.is_string()) {
        add(files, std::string(kDefaultTemplate), value.get<std::string>(), place);
        return;
    }
    bool known = value.is_array();
    for (const json& named : known ? value : json::array()) {
        const bool good =
            named.is_object() && named.value("name", json()).is_string() && named.value("template", json()).is_string();
        known = known && good;
        if (good) {
            const auto name = named["name"].get<std::string>();
            add(files, name, named["template"].get<std::string>(), fmt::format("{}: {}", place, name));
        }
    }
    if (!known) {
        base::logWarning(place + ": not used: it is neither a text nor a list of named templates; give a template with "
                                 "chat_template");
    }
}

/// The text of a special token: a string, or an object with its content.
void addToken(const std::string& name, const json& value, ChatFiles& files) {
    const json content = value.is_object() ? value.value("content", json()) : value;
    if (content.is_string()) {
        files.specialTokens.emplace(name, content.get<std::string>());
    }
}

void addTokens(const json& config, ChatFiles& files) {
    if (!config.is_object()) {
        return;
    }
    for (const auto& [name, value] : config.items()) {
        if (name.ends_with("_token")) {
            addToken(name, value, files);
        }
    }
    for (const char* const extra : {"extra_special_tokens", "model_specific_special_tokens"}) {
        const json named = config.value(extra, json::object());
        for (const auto& [name, value] : named.items()) {
            addToken(name, value, files);
        }
    }
}

/// Special tokens that a class of transformers has where its files name none.
void addTokensOfClass(const json& config, ChatFiles& files) {
    struct ClassTokens {
        std::string_view name, bos, eos, unk, pad;
    };
    constexpr std::string_view kEnd = "<|endoftext|>";
    constexpr std::array<ClassTokens, 5> kClasses = {{{"LlamaTokenizer", "<s>", "</s>", "<unk>", ""},
                                                      {"CodeLlamaTokenizer", "<s>", "</s>", "<unk>", ""},
                                                      {"GemmaTokenizer", "<bos>", "<eos>", "<unk>", "<pad>"},
                                                      {"Qwen2Tokenizer", "", kEnd, kEnd, kEnd},
                                                      {"GPT2Tokenizer", kEnd, kEnd, kEnd, ""}}};
    const json named = config.is_object() ? config.value("tokenizer_class", json()) : json();
    std::string name = named.is_string() ? named.get<std::string>() : "";
    if (name.ends_with("Fast")) {
        name.resize(name.size() - 4);
    }
    for (const ClassTokens& each : kClasses) {
        if (each.name != name) {
            continue;
        }
        for (const auto& [token, text] : {std::pair{"bos_token", each.bos}, std::pair{"eos_token", each.eos},
                                          std::pair{"unk_token", each.unk}, std::pair{"pad_token", each.pad}}) {
            if (!text.empty() && !config.contains(token)) {
                files.specialTokens.emplace(token, std::string(text));
            }
        }
    }
}

} // namespace

ChatFiles readChatFiles(const std::string& folder) {
    ChatFiles files;
    const fs::path root(folder);
    const bool own = readTemplateFiles(root, files);
    json config;
    if (hasFile(root / "tokenizer_config.json")) {
        config = parseSmallFile(root / "tokenizer_config.json");
    }
    if (!own && config.is_object()) {
        readTemplateMember(config.value("chat_template", json()), (root / "tokenizer_config.json").string(), files);
    }
    addTokens(config, files);
    if (hasFile(root / "special_tokens_map.json")) {
        addTokens(parseSmallFile(root / "special_tokens_map.json"), files);
    }
    addTokensOfClass(config, files);
    return files;
}

ChatFiles readChatFiles(const GgufHeader& header) {
    ChatFiles files;
    const std::string key(kGgufTemplate);
    if (const auto text = header.text(key)) {
        add(files, std::string(kDefaultTemplate), std::string(*text), key);
    }
    if (header.find("tokenizer.chat_templates") != nullptr) {
        for (const std::string_view name : header.texts("tokenizer.chat_templates")) {
            const std::string named = key + "." + std::string(name);
            if (const auto text = header.text(named)) {
                add(files, std::string(name), std::string(*text), named);
            }
        }
    }
    if (header.find("tokenizer.ggml.tokens") == nullptr) {
        return files;
    }
    const std::vector<std::string_view> pieces = header.texts("tokenizer.ggml.tokens");
    for (const auto& [token, id] :
         {std::pair{"bos_token", "bos"}, std::pair{"eos_token", "eos"}, std::pair{"unk_token", "unknown"},
          std::pair{"pad_token", "padding"}, std::pair{"sep_token", "seperator"}, std::pair{"mask_token", "mask"}}) {
        const auto number = header.integer(fmt::format("tokenizer.ggml.{}_token_id", id));
        if (number && *number >= 0 && static_cast<std::size_t>(*number) < pieces.size()) {
            files.specialTokens.emplace(token, std::string(pieces[static_cast<std::size_t>(*number)]));
        }
    }
    return files;
}

} // namespace vitrine::engine
