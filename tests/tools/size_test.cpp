// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <set>

#include "tests/tools/size_rules.h"
#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

bool isProduct(std::string_view path) {
    return isSource(path) && !path.starts_with("tests/");
}

TEST(Size, FunctionsAreShort) {
    std::size_t functions = 0;
    for (const TreeFile& file : treeFiles()) {
        if (!isProduct(file.path)) {
            continue;
        }
        for (const Definition& definition : definitionsOf(file.text)) {
            functions += definition.isFunction ? 1 : 0;
            EXPECT_FALSE(definition.isFunction && definition.lines > kMaxFunctionLines)
                << file.path << ':' << definition.line << ": " << definition.name << " has " << definition.lines
                << " lines; cut it by what it does";
        }
    }
    EXPECT_GT(functions, 3000U) << "the walk found no functions";
}

TEST(Size, ClassesDoOneThing) {
    // Names that several classes share: each of them is private to its owner or file.
    const std::set<std::string> shared = {"State", "Row", "Shared", "Impl"};
    std::map<std::string, std::size_t> lines;
    for (const TreeFile& file : treeFiles()) {
        if (isProduct(file.path)) {
            addClassLines(file.text, lines);
        }
    }
    for (const auto& [name, count] : lines) {
        EXPECT_TRUE(count <= kMaxClassLines || shared.contains(name))
            << name << " has " << count << " lines over all its files; cut it by what it does";
    }
    EXPECT_GT(lines.size(), 500U) << "the walk found no classes";
}

TEST(Size, DefinitionsAreFound) {
    const std::vector<Definition> found = definitionsOf("int twice(int x) {\n"
                                                        "    if (x > 0) {\n"
                                                        "        return 2 * x;\n"
                                                        "    }\n"
                                                        "    return 0;\n"
                                                        "}\n"
                                                        "\n"
                                                        "void View::paint(QPainter& painter,\n"
                                                        "                 int width) {\n"
                                                        "}\n"
                                                        "struct Size {\n"
                                                        "    int width() const {\n"
                                                        "        return 1;\n"
                                                        "    }\n"
                                                        "};\n");
    ASSERT_EQ(found.size(), 4U);
    EXPECT_EQ(found[0].name, "twice");
    EXPECT_EQ(found[0].lines, 6U);
    EXPECT_EQ(found[1].name, "View::paint");
    EXPECT_EQ(found[1].owner, "View");
    EXPECT_EQ(found[1].lines, 3U);
    EXPECT_EQ(found[2].name, "Size");
    EXPECT_FALSE(found[2].isFunction);
    EXPECT_EQ(found[3].name, "width");
}

} // namespace
} // namespace vitrine::tools
