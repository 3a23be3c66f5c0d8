// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/error.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/fixture_paths.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

json smallTokenizer() {
    return json::parse(R"({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [{"id": 6, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                          "normalized": false, "special": true}],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "dropout": null, "unk_token": "?", "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                  "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "c": 4, "abc": 5},
                  "merges": [["a", "b"], ["ab", "c"]]}})");
}

std::shared_ptr<const Tokenizer> load(const json& value) {
    return Tokenizer::fromJsonText(value.dump(), "tokenizer.json");
}

std::string problemOf(const json& value) {
    try {
        load(value);
        return "none";
    } catch (const base::BadInput& error) {
        return "bad: " + error.message();
    } catch (const base::Unsupported& error) {
        return "unsupported: " + error.message();
    }
}

struct Case {
    const char* pointer;     ///< JSON pointer of the value that is replaced
    const char* replacement; ///< JSON text
    const char* message;     ///< part of the message
};

TEST(TokenizerBadInput, namesTheFileTheFieldAndTheReason) {
    EXPECT_EQ(load(smallTokenizer())->encode("abcx<s>", false), (std::vector<std::int32_t>{5, 0, 6}));
    const std::vector<Case> cases = {
        {"/model/type", "\"WordPiece\"", "unsupported: tokenizer.json: model.type: the model \"WordPiece\""},
        {"/model/type", "\"Unigram\"", "bad: tokenizer.json: model.vocab: must be an array"},
        {"/model", R"({"type": "Unigram", "vocab": [["a"]]})", "bad: tokenizer.json: model.vocab[0]: must be a piece"},
        {"/model", R"({"type": "Unigram", "vocab": [["a", 0]], "unk_id": 1})", "bad: tokenizer.json: model.unk_id"},
        {"/model/type", "7", "bad: tokenizer.json: model.type: must be a string"},
        {"/model", "null", "bad: tokenizer.json: the member \"model\" is missing"},
        {"/model/vocab", "[]", "bad: tokenizer.json: model.vocab: must be an object"},
        {"/model/vocab/a", "-1", "model.vocab[\"a\"]: must be between 0 and"},
        {"/model/vocab/a", "1.5", "model.vocab[\"a\"]: must be an integer"},
        {"/model/vocab/a", "\"1\"", "model.vocab[\"a\"]: must be an integer"},
        {"/model/vocab/a", "4000000000", "model.vocab[\"a\"]: must be between 0 and"},
        {"/model/vocab/a", "18446744073709551615", "model.vocab[\"a\"]: must be between 0 and"},
        {"/model/vocab/a", "2", "the id 2 belongs to both \"a\" and \"b\""},
        {"/model/merges/0", "[\"a\", \"z\"]", "model.merges[0]: the piece \"z\" is not in model.vocab"},
        {"/model/merges/1", "[\"c\", \"ab\"]", "model.merges[1]: the piece \"cab\" is not in model.vocab"},
        {"/model/merges/1", "\"ab  c\"", "model.merges[1]: \"ab  c\" is not two pieces"},
        {"/model/merges/1", "[\"ab\"]", "model.merges[1]: must be a pair"},
        {"/model/merges/1", "[\"ab\", 3]", "model.merges[1]: must be a pair"},
        {"/model/merges", "{}", "model.merges: must be an array"},
        {"/model/unk_token", "\"unknown\"", "model.unk_token: \"unknown\" is not in model.vocab"},
        {"/model/dropout", "0.1", "unsupported: tokenizer.json: model.dropout"},
        {"/model/byte_fallback", "1", "model.byte_fallback: must be true or false"},
        {"/added_tokens/0/id", "99999999", "added_tokens[0].id: must be between"},
        {"/added_tokens/0/id", "2", "added_tokens[0].id: the id 2 of the token \"<s>\" belongs to \"b\""},
        {"/added_tokens/0/content", "\"a\"", "added_tokens[0].id: the token \"a\" has the id 6, but model.vocab gives"},
        {"/added_tokens/0/content", "null", "added_tokens[0]: the member \"content\" is missing"},
        {"/added_tokens", "{}", "added_tokens: must be an array"},
        {"/version", "\"2.0\"", "unsupported: tokenizer.json: version"},
        {"/normalizer", R"({"type": "BertNormalizer"})", "unsupported: tokenizer.json: normalizer.type"},
        {"/normalizer", R"({"type": "Precompiled"})",
         "bad: tokenizer.json: normalizer: the member \"precompiled_charsmap\""},
        {"/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "a==="})",
         "bad: tokenizer.json: normalizer.precompiled_charsmap: is not base64"},
        {"/normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "////fw=="})",
         "bad: tokenizer.json: normalizer.precompiled_charsmap: has a tree that is longer"},
        {"/normalizer", R"({"type": "Strip", "strip_left": 1})", "normalizer.strip_left: must be true or false"},
        {"/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {}]})",
         "normalizer.normalizers[1]: the member \"type\" is missing"},
        {"/normalizer", R"({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})",
         "normalizer.pattern.Regex: not a regular expression"},
        {"/pre_tokenizer", R"({"type": "UnicodeScripts"})", "unsupported: tokenizer.json: pre_tokenizer.type"},
        {"/pre_tokenizer", R"({"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated"})",
         "pre_tokenizer.pattern.String: must not be empty"},
        {"/pre_tokenizer", R"({"type": "Split", "pattern": {}, "behavior": "Isolated"})",
         "pre_tokenizer.pattern: must have the member"},
        {"/pre_tokenizer", R"({"type": "Split", "pattern": {"Regex": "[a-[b]]"}, "behavior": "Isolated"})",
         "unsupported: tokenizer.json: pre_tokenizer.pattern.Regex: the regular expression has a range that ends in a "
         "class"},
        {"/pre_tokenizer", R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Sideways"})",
         "unsupported: tokenizer.json: pre_tokenizer.behavior"},
        {"/pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})",
         "replacement: must be exactly one character"},
        {"/pre_tokenizer", R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "often"})",
         "pre_tokenizer.prepend_scheme: must be first, always or never"},
        {"/pre_tokenizer",
         R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "add_prefix_space": false})",
         "pre_tokenizer.add_prefix_space: contradicts"},
        {"/decoder", R"({"type": "CTC"})", "unsupported: tokenizer.json: decoder.type"},
        {"/decoder", R"({"type": "Strip", "content": " ", "start": -1, "stop": 0})", "decoder.start: must be between"},
        {"/post_processor",
         R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
             "special_tokens": {}})",
         "post_processor.single[0].SpecialToken.id: \"<s>\" is not in special_tokens"},
        {"/post_processor",
         R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x"}}, {"Sequence": {"id": "A"}}],
             "special_tokens": {"x": {"ids": [77]}}})",
         "post_processor.special_tokens.x.ids[0]: no token has the id 77"},
    };
    for (const Case& each : cases) {
        json value = smallTokenizer();
        value[json::json_pointer(each.pointer)] = json::parse(each.replacement);
        EXPECT_THAT(problemOf(value), HasSubstr(each.message)) << each.pointer << " = " << each.replacement;
    }
}

