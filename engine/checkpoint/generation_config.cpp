// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/config_keys.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/token_ids.h"
#include "engine/checkpoint/unused_keys.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

constexpr std::int64_t kLargestToken = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxTokens = 4096;
constexpr std::int64_t kDefaultTopK = 50; ///< of transformers, for a file that does not say it

} // namespace

std::vector<std::int32_t> parseTokenIds(ConfigReader& reader, const char* key, std::int32_t defaultValue) {
    std::vector<std::int32_t> ids;
    const auto add = [&](std::int64_t id) {
        // -1 is how some files say "none".
        if (id >= 0) {
            ids.push_back(static_cast<std::int32_t>(id));
        }
    };
    const json* value = reader.find(key);
    if (value == nullptr) {
        add(reader.present(key) ? -1 : defaultValue);
        return ids;
    }
    if (!value->is_array()) {
        add(*reader.optionalInteger(key, -1, kLargestToken));
        return ids;
    }
    if (value->size() > kMaxTokens) {
        reader.bad(key, fmt::format("has {} entries, more than {}", value->size(), kMaxTokens));
    }
    for (const json& id : *value) {
        const bool fits =
            id.is_number_integer() && !(id.is_number_unsigned() && id.get<std::uint64_t>() > kLargestToken);
        if (!fits || id.get<std::int64_t>() < -1) {
            reader.bad(key, "must be a token number, a list of them, or null");
        }
        add(id.get<std::int64_t>());
    }
    return ids;
}

std::int32_t parseTokenId(ConfigReader& reader, const char* key, std::int32_t defaultValue) {
    const std::vector<std::int32_t> ids = parseTokenIds(reader, key, defaultValue);
    return ids.empty() ? -1 : ids.front();
}

GenerationConfig parseGenerationConfig(const json& root, const std::string& name) {
    ConfigReader reader(root, name);
    GenerationConfig config;
    config.eosTokens = parseTokenIds(reader, "eos_token_id", -1);
    config.bosToken = parseTokenId(reader, "bos_token_id", -1);
    config.padToken = parseTokenId(reader, "pad_token_id", -1);
    config.doSample = reader.boolean("do_sample", false);
    config.temperature = reader.number("temperature", 1, 0, 1e6);
    config.topP = reader.number("top_p", 1, 0, 1);
    config.minP = reader.number("min_p", 0, 0, 1);
    config.repetitionPenalty = reader.number("repetition_penalty", 1, 1e-6, 1e6);
    config.topK = static_cast<std::int32_t>(
        reader.optionalInteger("top_k", 0, std::numeric_limits<std::int32_t>::max()).value_or(kDefaultTopK));
    std::vector<std::string> unread;
    for (const auto& [key, value] : reader.unread()) {
        if (!isNeutralGenerationKey(key, *value)) {
            unread.push_back(quotedText(key));
        }
    }
    warnOfUnusedKeys(name, std::move(unread));
    return config;
}

} // namespace vitrine::engine
