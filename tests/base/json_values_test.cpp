// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/json_values.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vitrine::base {
namespace {

TEST(JsonValues, AreFoundByType) {
    const nlohmann::json object =
        parsedObject(R"({"name": "run", "bytes": 12, "rate": 0.5, "below": -1, "notes": ["first", 2]})");
    EXPECT_EQ(textAt(object, "name"), "run");
    EXPECT_EQ(textAt(object, "bytes"), "");
    EXPECT_EQ(textAt(object, "missing"), "");
    EXPECT_EQ(numberAt(object, "rate"), 0.5);
    EXPECT_EQ(numberAt(object, "name"), std::nullopt);
    EXPECT_EQ(bytesAt(object, "bytes"), 12U);
    EXPECT_EQ(bytesAt(object, "below"), std::nullopt);
    EXPECT_EQ(integerAt(object, "below"), -1);
    EXPECT_EQ(integerAt(object, "rate"), std::nullopt);
    EXPECT_EQ(integerAt(object, "name"), std::nullopt);
    EXPECT_EQ(integerAt(parsedObject(R"({"n": 18446744073709551615})"), "n"), std::nullopt);
}

TEST(JsonValues, OfATextThatIsNoObjectAreNothing) {
    for (const char* text : {"", "[1]", "{\"a\"", "3"}) {
        EXPECT_FALSE(holdsObject(text)) << text;
        EXPECT_EQ(textIn(text, "a"), "") << text;
    }
    EXPECT_TRUE(holdsObject("{}"));
}

TEST(JsonValues, OfATextAreThoseOfItsObject) {
    const char* const text = R"({"a": "b", "n": 7, "list": ["first", "second"], "numbers": [1]})";
    EXPECT_EQ(textIn(text, "a"), "b");
}

TEST(JsonValues, NumbersGoByTheirPaths) {
    const auto numbers = numbersByPath(R"({"a": {"b": 2}, "rows": [{"name": "x", "s": 3}, {"s": 4}], "ids": [1, 2]})");
    EXPECT_EQ(numbers, (std::map<std::string, double>{{"a.b", 2}, {"rows.x.s", 3}, {"rows.1.s", 4}}));
    EXPECT_TRUE(numbersByPath("{\"a\"").empty());
}

TEST(JsonValues, CompactTextReplacesWhatIsNoUtf8) {
    EXPECT_EQ(compactText(nlohmann::json{{"a", "\xff"}}), "{\"a\":\"\xef\xbf\xbd\"}");
}

} // namespace
} // namespace vitrine::base