TEST(TokenizerBadInput, acceptsHolesInTheIds) {
    json value = smallTokenizer();
    value["model"]["vocab"]["abc"] = 1000;
    const auto tokenizer = load(value);
    EXPECT_EQ(tokenizer->encode("abc", false), std::vector<std::int32_t>{1000});
    EXPECT_EQ(tokenizer->vocabSize(), 1001);
    EXPECT_FALSE(tokenizer->isKnown(500));
    EXPECT_EQ(tokenizer->decode(std::vector<std::int32_t>{500, 1, -7, 5000}), "a");
}

TEST(TokenizerBadInput, readsBrokenUtf8AsReplacementCharacters) {
    json value = smallTokenizer();
    value["model"]["vocab"]["\xEF\xBF\xBD"] = 7;
    const auto tokenizer = load(value);
    EXPECT_EQ(tokenizer->encode("a\xFFz\xE2\x82", false), (std::vector<std::int32_t>{1, 7, 0, 7}));
    EXPECT_EQ(tokenizer->encode("\xED\xA0\x80", false), (std::vector<std::int32_t>{7, 7, 7}));
}

TEST(TokenizerBadInput, refusesFilesWhoseTextGrowsWithoutEnd) {
    json doubling = json::array();
    for (int i = 0; i < 60; ++i) {
        doubling.push_back(json::parse(R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})"));
    }
    json value = smallTokenizer();
    value["normalizer"] = {{"type", "Sequence"}, {"normalizers", doubling}};
    EXPECT_THROW(load(value)->encode("a", false), base::BadInput);
    value = smallTokenizer();
    value["decoder"] = {{"type", "Sequence"}, {"decoders", doubling}};
    EXPECT_THROW(load(value)->decode(std::vector<std::int32_t>{1}), base::BadInput);
    json levels = json::array();
    for (int i = 0; i < 60; ++i) {
        levels.push_back(json::parse(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})"));
    }
    value = smallTokenizer();
    value["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", levels}};
    EXPECT_THROW(load(value)->encode("\xC3\xA9", false), base::BadInput);
}

TEST(TokenizerBadInput, boundsTheWorkOfARegularExpression) {
    json value = smallTokenizer();
    value["pre_tokenizer"] =
        json::parse(R"({"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"})");
    const auto tokenizer = load(value);
    try {
        tokenizer->encode(std::string(5000, 'a') + "b", false);
    } catch (const base::BadInput& error) {
        EXPECT_THAT(error.message(),
                    HasSubstr("pre_tokenizer.pattern.Regex: the regular expression cannot be applied"));
    }
}

class TokenizerFiles : public testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("tokenizer-" + std::to_string(std::random_device{}()));
        fs::create_directory(folder_);
        write("tokenizer.json", smallTokenizer().dump());
    }
    void TearDown() override { fs::remove_all(folder_); }
    void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
    std::string path() const { return (folder_ / "tokenizer.json").string(); }

    fs::path folder_;
};

