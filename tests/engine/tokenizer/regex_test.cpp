// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/regex.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/tokenizer/text_split.h"
#include "engine/tokenizer/unicode_text.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine {
namespace {

using Texts = std::vector<std::string>;

Texts matches(const std::string& pattern, const std::string& text) {
    Texts out;
    for (const auto& [begin, end] : Regex(pattern, "test").findAll(text)) {
        out.push_back(text.substr(begin, end - begin));
    }
    return out;
}

// The expected values were seen with Oniguruma through Hugging Face's tokenizers.
TEST(TokenizerRegex, meansWhatOnigurumaMeans) {
    EXPECT_EQ(matches(R"(\s+)", "a\xE1\xA0\x8E b\xC2\x85\xE3\x80\x80"),
              (Texts{" ", "\xC2\x85\xE3\x80\x80"})); // no U+180E
    EXPECT_EQ(matches(R"(\w+)", "a\xCC\x81_\xE2\x80\xBF\xC2\xB2-"), (Texts{"a\xCC\x81_\xE2\x80\xBF\xC2\xB2"}));
    EXPECT_EQ(matches(R"([\w]+)", "a\xC2\xB2"), (Texts{"a"})); // a superscript is no word character inside of a class
    EXPECT_EQ(matches(R"(^a)", "a\na"), (Texts{"a", "a"}));
    EXPECT_EQ(matches(R"(a$)", "a\na\n"), (Texts{"a", "a"}));
    EXPECT_EQ(matches(R"(a{1,2}+)", "aaaaab"), (Texts{"aaaaa"}));
    EXPECT_EQ(matches(R"((?:ab){2}?c)", "ababcc"), (Texts{"ababc", "c"}));
    EXPECT_EQ(matches(R"(a{,2})", "aaa"), (Texts{"aa", "a"}));
    EXPECT_EQ(matches(R"((?m:.)+)", "a\nb"), (Texts{"a\nb"}));
    EXPECT_EQ(matches(R"(.+)", "a\nb"), (Texts{"a", "b"}));
    EXPECT_EQ(matches(R"([a[bc]]+)", "abcd"), (Texts{"abc"}));
    EXPECT_EQ(matches(R"(\h+)", "xfa0 "), (Texts{"fa0"}));
    EXPECT_EQ(matches(R"(\p{Han}+)", "a\xE6\xBC\xA2\xE3\x80\x85"), (Texts{"\xE6\xBC\xA2\xE3\x80\x85"}));
    EXPECT_EQ(matches(R"((?i:'s))", "'\xC5\xBFx"), (Texts{"'\xC5\xBF"})); // the long s
    EXPECT_EQ(matches(R"(\p{^L}+)", "ab12"), (Texts{"12"}));
    EXPECT_EQ(matches(R"(\u00e9)", "\xC3\xA9"), (Texts{"\xC3\xA9"}));
    EXPECT_EQ(matches(R"(\p{Letter}+|[[:digit:]]+)", "ab1"), (Texts{"ab", "1"}));
    EXPECT_EQ(matches(R"(x*)", "axxb"), (Texts{"", "xx", ""}));
}

/// Offsets of bytes as offsets of code points; empty matches are left out.
std::vector<std::pair<std::size_t, std::size_t>> codePointMatches(const std::string& pattern, const std::string& text) {
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (const auto& [begin, end] : Regex(pattern, "test").findAll(text)) {
        if (begin < end) {
            out.emplace_back(countCodePoints(text.substr(0, begin)), countCodePoints(text.substr(0, end)));
        }
    }
    return out;
}

TEST(TokenizerRegex, classesMatchWhatOnigurumaMatches) {
    std::ifstream in(vitrine::test::fixture("tokenizers/class-expressions.json"));
    const nlohmann::json rows = nlohmann::json::parse(in);
    ASSERT_GT(rows.size(), 80U);
    for (const nlohmann::json& row : rows) {
        const auto pattern = row["pattern"].get<std::string>();
        if (row["matches"].is_null()) { // refused by Oniguruma
            continue;
        }
        const auto expected = row["matches"].get<std::vector<std::pair<std::size_t, std::size_t>>>();
        EXPECT_EQ(codePointMatches(pattern, row["text"].get<std::string>()), expected) << pattern;
    }
}

TEST(TokenizerRegex, anIntersectionTakesLongTexts) {
    const std::string text(2'000'000, 'a');
    const auto found = Regex(R"([\p{L}&&[^\p{Han}]]+)", "test").findAll(text);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].second, text.size());
}

TEST(TokenizerRegex, refusesWhatItCannotMeanExactly) {
    for (const char* pattern : {"(?~a)", "(*LIMIT_MATCH=1)a", R"(\y)", "[a-[b]]"}) {
        EXPECT_THROW(Regex(pattern, "test"), base::Unsupported) << pattern;
    }
    for (const char* pattern : {"(", "[a", "a)", R"(\p{Nonsense})", R"(\p{L)", "*", R"(\u12)", "\\"}) {
        EXPECT_THROW(Regex(pattern, "test"), base::BadInput) << pattern;
    }
    EXPECT_THROW(Regex(std::string(100'000, 'a'), "test"), base::BadInput);
}

Texts split(const std::string& text, SplitBehavior behavior, bool invert = false) {
    Texts out;
    for (const Stretch& stretch : splitAt(findLiteral(text, "-"), behavior, invert)) {
        out.push_back(text.substr(stretch.begin, stretch.end - stretch.begin));
    }
    return out;
}

TEST(TokenizerSplit, hasFiveBehaviors) {
    const std::string text = "the-final--countdown-";
    EXPECT_EQ(split(text, SplitBehavior::Removed), (Texts{"the", "final", "countdown"}));
    EXPECT_EQ(split(text, SplitBehavior::Isolated), (Texts{"the", "-", "final", "-", "-", "countdown", "-"}));
    EXPECT_EQ(split(text, SplitBehavior::MergedWithPrevious), (Texts{"the-", "final-", "-", "countdown-"}));
    EXPECT_EQ(split(text, SplitBehavior::MergedWithNext), (Texts{"the", "-final", "-", "-countdown", "-"}));
    EXPECT_EQ(split(text, SplitBehavior::Contiguous), (Texts{"the", "-", "final", "--", "countdown", "-"}));
    EXPECT_EQ(split(text, SplitBehavior::Removed, true), (Texts{"-", "-", "-", "-"}));
    EXPECT_TRUE(split("", SplitBehavior::Isolated).empty());
}

} // namespace
} // namespace vitrine::engine
