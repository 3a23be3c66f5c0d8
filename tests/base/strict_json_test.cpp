// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/strict_json.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <unistd.h>

#include "base/error.h"

namespace vitrine::base {
namespace {

std::string problemOf(std::string_view text, const JsonLimits& limits = {}) {
    try {
        parseStrictJson(text, "config.json", limits);
    } catch (const BadInput& error) {
        return error.message();
    }
    return "accepted";
}

TEST(StrictJson, BuildsWhatTheLibraryBuilds) {
    const std::string text =
        R"( {"a": [1, -2, 18446744073709551615, 2.5e-3, true, false, null, "x\u00e9\n\ud83d\ude00"],
        "b": {"c": {}, "d": [], "e": [[[]], {"f": [{"g": "h"}]}]}, "": "empty key", "i": "Grüße"} )";
    EXPECT_EQ(parseStrictJson(text, "t"), nlohmann::json::parse(text));
    for (const char* scalar : {"1", "-0.0", "\"s\"", "null", "true", "[]", "{}"}) {
        EXPECT_EQ(parseStrictJson(scalar, "t"), nlohmann::json::parse(scalar));
    }
}

TEST(StrictJson, KeepsTheOrderOfKeysWhereItIsAsked) {
    const std::string text = R"({"z":1,"a":[{"y":{},"b":null}],"":{"q":[],"c":2.5}})";
    EXPECT_EQ(parseOrderedJson(text, "t").dump(), text);
    EXPECT_THROW(parseOrderedJson(R"({"a": [{"b": 1, "b": 2}]})", "t"), BadInput);
    EXPECT_EQ(parseOrderedJson(R"([{"b":1},{"b":2}])", "t").dump(), R"([{"b":1},{"b":2}])");
    std::string many = "{";
    for (int i = 0; i < 200'000; ++i) {
        many += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    }
    EXPECT_EQ(parseOrderedJson(many + "}", "t").size(), 200'000U);
}

TEST(StrictJson, HandsOverMembersInOrder) {
    std::string seen;
    const JsonMember note = [&](const std::string& key, const nlohmann::json& value) {
        seen += key + "=" + value.dump() + ";";
    };
    forStrictMembers(R"({"b": {"c": [1, {"d": 2}]}, "a": "x", "e": [], "b": null})", "t", {}, note);
    EXPECT_EQ(seen, R"(b={"c":[1,{"d":2}]};a="x";e=[];b=null;)");
    for (const char* text : {"[1]", "1", "{", "{\"a\": {\"b\": 1, \"b\": 2}}"}) {
        EXPECT_THROW(forStrictMembers(text, "t", {}, note), BadInput) << text;
    }
    EXPECT_THROW(forStrictMembers(R"({"a": 1})", "t", {}, [](const std::string&, auto&&) { throw BadInput("mine"); }),
                 BadInput);
}

TEST(StrictJson, NamesThePlace) {
    EXPECT_EQ(problemOf("{\n  \"a\": 1,\n  \"b\": tru\n}").rfind("config.json: line 3, column ", 0), 0U)
        << problemOf("{\n  \"a\": 1,\n  \"b\": tru\n}");
    EXPECT_EQ(problemOf("{\"a\": 1, \"a\": 2}"),
              "config.json: line 1, column 12: key \"a\" appears twice in one object");
    EXPECT_EQ(problemOf("[1, 2,]").rfind("config.json: line 1, column 7: syntax error while parsing value", 0), 0U)
        << problemOf("[1, 2,]");
}

TEST(StrictJson, RefusesDefects) {
    for (const std::string& text : {std::string(),
                                    std::string("  "),
                                    std::string("{"),
                                    std::string("[1"),
                                    std::string("{\"a\""),
                                    std::string("{\"a\": 1,}"),
                                    std::string("{} {}"),
                                    std::string("[] x"),
                                    std::string("// c\n{}"),
                                    std::string("{'a': 1}"),
                                    std::string("NaN"),
                                    std::string("[Infinity]"),
                                    std::string("01"),
                                    std::string("1e999"),
                                    std::string("+1"),
                                    std::string("\"\t\""),
                                    std::string("\"\\ud800\""),
                                    std::string("\"\\x\""),
                                    std::string("\"\xff\""),
                                    std::string("\"\xc0\xaf\""),
                                    std::string("\"\xed\xa0\x80\""),
                                    std::string("\"\xf5\x80\x80\x80\""),
                                    std::string("\"\xe2\x82\""),
                                    std::string("\xEF\xBB\xBF{}"),
                                    std::string("{}\0", 3),
                                    std::string("{}\0garbage", 10),
                                    std::string("[\"a\0b\"]", 7),
                                    std::string("]"),
                                    std::string("{]"),
                                    std::string("[}"),
                                    std::string("{1: 2}"),
                                    std::string("[1 2]"),
                                    std::string(",")}) {
        const std::string problem = problemOf(text);
        EXPECT_EQ(problem.rfind("config.json: line ", 0), 0U) << text << " -> " << problem;
    }
}

TEST(StrictJson, DuplicateKeysOnlyCountInOneObject) {
    EXPECT_EQ(problemOf(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"), "accepted");
    EXPECT_NE(problemOf(R"({"a": {"b": 1, "c": 2, "b": 3}})").find("key \"b\" appears twice"), std::string::npos);
    EXPECT_NE(problemOf("{\"\\u0061\": 1, \"a\": 3}").find("key \"a\" appears twice"), std::string::npos);
}

TEST(StrictJson, DepthIsBounded) {
    const auto nested = [](int depth, char open, char close) {
        return std::string(static_cast<std::size_t>(depth), open) + std::string(static_cast<std::size_t>(depth), close);
    };
    EXPECT_EQ(problemOf(nested(64, '[', ']')), "accepted");
    EXPECT_EQ(problemOf(nested(65, '[', ']')), "config.json: line 1, column 65: nested deeper than 64 levels");
    EXPECT_EQ(problemOf("[[[]]]", {.maxDepth = 2}), "config.json: line 1, column 3: nested deeper than 2 levels");
    std::string deep;
    for (int i = 0; i < 1000000; ++i) {
        deep += "{\"a\":[";
    }
    EXPECT_NE(problemOf(deep).find("nested deeper"), std::string::npos);
}

TEST(StrictJson, SizesAreBounded) {
    EXPECT_NE(problemOf("[1, 2, 3]", {.maxBytes = 8}).find("larger than the limit"), std::string::npos);
    EXPECT_EQ(problemOf("[1, 2, 3]", {.maxValues = 4}), "accepted");
    EXPECT_NE(problemOf("[1, 2, 3]", {.maxValues = 3}).find("more than 3 values"), std::string::npos);
    EXPECT_NE(problemOf("{\"a\": 1}", {.maxValues = 2}).find("more than 2 values"), std::string::npos);
}

TEST(StrictJson, LongTokensDoNotFillTheMessage) {
    const std::string key(100000, 'k');
    EXPECT_LT(problemOf("{\"" + key + "\": 1, \"" + key + "\": 2}").size(), 300U);
    EXPECT_LT(problemOf("[\"" + key).size(), 300U);
    EXPECT_LT(problemOf("[" + std::string(5000, '9') + "]").size(), 300U);
    const std::string cut = std::string(79, 'k') + "\xC3\xA9";
    EXPECT_NE(problemOf("{\"" + cut + "\": 1, \"" + cut + "\": 2}").find("appears twice"), std::string::npos);
}

TEST(StrictJson, RandomDamageIsAcceptedOrRefusedAndNothingElse) {
    const std::string text =
        R"({"model_type": "gpt_oss", "layers": [1, 2.5, {"rope": {"factor": 32.0}}], "t": "é\u1234"})";
    std::mt19937 random(7);
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string damaged = text;
        const auto edits = 1 + random() % 3;
        for (unsigned i = 0; i < edits && !damaged.empty(); ++i) {
            const std::size_t at = random() % damaged.size();
            switch (random() % 3) {
            case 0:
                damaged[at] = static_cast<char>(random());
                break;
            case 1:
                damaged.erase(at, 1 + random() % 8);
                break;
            default:
                damaged.insert(at, 1, "{}[],:\"\\0eE-"[random() % 12]);
            }
        }
        try {
            const nlohmann::json value = parseStrictJson(damaged, "t");
            EXPECT_EQ(value, nlohmann::json::parse(damaged));
        } catch (const BadInput&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 10000);
}

class StrictJsonFile : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = std::filesystem::temp_directory_path() / "vitrine-json-XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string problemOfFile(const std::filesystem::path& path, const JsonLimits& limits = {}) {
        try {
            readStrictJson(path, limits);
        } catch (const BadInput& error) {
            EXPECT_EQ(error.message().rfind(path.string() + ": ", 0), 0U) << error.message();
            return error.message();
        }
        return "accepted";
    }

    std::filesystem::path folder_;
};

TEST_F(StrictJsonFile, ReadsAWholeFile) {
    const std::filesystem::path path = folder_ / "a.json";
    std::ofstream(path) << R"({"a": [1, 2]})";
    EXPECT_EQ(readStrictJson(path)["a"][1], 2);
    EXPECT_NE(problemOfFile(path, {.maxBytes = 4}).find("larger than the limit"), std::string::npos);
}

TEST_F(StrictJsonFile, SaysWhyAFileCannotBeRead) {
    EXPECT_NE(problemOfFile(folder_ / "missing.json").find("does not exist"), std::string::npos);
    EXPECT_NE(problemOfFile(folder_).find("no regular file"), std::string::npos);
    EXPECT_NE(problemOfFile("/dev/zero").find("no regular file"), std::string::npos);
    std::ofstream(folder_ / "empty.json").flush();
    EXPECT_NE(problemOfFile(folder_ / "empty.json").find("unexpected end of input"), std::string::npos);
}

} // namespace
} // namespace vitrine::base
