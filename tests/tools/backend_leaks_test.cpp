// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The engine asks a context what it can do and a device what it has; which backend that is, it does not ask.

#include <array>
#include <gtest/gtest.h>
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

TEST(BackendLeaks, QuestionsAreFound) {
    EXPECT_EQ(backendQuestionIn("if (context.isMeta()) {"), "isMeta()");
    EXPECT_EQ(backendQuestionIn("if (context_.cuda() != nullptr) {"), "cuda()");
    EXPECT_EQ(backendQuestionIn("traits.arch.starts_with(\"sm_\")"), "arch.starts_with");
    EXPECT_EQ(backendQuestionIn("if (context.can().computesValues) {"), "");
}

} // namespace
} // namespace vitrine::tools
