// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/gguf_keys.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;

constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kTypes = "tokenizer.ggml.token_type";
constexpr const char* kMerges = "tokenizer.ggml.merges";
constexpr const char* kScores = "tokenizer.ggml.scores";
constexpr std::string_view kWordStart = "\xE2\x96\x81"; // "▁"

/// Types of tokens, as llama.cpp numbers them.
constexpr std::int32_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;

/// How a text is split into words before merging: the name in the file, and the pattern of the models that have it.
struct WordSplit {
    std::string_view name;
    std::string_view pattern;   ///< empty: GPT-2's own
    bool ignoresMerges = false; ///< a word that is a piece needs no merges
    bool composes = false;      ///< text is brought to the form NFC
    bool begins = false;        ///< a text begins with the BOS token where the file does not say
};

constexpr std::string_view kThreeDigits = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                                          R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kOneDigit = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                       R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCases =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCasesOneDigit =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// llama.cpp's split of files that name none: four patterns, each within the pieces of those before it.
constexpr std::array<std::string_view, 4> kDefaultSplits = {
    R"([\p{P}\$\+<=>\^~\|]+)",
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))",
    R"(\p{N}+)",
    R"([0-9][0-9][0-9])",
};
constexpr std::string_view kDefault = "default";

constexpr auto kWordSplits = std::to_array<WordSplit>({{"gpt-2", {}},
                                                       {"llama-bpe", kThreeDigits, true, false, true},
                                                       {"llama3", kThreeDigits, true, false, true},
                                                       {"llama-v3", kThreeDigits, true, false, true},
                                                       {"qwen2", kOneDigit, false, true},
                                                       {"deepseek-r1-qwen", kOneDigit, false, true},
                                                       {"gpt-4o", kCases},
                                                       {"tekken", kCasesOneDigit, true, false, true},
                                                       {kDefault, {}}});

/// What llama.cpp's files say of a tokenizer. Ids of tokens for other uses have no bearing on the ids of a text.
constexpr auto kTokenizerKeys = std::to_array<GgufKey>({
    usedKey("model"),
    usedKey("pre"),
    usedKey("tokens"),
    usedKey("token_type"),
    usedKey("token_type_count"),
    usedKey("scores"),
    usedKey("merges"),
    usedKey("add_bos_token"),
    usedKey("add_eos_token"),
    usedKey("add_space_prefix"),
    usedKey("bos_token_id"),
    usedKey("eos_token_id"),
    usedKey("eot_token_id"),
    usedKey("eom_token_id"),
    usedKey("unknown_token_id"),
    usedKey("padding_token_id"),
    usedKey("seperator_token_id"), // the name that files have
    usedKey("add_sep_token"),      // between two texts
    usedKey("cls_token_id"),
    usedKey("mask_token_id"),
    usedKey("prefix_token_id"),
    usedKey("suffix_token_id"),
    usedKey("middle_token_id"),
    usedKey("fim_pre_token_id"),
    usedKey("fim_suf_token_id"),
    usedKey("fim_mid_token_id"),
    usedKey("fim_pad_token_id"),
    usedKey("fim_rep_token_id"),
    usedKey("fim_sep_token_id"),
    usedKey("remove_extra_whitespaces"), // of Unigram tokenizers, as is the next: llama.cpp asks no others
    usedKey("precompiled_charsmap"),
});

class TokenizerMaker {
public:
    explicit TokenizerMaker(const GgufHeader& header)
        : header_(header), tokens_(header.texts(kTokens)), types_(header.integers(kTypes)) {
        if (tokens_.empty()) {
            header_.bad(kTokens, "is missing; the file has no tokenizer");
        }
        if (!types_.empty() && types_.size() != tokens_.size()) {
            header_.bad(kTypes, fmt::format("has {} elements, but there are {} tokens", types_.size(), tokens_.size()));
        }
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (!isValidUtf8(tokens_[i])) {
                header_.bad(kTokens, fmt::format("token {} is not valid UTF-8", i));
            }
            if (typeOf(i) != kUnused && !ids_.emplace(tokens_[i], i).second) {
                header_.bad(kTokens, fmt::format("{} is there twice", quotedText(tokens_[i])));
            }
        }
    }

    json make() {
        checkGgufKeys(header_, "tokenizer.ggml.", kTokenizerKeys, false);
        const std::string_view model = header_.text("tokenizer.ggml.model").value_or("");
        out_ = {{"version", "1.0"}, {"added_tokens", addedTokens()}};
        out_["model"] = {{"type", "BPE"}, {"vocab", vocabulary(model == "llama")}};
        if (model == "gpt2") {
            byteLevel();
        } else if (model == "llama") {
            sentencePiece();
        } else {
            header_.unsupported("tokenizer.ggml.model",
                                fmt::format("{} is not supported; gpt2 and llama are", quotedText(model)));
        }
        return std::move(out_);
    }

