// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/kernel_pack.h"

#include <random>

#include "base/error.h"
#include "tests/kernels/cuda/jit/pack_testing.h"
#include "tests/repetitions.h"

namespace vitrine::kernels {
namespace {

std::string errorOf(const TestFolder& folder) {
    try {
        KernelPack::load(folder.path());
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return "";
}

TEST(KernelPack, ReadsManifestAndFiles) {
    const TestFolder folder;
    folder.write("double.cuh", kDoubleSource);
    folder.write("manifest.json",
                 manifestOf("mine", doubleVariant("plain", R"("priority": 7, "when": "n > 0",)", kDoubleSource)));
    folder.write("manifest/more.json",
                 R"({"variants": [)" +
                     doubleVariant("other", R"("examples": [{"factor": "BF16", "n": 5}],)", kDoubleSource) + "]}");
    const KernelPack pack = KernelPack::load(folder.path());
    EXPECT_EQ(pack.name(), "mine");
    EXPECT_FALSE(pack.isBuiltin());
    ASSERT_EQ(pack.variants().size(), 2U);
    const KernelVariant& variant = pack.variants()[0];
    EXPECT_EQ(variant.name, "plain");
    EXPECT_EQ(variant.priority, 7);
    EXPECT_EQ(variant.when.text(), "n > 0");
    EXPECT_EQ(variant.specialize, std::vector<std::string>{"factor"});
    ASSERT_EQ(variant.launches.size(), 1U);
    EXPECT_EQ(variant.launches[0].grid[0].text(), "ceil_div(n, 128)");
    EXPECT_EQ(variant.launches[0].grid[1].text(), "1");
    EXPECT_TRUE(variant.launches[0].dependent);
    EXPECT_EQ(pack.variants()[1].examples[0].at("factor"), 3);
    EXPECT_EQ(pack.files().at("double.cuh"), kDoubleSource);
}

TEST(KernelPack, ErrorsNameFileAndField) {
    const TestFolder folder;
    const std::string manifest = folder.path() + "/manifest.json: ";
    EXPECT_EQ(errorOf(folder), folder.path() + "/manifest.json: there is no such file; a kernel pack needs one");
    folder.write("double.cuh", kDoubleSource);
    const auto with = [&](const std::string& more) {
        folder.write("manifest.json", manifestOf("mine", doubleVariant("plain", more, kDoubleSource)));
        return errorOf(folder);
    };
    EXPECT_EQ(with(""), "");
    EXPECT_EQ(with(R"("wenn": "1",)"), manifest + "variants[0].wenn: is not a key of this version");
    EXPECT_EQ(with(R"("when": "n >",)"), manifest + "variants[0].when: column 4: the expression ends too early");
    EXPECT_EQ(with(R"("priority": 1.5,)"), manifest + "variants[0].priority: an integer is expected");
    EXPECT_EQ(with(R"("examples": [{"n": "m"}],)"),
              manifest + "variants[0].examples[0].n: a number or the name of a dtype is expected");
    folder.write("manifest.json", R"({"vitrine_kernel_pack": 2, "name": "x"})");
    EXPECT_EQ(errorOf(folder), manifest + "manifest.vitrine_kernel_pack: this program reads version 1");
    folder.write("manifest.json", "{");
    EXPECT_NE(errorOf(folder), "");
    const std::string twice = doubleVariant("same", "", kDoubleSource);
    folder.write("manifest.json", manifestOf("mine", twice + "," + twice));
    EXPECT_EQ(errorOf(folder), manifest + "variants[1].name: double has two variants same");
}

TEST(KernelPack, AChangedFileIsRefused) {
    const TestFolder folder;
    folder.write("double.cuh", std::string(kDoubleSource) + " ");
    folder.write("manifest.json", manifestOf("mine", doubleVariant("plain", "", kDoubleSource)));
    EXPECT_NE(errorOf(folder).find("files[0].sha256: double.cuh has another checksum"), std::string::npos)
        << errorOf(folder);
    std::string outside = doubleVariant("plain", "", kDoubleSource);
    outside.replace(outside.find("double.cuh"), 10, "../x.cuh");
    folder.write("manifest.json", manifestOf("mine", outside));
    EXPECT_NE(errorOf(folder).find("files[0].path: a path inside the pack is expected"), std::string::npos);
}

TEST(KernelPack, DamagedManifestsAreRefusedNotObeyed) {
    const TestFolder folder;
    folder.write("double.cuh", kDoubleSource);
    const std::string good = manifestOf("mine", doubleVariant("plain", R"("when": "n > 0",)", kDoubleSource));
    std::mt19937 random(3);
    for (int round = 0; round < vitrine::test::repetitions(500); ++round) {
        std::string text = good;
        for (int change = 0; change < 1 + round % 3; ++change) {
            text[random() % text.size()] = static_cast<char>(random() % 96 + 32);
        }
        folder.write("manifest.json", text);
        try {
            KernelPack::load(folder.path());
        } catch (const base::BadInput&) {
        }
    }
}

TEST(KernelPack, TheBuiltinOneIsThere) {
    const KernelPack& pack = KernelPack::builtin();
    EXPECT_EQ(pack.name(), "builtin");
    EXPECT_TRUE(pack.isBuiltin());
    EXPECT_EQ(pack.files().count("device/lib/types.cuh"), 1U);
    for (const KernelVariant& variant : pack.variants()) {
        EXPECT_FALSE(variant.examples.empty()) << variant.place << ": a built-in variant needs an example to compile";
    }
}

TEST(KernelPack, ArchsOfOneMajorVersion) {
    EXPECT_TRUE(archRuns("sm_80", "sm_80"));
    EXPECT_TRUE(archRuns("sm_80", "sm_89"));
    EXPECT_FALSE(archRuns("sm_89", "sm_80"));
    EXPECT_FALSE(archRuns("sm_80", "sm_90a"));
    EXPECT_TRUE(archRuns("sm_90a", "sm_90a"));
    EXPECT_FALSE(archRuns("sm_100a", "sm_103"));
    EXPECT_EQ(archNumber("sm_90a"), 90);
    EXPECT_EQ(archNumber("sm_120"), 120);
    EXPECT_THROW(archNumber("compute_80"), base::BadInput);
    EXPECT_THROW(archNumber("sm_"), base::BadInput);
}

} // namespace
} // namespace vitrine::kernels
