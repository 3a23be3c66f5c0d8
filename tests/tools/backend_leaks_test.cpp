// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The engine asks a context what it can do and a device what it has; which backend that is, it does not ask.

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <regex>
#include <string>
#include <string_view>

#include "tests/tools/include_rules.h"
#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

/// The question that a source asks after the backend; empty when it asks none.
std::string_view backendQuestionIn(std::string_view text) {
    constexpr std::array<std::string_view, 8> kQuestions = {
        "isMeta()", "cpu()", "cuda()", "meta()", "CpuContext", "MetaContext", "CudaContext", "arch.starts_with"};
    for (const std::string_view question : kQuestions) {
        if (text.find(question) != std::string_view::npos) {
            return question;
        }
    }
    return {};
}

/// Files that compare names of backends, because the name is what they are asked for.
constexpr std::array<std::string_view, 1> kCompare = {
    // The option --backend names one, and the context that it asks for is made here.
    "engine/workload/common/run_setup.cpp",
};

/// The first comparison of a backend with a name; empty where there is none. Giving a backend to a context that is made
/// is none.
std::string backendComparisonIn(std::string_view text) {
    static const std::regex kComparison(R"(backend\(\)\s*[=!]=|[=!]=\s*(\w+::)*Backend::\w+|)"
                                        R"((\w+::)*Backend::\w+\s*[=!]=|case\s+(\w+::)*Backend::\w+|)"
                                        R"(switch\s*\([^)]*[bB]ackend\(\))");
    for (const std::string_view line : splitLines(text)) {
        if (std::match_results<std::string_view::const_iterator> found;
            line.find("ackend") != std::string_view::npos &&
            std::regex_search(line.begin(), line.end(), found, kComparison)) {
            return found.str();
        }
    }
    return {};
}

TEST(BackendLeaks, EngineAsksForCapabilities) {
    std::size_t sources = 0;
    for (const TreeFile& file : treeFiles()) {
        if (isSource(file.path) && file.path.starts_with("engine/")) {
            ++sources;
            EXPECT_EQ(backendQuestionIn(file.text), "")
                << file.path << ": ask Context::can() or DeviceTraits::features";
        }
    }
    EXPECT_GT(sources, 20U) << "the walk found no sources";
}

TEST(BackendLeaks, EngineComparesNoBackends) {
    for (const TreeFile& file : treeFiles()) {
        if (!isSource(file.path) || !file.path.starts_with("engine/")) {
            continue;
        }
        if (std::ranges::find(kCompare, file.path) == kCompare.end()) {
            EXPECT_EQ(backendComparisonIn(file.text), "")
                << file.path << ": ask Context::can() or DeviceTraits::features";
        } else {
            EXPECT_NE(backendComparisonIn(file.text), "") << file.path << " compares none: take it from the list";
        }
    }
}

TEST(BackendLeaks, ComparisonsAreFound) {
    EXPECT_EQ(backendComparisonIn("int x;\nif (context.backend() == wanted) {\n"), "backend() ==");
    EXPECT_EQ(backendComparisonIn("context.backend() != kernels::Backend::Meta"), "backend() !=");
    EXPECT_EQ(backendComparisonIn("return backend == kernels::Backend::Cuda;"), "== kernels::Backend::Cuda");
    EXPECT_EQ(backendComparisonIn("if (Backend::Cpu != backend_) {"), "Backend::Cpu !=");
    EXPECT_EQ(backendComparisonIn("    case Backend::Cpu:"), "case Backend::Cpu");
    EXPECT_EQ(backendComparisonIn("switch (context.backend()) {"), "switch (context.backend()");
    EXPECT_EQ(backendComparisonIn("options.backend = kernels::Backend::Meta;"), "");
    EXPECT_EQ(backendComparisonIn("kernels::backendName(context.backend())"), "");
}

TEST(BackendLeaks, QuestionsAreFound) {
    EXPECT_EQ(backendQuestionIn("if (context.isMeta()) {"), "isMeta()");
    EXPECT_EQ(backendQuestionIn("if (context_.cuda() != nullptr) {"), "cuda()");
    EXPECT_EQ(backendQuestionIn("traits.arch.starts_with(\"sm_\")"), "arch.starts_with");
    EXPECT_EQ(backendQuestionIn("if (context.can().computesValues) {"), "");
}

} // namespace
} // namespace vitrine::tools
