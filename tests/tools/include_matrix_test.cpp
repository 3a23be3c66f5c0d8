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
         std::vector<std::pair<std::string, std::string>>{{"kernels/core/x.h", "\"base/y.h\""},
                                                          {"engine/model/x.cpp", "\"kernels/ops/y.h\""},
                                                          {"profiler/record/x.cpp", "\"base/trace.h\""},
                                                          {"ui/models/run/x.h", "\"sessions/y.h\""},
                                                          {"ui/views/run/x.h", "\"ui/widgets/y.h\""},
                                                          {"app/runner/host/x.cpp", "\"profiler/y.h\""},
                                                          {"app/gui/x.cpp", "\"app/runner/y.h\""},
                                                          {"kernels/ops/linear/a.h", "\"kernels/cuda/jit/b.h\""},
                                                          {"tests/engine/x_test.cpp", "\"engine/model/y.h\""}}) {
        EXPECT_EQ(problemOf(path, include), "") << path;
    }
    for (const auto& [path, include] :
         std::vector<std::pair<std::string, std::string>>{{"base/x.h", "\"kernels/y.h\""},
                                                          {"kernels/core/x.cpp", "\"engine/model/y.h\""},
                                                          {"engine/model/x.cpp", "\"profiler/y.h\""},
                                                          {"profiler/record/x.cpp", "\"sessions/y.h\""},
                                                          {"sessions/x.cpp", "\"engine/model/y.h\""},
                                                          {"ui/models/run/x.h", "\"ui/widgets/y.h\""},
                                                          {"ui/widgets/base/x.h", "\"ui/views/y.h\""},
                                                          {"ui/views/run/x.cpp", "\"app/runner/y.h\""},
                                                          {"app/runner/host/x.cpp", "\"app/gui/y.h\""},
                                                          {"app/cli/commands/x.cpp", "\"app/gui/y.h\""},
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
}

TEST(IncludeMatrix, ASourceInAFolderWithoutARuleIsRefused) {
    const auto all = [](const std::string&) { return true; };
    for (const std::string path : {"foo/bar.cpp", "bar.cpp", "app/bar.h", "ui/foo/bar.cpp", "kernel/core/bar.cuh"}) {
        EXPECT_EQ(includeProblems(path, "", all),
                  std::vector{path + ": is in no folder that tests/tools/include_rules.cpp knows"});
    }
    for (const std::string path : {"base/bar.cpp", "base/foo/bar.cpp", "tests/foo/bar_test.cpp", "tools/bar.cpp",
                                   "cmake/precompiled/bar.h", "kernels/device/foo/bar.cuh", "app/gui/bar.cpp"}) {
        EXPECT_TRUE(includeProblems(path, "", all).empty()) << path;
    }
}

TEST(IncludeMatrix, ASourceWithoutAPlaceInTheInnerOrderIsRefused) {
    const auto all = [](const std::string&) { return true; };
    for (const auto& [path, folder] :
         std::vector<std::pair<std::string, std::string>>{{"engine/bar.cpp", "engine"},
                                                          {"engine/foo/bar.h", "engine"},
                                                          {"engine/workload/bar.cpp", "engine/workload"},
                                                          {"kernels/bar.cpp", "kernels"},
                                                          {"kernels/ops/foo/bar.cpp", "kernels/ops"},
                                                          {"profiler/bar.cpp", "profiler"},
                                                          {"ui/models/bar.h", "ui/models"},
                                                          {"ui/widgets/foo/bar.h", "ui/widgets"},
                                                          {"ui/views/foo/bar.cpp", "ui/views"},
                                                          {"app/runner/bar.cpp", "app/runner"},
                                                          {"app/cli/foo/bar.cpp", "app/cli"}}) {
        // Also where it includes nothing, or nothing of its own folder.
        for (const std::string text : {"", "#include <vector>\n#include \"base/log.h\"\n"}) {
            EXPECT_EQ(includeProblems(path, text, [](const std::string& file) { return file == "base/log.h"; }),
                      std::vector{path + ": is in no folder of " + folder +
                                  " that has a place in its order; tests/tools/include_rules.cpp lists them"});
        }
    }
    EXPECT_TRUE(includeProblems("kernels/ops/bar.cpp", "", all).empty());
    EXPECT_TRUE(includeProblems("app/cli/bar.cpp", "", all).empty());
    EXPECT_EQ(problemOf("engine/model/x.cpp", "\"engine/y.h\""),
              "engine/model/x.cpp:2: engine/y.h: is in no folder of engine that has a place in its order");
}

TEST(IncludeMatrix, WorkloadsViewsAndCommandsHaveAnOrder) {
    EXPECT_EQ(problemOf("engine/workload/bench/x.cpp", "\"engine/workload/batch/y.h\""), "");
    EXPECT_EQ(problemOf("engine/workload/common/x.h", "\"engine/workload/load/y.h\""),
              "engine/workload/common/x.h:2: engine/workload/load/y.h: engine/workload/common comes before "
              "engine/workload/load");
    EXPECT_EQ(problemOf("ui/views/shell/x.cpp", "\"ui/views/run/y.h\""), "");
    EXPECT_EQ(problemOf("ui/views/run/x.cpp", "\"ui/views/shell/y.h\""),
              "ui/views/run/x.cpp:2: ui/views/shell/y.h: ui/views/run comes before ui/views/shell");
    EXPECT_EQ(problemOf("app/runner/recording/x.cpp", "\"app/runner/host/y.h\""),
              "app/runner/recording/x.cpp:2: app/runner/host/y.h: app/runner/recording comes before app/runner/host");
    EXPECT_EQ(problemOf("app/cli/x.cpp", "\"app/cli/commands/y.h\""), "");
    EXPECT_EQ(problemOf("app/cli/commands/x.cpp", "\"app/cli/y.h\""),
              "app/cli/commands/x.cpp:2: app/cli/y.h: app/cli/commands comes before files of app/cli");
    EXPECT_EQ(problemOf("kernels/ops/x.cpp", "\"kernels/ops/fused/y.h\""), "");
    EXPECT_EQ(problemOf("kernels/ops/linear/x.h", "\"kernels/ops/y.h\""),
              "kernels/ops/linear/x.h:2: kernels/ops/y.h: kernels/ops/linear comes before files of kernels/ops");
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
                                                          {"kernels/context/x_cuda.cpp", "<cuda.h>"},
                                                          {"engine/tokenizer/x.cpp", "<pcre2.h>"},
                                                          {"sessions/x.cpp", "<sqlite3.h>"},
                                                          {"profiler/import/x.cpp", "<sqlite3.h>"},
                                                          {"profiler/gpu/x.cpp", "<cupti.h>"},
                                                          {"ui/models/run/x.h", "<QAbstractTableModel>"},
                                                          {"ui/widgets/base/x.h", "<QWidget>"},
                                                          {"ui/widgets/plots/x.cpp", "<QChartView>"},
                                                          {"ui/views/shell/x.h", "<QMainWindow>"},
                                                          {"app/gui/main.cpp", "<QApplication>"},
                                                          {"app/cli/main.cpp", "<CLI/CLI.hpp>"},
                                                          {"sessions/x.cpp", "<sys/stat.h>"},
                                                          {"base/x.cpp", "<unistd.h>"},
                                                          {"kernels/core/x.h", "<vector>"},
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
                                                          {"kernels/core/x.cpp", "<cuda_runtime.h>"},
                                                          {"engine/model/x.cpp", "<pcre2.h>"},
                                                          {"app/runner/runs/x.cpp", "<sqlite3.h>"},
                                                          {"profiler/record/x.cpp", "<cupti.h>"},
                                                          {"ui/models/run/x.h", "<QWidget>"},
                                                          {"ui/models/run/x.h", "<QColor>"},
                                                          {"ui/models/run/x.h", "<QtWidgets/QWidget>"},
                                                          {"ui/views/run/x.h", "<QChartView>"},
                                                          {"engine/model/x.cpp", "<QString>"},
                                                          {"app/runner/host/x.cpp", "<QObject>"},
                                                          {"app/cli/main.cpp", "<QCoreApplication>"},
                                                          {"app/runner/host/x.cpp", "<CLI/CLI.hpp>"},
                                                          {"base/x.cpp", "<boost/any.hpp>"},
                                                          {"base/x.cpp", "<gtest/gtest.h>"}}) {
        EXPECT_NE(problemOf(path, include), "") << path << " including " << include << " was accepted";
    }
}

TEST(IncludeMatrix, IncludesNameFilesThatExistFromTheRoot) {
    EXPECT_NE(problemOf("kernels/core/x.h", "\"base/missing.h\""), "");
    EXPECT_NE(problemOf("kernels/core/x.h", "\"tensor.h\""), "");
    EXPECT_NE(problemOf("kernels/core/x.h", "\"../base/log.h\""), "");
    EXPECT_NE(problemOf("kernels/core/x.h", "SOME_MACRO"), "");
    EXPECT_EQ(problemOf("ui/widgets/base/x.cpp", "\"x.moc\""), "");
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