private:
    std::int32_t typeOf(std::size_t id) const { return types_.empty() ? kNormal : types_[id]; }
    bool isAdded(std::size_t id) const { return typeOf(id) == kControl || typeOf(id) == kUserDefined; }

    json addedTokens() const {
        json out = json::array();
        for (std::size_t id = 0; id < tokens_.size(); ++id) {
            if (isAdded(id) && !tokens_[id].empty()) {
                out.push_back({{"id", id},
                               {"content", tokens_[id]},
                               {"single_word", false},
                               {"lstrip", false},
                               {"rstrip", false},
                               {"normalized", false},
                               {"special", typeOf(id) == kControl}});
            }
        }
        return out;
    }

    /// Control tokens are found in texts, never made by merges; SentencePiece counts them as pieces all the same.
    json vocabulary(bool withControl) const {
        json out = json::object();
        for (const auto& [piece, id] : ids_) {
            if (withControl || typeOf(id) != kControl) {
                out[std::string(piece)] = id;
            }
        }
        return out;
    }

    bool hasControl(std::string_view text) const {
        const auto found = ids_.find(text);
        return found != ids_.end() && typeOf(found->second) == kControl;
    }

    /// The split of a file that names none, as files before May 2024. Tokens that no other tokenizer has tell it.
    std::string_view guessedSplit() const {
        const std::string_view architecture = header_.text("general.architecture").value_or("");
        std::string_view found = kDefault;
        if (hasControl("<|begin_of_text|>") && hasControl("<|start_header_id|>")) {
            found = "llama-bpe";
        } else if (architecture.starts_with("qwen") && hasControl("<|endoftext|>") && hasControl("<|im_start|>")) {
            found = "qwen2";
        } else if (hasControl("<|start|>") && hasControl("<|channel|>")) {
            found = "gpt-4o";
        }
        base::logWarning(
            fmt::format("{}: tokenizer.ggml.pre: is missing, so how words are split is not known; they are "
                        "split as \"{}\" says, and token ids may differ from those of training",
                        header_.file(), found));
        return found;
    }

    const WordSplit& wordSplit() const {
        const auto given = header_.text("tokenizer.ggml.pre");
        const std::string_view name = given ? *given : guessedSplit();
        const auto* const split = std::ranges::find(kWordSplits, name, &WordSplit::name);
        if (split == kWordSplits.end()) {
            std::string known;
            for (const WordSplit& each : kWordSplits) {
                known += (known.empty() ? "" : ", ") + std::string(each.name);
            }
            header_.unsupported("tokenizer.ggml.pre",
                                fmt::format("{} is not supported; {} are", quotedText(name), known));
        }
        return *split;
    }

    /// The steps that cut a text into words; none: what GPT-2's step for bytes does by itself.
    static json wordSteps(const WordSplit& split) {
        json out = json::array();
        const auto add = [&](std::string_view pattern) {
            out.push_back(
                {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
        };
        if (split.name == kDefault) {
            std::ranges::for_each(kDefaultSplits, add);
        } else if (!split.pattern.empty()) {
            add(split.pattern);
        }
        return out;
    }

    void byteLevel() {
        const WordSplit& split = wordSplit();
        json merges = json::array();
        const std::vector<std::string_view> lines = header_.texts(kMerges);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (!isValidUtf8(lines[i])) {
                header_.bad(kMerges, fmt::format("element {} is not valid UTF-8", i));
            }
            merges.push_back(lines[i]);
        }
        out_["model"]["merges"] = std::move(merges);
        out_["model"]["ignore_merges"] = split.ignoresMerges;
        json steps = wordSteps(split);
        steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", steps.empty()}});
        out_["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
        if (split.composes) {
            out_["normalizer"] = {{"type", "NFC"}};
        }
        out_["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}};
        surround(split.begins);
    }

    void sentencePiece() {
        const bool prefix = header_.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
        const auto unknown = header_.integer("tokenizer.ggml.unknown_token_id").value_or(0);
        json& model = out_["model"];
        model["unk_token"] = tokenText("tokenizer.ggml.unknown_token_id", unknown);
        model["fuse_unk"] = true;
        model["byte_fallback"] = true;
        model["merges"] = mergesOfScores();
        json normalizers = json::array();
        json decoders = json::array({{{"type", "Replace"}, {"pattern", {{"String", kWordStart}}}, {"content", " "}},
                                     {{"type", "ByteFallback"}},
                                     {{"type", "Fuse"}}});
        if (prefix) {
            normalizers.push_back({{"type", "Prepend"}, {"prepend", kWordStart}});
            decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
        }
        normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kWordStart}});
        out_["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
        out_["decoder"] = {{"type", "Sequence"}, {"decoders", decoders}};
        const bool usual = tokens_.size() > 2; // where llama.cpp expects them if the file does not say
        surround(true, usual ? std::optional<std::int64_t>(1) : std::nullopt,
                 usual ? std::optional<std::int64_t>(2) : std::nullopt);
    }

    struct Merge {
        std::size_t left, right; ///< ids
        float score;
        std::size_t leftLength, rightLength; ///< in code points
    };

    /// Every way to make a piece of two others, the pieces of higher scores first.
    json mergesOfScores() const {
        const std::vector<float> scores = header_.floats(kScores);
        if (scores.size() != tokens_.size()) {
            header_.bad(kScores,
                        fmt::format("has {} elements, but there are {} tokens", scores.size(), tokens_.size()));
        }
        std::vector<Merge> merges;
        for (std::size_t id = 0; id < tokens_.size(); ++id) {
            if (typeOf(id) == kNormal) {
                addMerges(tokens_[id], scores[id], merges);
            }
        }
        std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
            return std::tie(b.score, b.leftLength, b.rightLength) < std::tie(a.score, a.leftLength, a.rightLength);
        });
        json out = json::array();
        for (const Merge& merge : merges) {
            out.push_back({tokens_[merge.left], tokens_[merge.right]});
        }
        return out;
    }

    void addMerges(std::string_view piece, float score, std::vector<Merge>& merges) const {
        constexpr std::size_t kLongest = 256; // bytes of a piece: the ways grow with their square
        if (piece.size() > kLongest) {
            header_.unsupported(kTokens,
                                fmt::format("a piece has {} bytes; at most {} are supported", piece.size(), kLongest));
        }
        if (!(score == score)) {
            header_.bad(kScores, fmt::format("the score of {} is not a number", quotedText(piece)));
        }
        const auto first = static_cast<std::ptrdiff_t>(merges.size());
        const std::size_t length = countCodePoints(piece);
        std::size_t at = 0;
        for (std::size_t left = 1; left < length; ++left) {
            nextCodePoint(piece, at);
            const auto before = ids_.find(piece.substr(0, at));
            const auto after = ids_.find(piece.substr(at));
            if (before != ids_.end() && after != ids_.end()) {
                merges.push_back({before->second, after->second, score, left, length - left});
            }
        }
        std::sort(merges.begin() + first, merges.end(),
                  [](const Merge& a, const Merge& b) { return std::tie(a.left, a.right) < std::tie(b.left, b.right); });
    }

    std::string tokenText(const char* key, std::int64_t id) const {
        if (id < 0 || id >= std::ssize(tokens_)) {
            header_.bad(key, fmt::format("no token has the id {}", id));
        }
        return std::string(tokens_[static_cast<std::size_t>(id)]);
    }

    /// The tokens that stand before and after a text; `bos` and `eos` where the file does not say which.
    void surround(bool begins, std::optional<std::int64_t> bos = {}, std::optional<std::int64_t> eos = {}) {
        json single = json::array();
        json special = json::object();
        const auto add = [&](const char* flag, bool missing, const char* key, std::optional<std::int64_t> otherwise) {
            if (!header_.boolean(flag).value_or(missing)) {
                return;
            }
            const auto given = header_.integer(key);
            const auto id = given ? given : otherwise;
            if (!id) {
                return;
            }
            const std::string text = tokenText(key, *id);
            single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
            special[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
        };
        add("tokenizer.ggml.add_bos_token", begins, "tokenizer.ggml.bos_token_id", bos);
        single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
        add("tokenizer.ggml.add_eos_token", false, "tokenizer.ggml.eos_token_id", eos);
        if (!special.empty()) {
            out_["post_processor"] = {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", special}};
        }
    }

    const GgufHeader& header_;
    std::vector<std::string_view> tokens_;
    std::vector<std::int32_t> types_;
    std::unordered_map<std::string_view, std::size_t> ids_;
    json out_;
};

} // namespace

json ggufTokenizerJson(const GgufHeader& header) {
    return TokenizerMaker(header).make();
}

} // namespace vitrine::engine
