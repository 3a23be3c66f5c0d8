// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/tokenizer_keys.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>

namespace vitrine::engine {

namespace {

/// A type of some part and what its objects have, with spaces between.
struct PartKeys {
    std::string_view type;
    std::string_view keys;
};

constexpr std::string_view kRootKeys =
    "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model";
constexpr std::string_view kAddedKeys = "id content single_word lstrip rstrip normalized special";

// Of Unigram's last two the file says nothing to tokenizers: cuts are drawn only where a program asks for it.
constexpr auto kModels = std::to_array<PartKeys>({
    {"BPE", "dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk byte_fallback ignore_merges vocab "
            "merges cache_capacity"},
    {"Unigram", "unk_id vocab byte_fallback alpha nbest_size"},
});

constexpr auto kNormalizers = std::to_array<PartKeys>({
    {"Sequence", "normalizers"},
    {"NFC", ""},
    {"NFD", ""},
    {"NFKC", ""},
    {"NFKD", ""},
    {"Nmt", ""},
    {"Lowercase", ""},
    {"StripAccents", ""},
    {"ByteLevel", ""},
    {"Strip", "strip_left strip_right"},
    {"Prepend", "prepend"},
    {"Replace", "pattern content"},
    {"Precompiled", "precompiled_charsmap"},
});

// Offsets are not kept, so whether they are trimmed says nothing.
constexpr std::string_view kByteLevelKeys = "add_prefix_space trim_offsets use_regex";
constexpr std::string_view kMetaspaceKeys = "replacement prepend_scheme split add_prefix_space str_rep";

constexpr auto kPreTokenizers = std::to_array<PartKeys>({
    {"Sequence", "pretokenizers"},
    {"Split", "pattern behavior invert"},
    {"ByteLevel", kByteLevelKeys},
    {"Metaspace", kMetaspaceKeys},
    {"Whitespace", ""},
    {"WhitespaceSplit", ""},
    {"Digits", "individual_digits"},
    {"Punctuation", "behavior"},
});

constexpr auto kPostProcessors = std::to_array<PartKeys>({
    {"Sequence", "processors"},
    {"TemplateProcessing", "single pair special_tokens"},
    {"ByteLevel", kByteLevelKeys},
    {"BertProcessing", "sep cls"},
    {"RobertaProcessing", "sep cls trim_offsets add_prefix_space"},
});

constexpr auto kDecoders = std::to_array<PartKeys>({
    {"Sequence", "decoders"},
    {"ByteLevel", kByteLevelKeys},
    {"ByteFallback", ""},
    {"Fuse", ""},
    {"BPEDecoder", "suffix"},
    {"Metaspace", kMetaspaceKeys},
    {"Replace", "pattern content"},
    {"Strip", "content start stop"},
});

bool listed(std::string_view keys, std::string_view key) {
    while (!keys.empty()) {
        const std::size_t end = std::min(keys.find(' '), keys.size());
        if (keys.substr(0, end) == key) {
            return true;
        }
        keys.remove_prefix(std::min(end + 1, keys.size()));
    }
    return false;
}

class KeyCheck {
public:
    void object(const JsonField& field, std::string_view known) {
        if (!field.value().is_object()) {
            return;
        }
        for (const auto& [key, value] : field.value().items()) {
            if (!listed(known, key) && key != "type") {
                add(field.path().empty() ? quotedForMessage(key)
                                         : fmt::format("{}.{}", field.path(), quotedForMessage(key)));
            }
        }
    }

    /// A part and, of a sequence, its members.
    void part(const std::optional<JsonField>& field, std::span<const PartKeys> parts, std::string_view otherwise = "") {
        if (!field || !field->value().is_object()) {
            return;
        }
        const auto type = field->value().find("type");
        const std::string name =
            type != field->value().end() && type->is_string() ? type->get<std::string>() : std::string(otherwise);
        const auto row = std::ranges::find(parts, name, &PartKeys::type);
        if (row == parts.end()) {
            return;
        }
        object(*field, row->keys);
        if (name == "Sequence") {
            if (const auto members = field->find(row->keys); members && members->value().is_array()) {
                for (std::size_t i = 0; i < members->arraySize(); ++i) {
                    part(members->element(i), parts);
                }
            }
        }
    }

    std::vector<std::string> take() { return std::move(unknown_); }

private:
    void add(std::string path) {
        if (std::ranges::find(unknown_, path) == unknown_.end()) {
            unknown_.push_back(std::move(path));
        }
    }

    std::vector<std::string> unknown_;
};

} // namespace

std::vector<std::string> unknownTokenizerKeys(const JsonField& root) {
    KeyCheck check;
    check.object(root, kRootKeys);
    check.part(root.find("model"), kModels, "BPE");
    check.part(root.find("normalizer"), kNormalizers);
    check.part(root.find("pre_tokenizer"), kPreTokenizers);
    check.part(root.find("post_processor"), kPostProcessors);
    check.part(root.find("decoder"), kDecoders);
    if (const auto added = root.find("added_tokens"); added && added->value().is_array()) {
        for (const nlohmann::json& token : added->value()) { // of one path, so that each key is named once
            check.object(JsonField(token, root.file(), "added_tokens[]"), kAddedKeys);
        }
    }
    return check.take();
}

} // namespace vitrine::engine
