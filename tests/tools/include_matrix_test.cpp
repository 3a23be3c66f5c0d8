// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <gtest/gtest.h>

#include "tests/tools/include_rules.h"
#include "tests/tools/tree.h"

namespace vitrine::tools {
namespace {

TEST(IncludeMatrix, HoldsInTheWholeTree) {
    std::size_t sources = 0;
    for (const TreeFile& file : treeFiles()) {
        if (!isSource(file.path)) {
            continue;
        }
        ++sources;
        const std::vector<std::string> problems = includeProblems(file.path, file.text, existsInTree);
        EXPECT_TRUE(problems.empty()) << joined(problems);
    }
    EXPECT_GT(sources, 20U) << "the walk found no sources";
}

/// The first problem of a made-up file with one include; empty when there is none.
std::string problemOf(std::string_view path, const std::string& include) {
    const std::string text = "#pragma once\n#include " + include + "\n";
    // A .cpp whose own header exists would have to include it first.
    const std::string own = std::string(path.substr(0, path.rfind('.'))) + ".h";
    const auto exists = [&](const std::string& file) { return file != "base/missing.h" && file != own; };
    const std::vector<std::string> problems = includeProblems(path, text, exists);
    return problems.empty() ? "" : problems.front();
}

TEST(IncludeMatrix, GoesDownTheRanks) {
    for (const auto& [path, include] :
         std::vector<std::pair<std::string, std::string>>{{"kernels/x.h", "\"base/y.h\""},
                                                          {"engine/model/x.cpp", "\"kernels/ops/y.h\""},
                                                          {"profiler/x.cpp", "\"base/trace.h\""},
                                                          {"ui/models/x.h", "\"sessions/y.h\""},
                                                          {"ui/views/x.h", "\"ui/widgets/y.h\""},
                                                          {"app/runner/x.cpp", "\"profiler/y.h\""},
                                                          {"app/gui/x.cpp", "\"app/runner/y.h\""},
                                                          {"kernels/ops/linear/a.h", "\"kernels/cuda/jit/b.h\""},
                                                          {"tests/engine/x_test.cpp", "\"engine/model/y.h\""}}) {
        EXPECT_EQ(problemOf(path, include), "") << path;
    }
    for (const auto& [path, include] :
         std::vector<std::pair<std::string, std::string>>{{"base/x.h", "\"kernels/y.h\""},
                                                          {"kernels/x.cpp", "\"engine/model/y.h\""},
                                                          {"engine/model/x.cpp", "\"profiler/y.h\""},
                                                          {"profiler/x.cpp", "\"sessions/y.h\""},
                                                          {"sessions/x.cpp", "\"engine/model/y.h\""},
                                                          {"ui/models/x.h", "\"ui/widgets/y.h\""},
                                                          {"ui/widgets/x.h", "\"ui/views/y.h\""},
                                                          {"ui/views/x.cpp", "\"app/runner/y.h\""},
                                                          {"app/runner/x.cpp", "\"app/gui/y.h\""},
                                                          {"app/cli/x.cpp", "\"app/gui/y.h\""},
                                                          {"engine/model/x.cpp", "\"tests/tools/y.h\""}}) {
        EXPECT_NE(problemOf(path, include), "") << path << " including " << include << " was accepted";
    }
}

TEST(IncludeMatrix, TheEngineHasAnOrder) {
    EXPECT_EQ(problemOf("engine/planning/x.cpp", "\"engine/checkpoint/y.h\""), "");
    EXPECT_EQ(problemOf("engine/model/x.cpp", "\"engine/model/y.h\""), "");
    EXPECT_EQ(problemOf("engine/checkpoint/x.cpp", "\"engine/model/y.h\""),
              "engine/checkpoint/x.cpp:2: engine/model/y.h: engine/checkpoint comes before engine/model");
    EXPECT_NE(problemOf("engine/cache/x.h", "\"engine/parallel/y.h\""), "");
    EXPECT_NE(problemOf("engine/model/x.cpp", "\"engine/y.h\""), "");
}

TEST(IncludeMatrix, TheLanguageHasAnOrderOfItsOwn) {
    EXPECT_EQ(problemOf("engine/language/builtins/x.cpp", "\"engine/language/evaluate/y.h\""), "");
    EXPECT_EQ(problemOf("engine/language/x.cpp", "\"engine/language/builtins/y.h\""), "");
    EXPECT_EQ(problemOf("engine/language/python/x.cpp", "\"engine/checkpoint/y.h\""), "");
    EXPECT_EQ(problemOf("engine/language/evaluate/x.cpp", "\"engine/language/builtins/y.h\""),
              "engine/language/evaluate/x.cpp:2: engine/language/builtins/y.h: engine/language/evaluate comes before "
              "engine/language/builtins");
    EXPECT_EQ(problemOf("engine/language/builtins/x.cpp", "\"engine/language/y.h\""),
              "engine/language/builtins/x.cpp:2: engine/language/y.h: engine/language/builtins comes before files of "
              "engine/language");
}

TEST(IncludeMatrix, DeviceCodeIsAlone) {
    EXPECT_EQ(problemOf("kernels/device/x.cuh", "\"device/abi/y.h\""), "");
    EXPECT_EQ(problemOf("resources/kernel-packs/p/x.cuh", "\"device/abi/y.h\""), "");
    EXPECT_NE(problemOf("kernels/ops/x_cuda.cpp", "\"device/abi/y.h\""), "");
    EXPECT_NE(problemOf("kernels/device/x.cuh", "\"kernels/core/tensor.h\""), "");
    EXPECT_NE(problemOf("kernels/device/x.cuh", "\"base/philox.h\""), "");
    EXPECT_NE(problemOf("kernels/device/x.cuh", "<cuda_fp16.h>"), "");
    EXPECT_NE(problemOf("kernels/device/x.cuh", "<cstdint>"), "");
}

TEST(IncludeMatrix, ThirdPartyHeadersStayWhereTheyBelong) {
    for (const auto& [path, include] :
         std::vector<std::pair<std::string, std::string>>{{"base/log.cpp", "<spdlog/logger.h>"},
                                                          {"base/codec.cpp", "<zstd.h>"},
                                                          {"engine/model/x.cpp", "<nlohmann/json.hpp>"},
                                                          {"engine/model/x.h", "<nlohmann/json_fwd.hpp>"},
                                                          {"kernels/ops/linear/matmul_cpu.cpp", "<cblas.h>"},
                                                          {"kernels/context_cuda.cpp", "<cuda.h>"},
                                                          {"engine/tokenizer/x.cpp", "<pcre2.h>"},
                                                          {"sessions/x.cpp", "<sqlite3.h>"},
                                                          {"profiler/import/x.cpp", "<sqlite3.h>"},
                                                          {"profiler/gpu/x.cpp", "<cupti.h>"},
                                                          {"ui/models/x.h", "<QAbstractTableModel>"},
                                                          {"ui/widgets/x.h", "<QWidget>"},
                                                          {"ui/widgets/x.cpp", "<QChartView>"},
                                                          {"ui/views/x.h", "<QMainWindow>"},
                                                          {"app/gui/main.cpp", "<QApplication>"},
                                                          {"app/cli/main.cpp", "<CLI/CLI.hpp>"},
                                                          {"sessions/x.cpp", "<sys/stat.h>"},
                                                          {"base/x.cpp", "<unistd.h>"},
                                                          {"kernels/x.h", "<vector>"},
                                                          {"tests/ui/x_test.cpp", "<QTest>"}}) {
        EXPECT_EQ(problemOf(path, include), "") << path;
    }
    for (const auto& [path, include] :
         std::vector<std::pair<std::string, std::string>>{{"engine/model/x.cpp", "<spdlog/spdlog.h>"},
                                                          {"base/log.h", "<spdlog/logger.h>"},
                                                          {"base/column_chunk.cpp", "<zstd.h>"},
                                                          {"engine/model/x.h", "<nlohmann/json.hpp>"},
                                                          {"engine/model/x.h", "<fmt/format.h>"},
                                                          {"kernels/ops/linear/matmul.cpp", "<cblas.h>"},
                                                          {"engine/model/x.cpp", "<cblas.h>"},
                                                          {"engine/model/x.cpp", "<cuda.h>"},
                                                          {"kernels/x.cpp", "<cuda_runtime.h>"},
                                                          {"engine/model/x.cpp", "<pcre2.h>"},
                                                          {"app/runner/x.cpp", "<sqlite3.h>"},
                                                          {"profiler/x.cpp", "<cupti.h>"},
                                                          {"ui/models/x.h", "<QWidget>"},
                                                          {"ui/models/x.h", "<QColor>"},
                                                          {"ui/models/x.h", "<QtWidgets/QWidget>"},
                                                          {"ui/views/x.h", "<QChartView>"},
                                                          {"engine/model/x.cpp", "<QString>"},
                                                          {"app/runner/x.cpp", "<QObject>"},
                                                          {"app/cli/main.cpp", "<QCoreApplication>"},
                                                          {"app/runner/x.cpp", "<CLI/CLI.hpp>"},
                                                          {"base/x.cpp", "<boost/any.hpp>"},
                                                          {"base/x.cpp", "<gtest/gtest.h>"}}) {
        EXPECT_NE(problemOf(path, include), "") << path << " including " << include << " was accepted";
    }
}

TEST(IncludeMatrix, IncludesNameFilesThatExistFromTheRoot) {
    EXPECT_NE(problemOf("kernels/x.h", "\"base/missing.h\""), "");
    EXPECT_NE(problemOf("kernels/x.h", "\"tensor.h\""), "");
    EXPECT_NE(problemOf("kernels/x.h", "\"../base/log.h\""), "");
    EXPECT_NE(problemOf("kernels/x.h", "SOME_MACRO"), "");
    EXPECT_EQ(problemOf("ui/widgets/x.cpp", "\"x.moc\""), "");
    const auto all = [](const std::string&) { return true; };
    EXPECT_TRUE(includeProblems("base/x.cpp", "// #include \"engine/model/y.h\"\n", all).empty());
    EXPECT_FALSE(includeProblems("base/x.cpp", "  #  include \"engine/model/y.h\" // why\n", all).empty());
}

TEST(IncludeMatrix, TheOwnHeaderComesFirst) {
    const auto all = [](const std::string&) { return true; };
    EXPECT_TRUE(includeProblems("base/x.cpp", "#include \"base/x.h\"\n#include <vector>\n", all).empty());
    EXPECT_FALSE(includeProblems("base/x.cpp", "#include <vector>\n#include \"base/x.h\"\n", all).empty());
    const auto none = [](const std::string&) { return false; };
    EXPECT_TRUE(includeProblems("base/x.cpp", "#include <vector>\n", none).empty());
}

} // namespace
} // namespace vitrine::tools
