// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/template_run.h"

#include <ctime>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/chat/jinja/parser.h"
#include "engine/chat/json_value.h"
#include "tests/fixture_paths.h"

namespace vitrine::engine::jinja {
namespace {

using Json = nlohmann::ordered_json;

Text rendered(const std::string& source, const Json& variables = Json::object()) {
    const auto tree = parseTemplate(source);
    Heap heap;
    std::tm now{};
    now.tm_year = 126;
    now.tm_mon = 10;
    now.tm_mday = 29;
    TemplateRun run(*tree, heap, now);
    std::vector<std::pair<std::string, Value>> values;
    for (const auto& [name, value] : variables.items()) {
        values.emplace_back(name, templateValue(heap, value, kInput));
    }
    return run.render(values);
}

std::string problemOf(const std::string& source) {
    try {
        rendered(source);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return {};
}

// The texts are what Jinja 3.1 printed in transformers' environment (tests/fixtures/chat/make.py).
TEST(JinjaTemplateRun, PrintsWhatJinjaPrints) {
    std::ifstream file(test::fixture("chat/templates.json"));
    const Json sets = Json::parse(file);
    std::size_t compared = 0;
    for (const Json& set : sets) {
        for (const Json& each : set["cases"]) {
            const auto source = each["template"].get<std::string>();
            EXPECT_EQ(rendered(source, set["variables"]).bytes(), each["text"].get<std::string>()) << source;
            ++compared;
        }
    }
    EXPECT_EQ(compared, 354U);
}

TEST(JinjaTemplateRun, TextsKeepTheOriginOfTheirLetters) {
    const Text text = rendered(
        "<a>{{ x | upper | replace('B', '-') }}{% generation %}{{ 'n' ~ x[:1] }}{% endgeneration %}", {{"x", "abc"}});
    ASSERT_EQ(text.bytes(), "<a>A-Cna");
    const std::vector<Origin> expected = {0, 0, 0, kInput, 0, kInput, kGenerated, kGenerated | kInput};
    EXPECT_EQ(text.origins(), expected);
}

TEST(JinjaTemplateRun, TellsTheDateOfItsCaller) {
    EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y') }}").bytes(), "29 Nov 2026");
}

TEST(JinjaTemplateRun, ErrorsNameLineAndColumn) {
    EXPECT_EQ(problemOf("a\n{{ x.y }}").substr(0, 17), "line 2, column 5:");
    EXPECT_NE(problemOf("{{ 'a' | nope }}").find("the filter nope is not known"), std::string::npos);
    EXPECT_NE(problemOf("{% if x %}").find("endif is missing"), std::string::npos);
    EXPECT_NE(problemOf("{% include 'x' %}").find("second template"), std::string::npos);
    EXPECT_NE(problemOf("{{ [1].append(2) }}").find("must not change"), std::string::npos);
    EXPECT_THROW(rendered("{{ raise_exception('no') }}"), TemplateRefusal);
}

TEST(JinjaTemplateRun, WorkIsBounded) {
    EXPECT_NE(problemOf("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"), "");
    EXPECT_NE(problemOf("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "");
    EXPECT_NE(problemOf("{{ 'x' * 99999999999 }}"), "");
    EXPECT_NE(problemOf("{{ '%i' % 3e58 }}").find("64 bits"), std::string::npos);
    EXPECT_NE(problemOf("{{ 9223372036854775807 | round(-19) }}").find("64 bits"), std::string::npos);
    EXPECT_NE(problemOf("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"), "");
    EXPECT_NE(problemOf("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ [ns] == [ns] }}{{ ns.a }}"), "");
}

} // namespace
} // namespace vitrine::engine::jinja
