// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// `vitrine kernels`: packs, what an arch would run of them, the cache of compiled kernels. Needs no GPU.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/resource_path.h"
#include "kernels/cuda/jit/cubin_cache.h"
#include "tests/app/program.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::ProgramResult;
using test::TempFolder;
using testing::HasSubstr;

const std::string kPack = base::resourcePath("kernel-packs/simple-moe");

json jsonOf(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "kernels");
    arguments.emplace_back("--json");
    const ProgramResult result = test::vitrine(arguments);
    EXPECT_EQ(result.exitCode, 0) << result.err;
    return json::parse(result.out);
}

std::optional<json> rowOf(const json& report, const std::string& pack, const std::string& variant) {
    for (const json& row : report["rows"]) {
        if (row["family"] == "expert_gemm" && row["pack"] == pack && row["variant"] == variant) {
            return row;
        }
    }
    return std::nullopt;
}

TEST(KernelsCommand, ListsWhatAnArchWouldRun) {
    const json hopper = jsonOf({"--arch", "sm_90a"});
    EXPECT_EQ(hopper["arch"], "sm_90a");
    EXPECT_EQ(hopper["packs"].size(), 1U);
    EXPECT_TRUE(rowOf(hopper, "builtin", "hopper")->at("runs"));
    EXPECT_GT(rowOf(hopper, "builtin", "hopper")->at("chosen"), 0);
    EXPECT_EQ(rowOf(hopper, "builtin", "hopper")->at("archs"), json::array({"sm_90a"}));

    const json ampere = jsonOf({"--arch", "sm_80"});
    EXPECT_FALSE(rowOf(ampere, "builtin", "hopper")->at("runs"));
    EXPECT_EQ(rowOf(ampere, "builtin", "hopper")->at("chosen"), 0);
    EXPECT_EQ(rowOf(ampere, "builtin", "portable")->at("chosen"), rowOf(ampere, "builtin", "portable")->at("examples"));
}

TEST(KernelsCommand, ANamedPackGoesFirstAndAnOverrideBeforeIt) {
    const json named = jsonOf({"--arch", "sm_90a", "--kernel-pack", kPack});
    EXPECT_EQ(named["packs"].size(), 2U);
    const json simple = rowOf(named, "simple-moe", "warp").value();
    EXPECT_GT(simple["chosen"], 0);
    const json unnamed = rowOf(jsonOf({"--arch", "sm_90a"}), "builtin", "hopper").value();
    EXPECT_LT(rowOf(named, "builtin", "hopper")->at("chosen"), unnamed["chosen"])
        << "what the pack takes is the pack's";

    const json forced = jsonOf({"--arch", "sm_90a", "--kernel-pack", kPack, "--kernel", "ExpertGemm=builtin/portable"});
    EXPECT_GT(rowOf(forced, "builtin", "portable")->at("chosen"), 0);
    EXPECT_EQ(rowOf(forced, "simple-moe", "warp")->at("chosen"), 0);
}

TEST(KernelsCommand, SaysWhatIsWrong) {
    const auto refusal = [](const std::vector<std::string>& arguments) {
        const ProgramResult result = test::vitrine(arguments);
        EXPECT_EQ(result.exitCode, 2) << result.err;
        return result.err;
    };
    EXPECT_THAT(refusal({"kernels", "--arch", "hopper"}), HasSubstr("'hopper' is no arch"));
    EXPECT_THAT(refusal({"kernels", "--kernel-pack", "/no/such"}), HasSubstr("/no/such"));
    EXPECT_THAT(refusal({"kernels", "--kernel", "RmsNorm"}), HasSubstr("must be OP=VARIANT"));
    EXPECT_THAT(refusal({"kernels", "--kernel", "RmsNorm=nope"}), HasSubstr("has no variant 'nope'"));
    EXPECT_THAT(refusal({"kernels", "--cache", "eat"}), HasSubstr("--cache"));
}

TEST(KernelsCommand, ListsVerifiesAndClearsTheCache) {
    const TempFolder folder;
    ASSERT_EQ(::setenv("VITRINE_CACHE_DIR", folder.file("").c_str(), 1), 0);
    {
        kernels::CubinCache cache("", std::uint64_t{1} << 30);
        kernels::CompiledKernel kernel;
        kernel.image = {1, 2, 3, 4};
        kernel.label = "rms_norm/registers sm_90a dim=8";
        cache.store(std::string(64, 'a'), kernel);
        cache.store(std::string(64, 'b'), kernel);
    }
    const json listed = jsonOf({"--cache", "list"});
    EXPECT_EQ(listed["rows"].size(), 2U);
    EXPECT_EQ(listed["rows"][0]["label"], "rms_norm/registers sm_90a dim=8");
    EXPECT_EQ(listed["damaged"], 0);
    EXPECT_EQ(test::vitrine({"kernels", "--cache", "verify"}).exitCode, 0);

    const auto files = std::filesystem::directory_iterator(listed["folder"].get<std::string>());
    std::ofstream(files->path(), std::ios::app) << "more";
    const ProgramResult damaged = test::vitrine({"kernels", "--cache", "verify"});
    EXPECT_EQ(damaged.exitCode, 1);
    EXPECT_THAT(damaged.out, HasSubstr("damaged; it will be compiled again"));

    EXPECT_EQ(jsonOf({"--cache", "clear"})["removed"], 2);
    EXPECT_TRUE(jsonOf({"--cache", "list"})["rows"].empty());
    ::unsetenv("VITRINE_CACHE_DIR");
}

} // namespace
} // namespace vitrine