TEST_F(TokenizerFiles, takeAddedTokensFromTheConfigBeside) {
    EXPECT_EQ(Tokenizer::load(path())->encode("<new>", false).size(), 5U);
    write("tokenizer_config.json", R"({"added_tokens_decoder": {
        "6": {"content": "<s>", "special": true, "rstrip": true}, "8": {"content": "<new>", "special": true}}})");
    const auto tokenizer = Tokenizer::load(path());
    EXPECT_EQ(tokenizer->encode("<new><s>  a", false), (std::vector<std::int32_t>{8, 6, 1}));
    EXPECT_TRUE(tokenizer->isSpecial(8));
    write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<new>"}}})");
    try {
        Tokenizer::load(path());
        FAIL() << "a key that is not an id was accepted";
    } catch (const base::BadInput& error) {
        EXPECT_THAT(error.message(), HasSubstr("tokenizer_config.json: added_tokens_decoder[\"x\"]: the key"));
    }
    EXPECT_THROW(Tokenizer::load((folder_ / "missing.json").string()), base::BadInput);
}

/// Success, BadInput or Unsupported: anything else fails the test or kills it.
void tryText(const std::string& text, int& accepted) {
    try {
        const auto tokenizer = Tokenizer::fromJsonText(text, "mutated");
        const auto ids = tokenizer->encode(" Hello, <s>wörld 123\n\n", true);
        tokenizer->decode(ids, true);
        ++accepted;
    } catch (const base::BadInput& error) {
        EXPECT_THAT(error.message(), HasSubstr(": "));
        EXPECT_THAT(error.message(), testing::Not(HasSubstr("\n")));
    } catch (const base::Unsupported& error) {
        EXPECT_THAT(error.message(), HasSubstr(": "));
    }
}

std::string readFixture(const std::string& name) {
    std::ifstream in(vitrine::test::fixture("tokenizers/" + name + ".tokenizer.json"));
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

TEST(TokenizerMutations, ofBytesNeverDoAnythingButFailWell) {
    std::mt19937 random(3);
    int accepted = 0;
    for (const std::string name : {"own-gpt2", "own-llama2", "own-prefix", "llama3-small"}) {
        const std::string original = readFixture(name);
        ASSERT_FALSE(original.empty());
        for (int round = 0; round < vitrine::test::repetitions(100); ++round) {
            std::string text = original;
            const auto at = [&](std::size_t size) {
                return std::uniform_int_distribution<std::size_t>(0, size - 1)(random);
            };
            for (std::size_t edits = 1 + at(4); edits > 0; --edits) {
                // Most of a file is its vocabulary; half of the edits go to the rest.
                const std::size_t place = at(2) == 0 ? at(text.size()) : at(std::min<std::size_t>(text.size(), 2500));
                switch (at(4)) {
                case 0:
                    text[place] = static_cast<char>(at(256));
                    break;
                case 1:
                    text.erase(place, 1 + at(20));
                    break;
                case 2:
                    text.insert(place, text.substr(at(text.size()), 1 + at(30)));
                    break;
                default:
                    text[place] = "{}[]\",:0-9.eE"[at(13)];
                    break;
                }
            }
            if (round % 10 == 0) {
                text.resize(at(text.size()) + 1);
            }
            tryText(text, accepted);
        }
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, 400);
}

/// All places in a JSON value.
void collect(json& value, std::vector<json*>& places) {
    places.push_back(&value);
    if (value.is_structured() && value.size() < 40) {
        for (json& member : value) {
            collect(member, places);
        }
    }
}

TEST(TokenizerMutations, ofFieldsNeverDoAnythingButFailWell) {
    const std::vector<json> values = {nullptr,
                                      true,
                                      0,
                                      -1,
                                      1e300,
                                      1ULL << 40U,
                                      "",
                                      "a",
                                      "\xEF\xBF\xBD",
                                      json::array(),
                                      json::object(),
                                      json::array({1, 2}),
                                      json{{"type", "NFC"}},
                                      json{{"String", "x"}},
                                      json{{"Regex", "(((((a*)*)*)*)*)*b"}},
                                      json{{"type", "Sequence"}},
                                      json{{"type", "ByteLevel"}, {"add_prefix_space", true}}};
    std::mt19937 random(4);
    int accepted = 0;
    for (const std::string name : {"own-gpt2", "own-gemma", "own-prefix", "own-suffix", "mistral3-small"}) {
        const json original = json::parse(readFixture(name));
        for (int round = 0; round < vitrine::test::repetitions(120); ++round) {
            json value = original;
            std::vector<json*> places;
            collect(value, places);
            const auto at = [&](std::size_t size) {
                return std::uniform_int_distribution<std::size_t>(0, size - 1)(random);
            };
            json& place = *places[at(places.size())];
            if (place.is_object() && !place.empty() && at(2) == 0) {
                place.erase(std::next(place.begin(), static_cast<std::ptrdiff_t>(at(place.size()))));
            } else {
                place = at(3) == 0 ? json(*places[at(places.size())]) : values[at(values.size())];
            }
            tryText(value.dump(-1, ' ', false, json::error_handler_t::replace), accepted);
        }
    }
    EXPECT_GT(accepted, 0);
    EXPECT_LT(accepted, 600);
}

} // namespace
} // namespace vitrine::engine
