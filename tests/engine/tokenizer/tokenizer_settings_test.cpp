// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// tokenizer_config.json beside tokenizer.json. The expected ids were seen with transformers 5.24.

#include "engine/tokenizer/tokenizer_settings.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// "<s>" and "</s>" are pieces, and only "<s>" is an added token.
constexpr std::string_view kPlainTokenizer = R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": null, "decoder": {"type": "Fuse"},
    "post_processor": {"type": "TemplateProcessing", "pair": [], "single":
        [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}},
    "model": {"type": "Unigram", "unk_id": 2, "byte_fallback": false,
              "vocab": [["<s>", -9], ["</s>", -9], ["?", 0], ["a", -1], ["<", -2], ["s", -2], ["/", -2], [">", -2]]}})";

struct Loaded {
    std::shared_ptr<const Tokenizer> tokenizer;
    std::string warnings;
};

Loaded loadWith(std::string_view config, std::string_view tokenizer = kPlainTokenizer) {
    const test::TempFolder folder;
    Loaded out;
    const std::string path = folder.write("tokenizer.json", tokenizer);
    folder.write("tokenizer_config.json", config);
    base::setLogSink([&](base::LogLevel, std::string_view text) { out.warnings += std::string(text) + "\n"; });
    out.tokenizer = Tokenizer::load(path);
    base::setLogSink({});
    return out;
}

TEST(TokenizerSettings, ThePostProcessorCountsWhateverFlagsSay) {
    EXPECT_THAT(loadWith(R"({"add_bos_token": false, "bos_token": "<s>"})").tokenizer->encode("a", true),
                ElementsAre(0, 3));
    EXPECT_THAT(loadWith(R"({"add_eos_token": true, "eos_token": "</s>"})").tokenizer->encode("a", true),
                ElementsAre(0, 3));
}

TEST(TokenizerSettings, ANamedTokenIsFoundInTexts) {
    EXPECT_THAT(loadWith("{}").tokenizer->encode("a</s>", false), ElementsAre(3, 4, 6, 5, 7)) << "better in parts";
    const auto named = loadWith(R"({"eos_token": "</s>"})").tokenizer;
    EXPECT_THAT(named->encode("a</s>", false), ElementsAre(3, 1));
    EXPECT_TRUE(named->isSpecial(1));
    EXPECT_THAT(loadWith(R"({"pad_token": "<pad>"})").warnings,
                HasSubstr("tokenizer_config.json: not used: pad_token (\"<pad>\" is no token"));
}

TEST(TokenizerSettings, SpecialTokensMayBePlainText) {
    EXPECT_THAT(loadWith(R"({"split_special_tokens": true})").tokenizer->encode("a<s>", false),
                ElementsAre(3, 4, 5, 7));
}

TEST(TokenizerSettings, WhatIsNotFollowedIsNamedOnce) {
    const std::string warnings = loadWith(R"({"add_prefix_space": true, "do_lower_case": true, "legacy": false,
                                              "clean_up_tokenization_spaces": true, "model_max_length": 5})")
                                     .warnings;
    EXPECT_EQ(std::ranges::count(warnings, '\n'), 1) << warnings;
    for (const char* name : {"add_prefix_space", "do_lower_case", "clean_up_tokenization_spaces"}) {
        EXPECT_THAT(warnings, HasSubstr(name));
    }
    EXPECT_EQ(loadWith(R"({"add_prefix_space": false, "do_lower_case": false, "tokenizer_class": "X"})").warnings, "");
}

TEST(TokenizerSettings, UnknownMembersOfTokenizerJsonAreNamedOnce) {
    std::string odd(kPlainTokenizer);
    odd.replace(odd.find("\"unk_id\""), 0, "\"novel\": 1, ");
    odd.replace(odd.find("\"lstrip\""), 0, "\"sticky\": true, ");
    const std::string warnings = loadWith("{}", odd).warnings;
    EXPECT_THAT(warnings, HasSubstr("not used: added_tokens[].\"sticky\", model.\"novel\"; where another program uses "
                                    "one of them, its answers may differ\n"));
    EXPECT_EQ(std::ranges::count(warnings, '\n'), 1);
}

} // namespace
} // namespace vitrine::engine
