// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>
#include <map>
#include <regex>

#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

/// Constants and types that a source has for itself alone.
std::vector<std::string> ownNames(std::string_view text) {
    static const std::regex kConstant(
        R"rx(^(?:inline |static )?(?:constexpr|const) (?:[\w:<>, ]+ )(k[A-Z]\w*)\s*[={\[;])rx");
    static const std::regex kType(R"rx(^(?:struct|class|enum class) (\w+)\b.*\{)rx");
    std::vector<std::string> out;
    bool own = false;
    for (const std::string_view view : splitLines(text)) {
        const std::string line(view);
        own = line == "namespace {" || (own && line != "} // namespace");
        std::smatch found;
        if (own && (std::regex_search(line, found, kConstant) || std::regex_search(line, found, kType))) {
            out.push_back(found[1].str());
        }
    }
    return out;
}

/// Several sources of a folder are compiled as one (vitrine_unity), and which ones changes with every new source.
TEST(FolderNames, SourcesOfAFolderShareNoConstantsAndTypesOfTheirOwn) {
    std::map<std::string, std::string> owners;
    for (const TreeFile& file : treeFiles()) {
        if (!file.path.ends_with(".cpp") || file.path.starts_with("tests/")) {
            continue;
        }
        const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
        for (const std::string& name : ownNames(file.text)) {
            const auto [found, isNew] = owners.emplace(folder + name, file.path);
            EXPECT_TRUE(isNew) << file.path << ": " << name << " stands in " << found->second
                               << " too; give it a name of its own";
        }
    }
    EXPECT_GT(owners.size(), 1000U) << "the walk found no names";
}

/// Types that a header defines in the namespace that it opens, as "namespace::Name".
std::vector<std::string> sharedTypes(std::string_view text) {
    static const std::regex kNamespace(R"rx(^namespace ([\w:]+) \{)rx");
    static const std::regex kType(R"rx(^(?:struct|class|enum class|enum) (\w+)(?![\w:<])[^;]*\{)rx");
    std::vector<std::string> out;
    std::string space;
    for (const std::string_view view : splitLines(text)) {
        const std::string line(view);
        std::smatch found;
        if (std::regex_search(line, found, kNamespace)) {
            space = found[1].str() + "::";
        } else if (line.starts_with("} // namespace")) {
            space.clear();
        } else if (!space.empty() && std::regex_search(line, found, kType)) {
            out.push_back(space + found[1].str());
        }
    }
    return out;
}

/// Two types of one name in one namespace are two definitions of one type to the linker, which says nothing.
TEST(FolderNames, HeadersOfANamespaceShareNoTypes) {
    std::map<std::string, std::string> owners;
    for (const TreeFile& file : treeFiles()) {
        const bool header = file.path.ends_with(".h") || file.path.ends_with(".cuh");
        if (!header || file.path.starts_with("kernels/device/")) {
            continue;
        }
        for (const std::string& name : sharedTypes(file.text)) {
            const auto [found, isNew] = owners.emplace(name, file.path);
            EXPECT_TRUE(isNew) << file.path << ": " << name << " stands in " << found->second
                               << " too; give it a name of its own";
        }
    }
    EXPECT_GT(owners.size(), 1000U) << "the walk found no types";
}

TEST(FolderNames, TypesOfHeadersAreFound) {
    const std::vector<std::string> expected = {"vitrine::ui::Row", "vitrine::ui::Kind"};
    EXPECT_EQ(sharedTypes("namespace vitrine::engine {\n"
                          "class Only;\n"
                          "} // namespace vitrine::engine\n"
                          "namespace vitrine::ui {\n"
                          "struct Row final : Base {\n"
                          "    struct Inner {\n"
                          "class Outer::Part {\n"
                          "enum class Kind : std::uint8_t { A };\n"
                          "} // namespace vitrine::ui\n"),
              expected);
}

TEST(FolderNames, NamesAreFound) {
    const std::vector<std::string> expected = {"kSums", "Row", "kNames"};
    EXPECT_EQ(ownNames("constexpr int kShared = 1;\n"
                       "namespace {\n"
                       "constexpr std::size_t kSums = 4;\n"
                       "struct Row {\n"
                       "constexpr std::array<int, 3> kNames = {};\n"
                       "} // namespace\n"
                       "constexpr int kAfter = 1;\n"),
              expected);
}

} // namespace
} // namespace vitrine::tools
