// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/kernel_library.h"

#include <array>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "kernels/cuda/jit/nvrtc.h"
#include "tests/kernels/cuda/jit/pack_testing.h"

namespace vitrine::kernels {
namespace {

class Library : public testing::Test {
protected:
    KernelLibraryOptions options() const {
        KernelLibraryOptions out;
        out.packs = {folder_.path()};
        out.cacheFolder = folder_.path() + "/cache";
        return out;
    }
    void writePack(const std::string& variants) const {
        folder_.write("double.cuh", kDoubleSource);
        folder_.write("manifest.json", manifestOf("mine", variants));
    }
    KernelCall call(std::int64_t factor, std::int64_t n) {
        variables_ = {{{"factor", factor}, {"n", n}}};
        KernelCall out;
        out.family = "double";
        out.variables = variables_;
        return out;
    }

    TestFolder folder_;
    std::array<KernelVariable, 2> variables_;
};

DeviceArch h200() {
    return {};
}

TEST_F(Library, AnUnknownFamilyFitsNothing) {
    writePack(doubleVariant("plain", "", kDoubleSource));
    KernelLibrary library(h200(), options());
    EXPECT_TRUE(library.fits(call(2, 4)));
    KernelCall later = call(2, 4);
    later.abi = 2;
    KernelCall unknown = call(2, 4);
    unknown.family = "triple";
    EXPECT_FALSE(library.fits(unknown));
    try {
        library.entry(unknown);
        FAIL();
    } catch (const base::Unsupported& error) {
        EXPECT_EQ(error.message(), "kernel triple: no variant fits (factor=2 n=4 on sm_90a): no pack has this family");
    }
    KernelLibrary fresh(h200(), options());
    EXPECT_FALSE(fresh.fits(later)) << "a variant of another parameter version must not run";
}

TEST_F(Library, SaysWhyNothingFits) {
    writePack(doubleVariant("even", R"("when": "n % 2 == 0",)", kDoubleSource));
    KernelLibrary library(h200(), options());
    EXPECT_FALSE(library.fits(call(2, 3)));
    try {
        library.entry(call(2, 3));
        FAIL();
    } catch (const base::Unsupported& error) {
        EXPECT_EQ(error.message(), "kernel double: no variant fits (factor=2 n=3 on sm_90a): mine/even: when failed "
                                   "(n % 2 == 0)");
    }
    DeviceArch ampere;
    ampere.name = "sm_100";
    ampere.number = 100;
    KernelLibrary blackwell(ampere, options());
    EXPECT_FALSE(blackwell.fits(call(2, 2)));
    KernelLibraryOptions wrong = options();
    wrong.overrides = {{"double", "odd"}};
    EXPECT_THROW(KernelLibrary(h200(), wrong), base::BadInput);
    wrong.overrides = {{"triple", "odd"}};
    EXPECT_THROW(KernelLibrary(h200(), wrong), base::BadInput);
}

TEST_F(Library, KnowsWhichFamiliesTheUserNamed) {
    writePack(doubleVariant("plain", "", kDoubleSource));
    EXPECT_FALSE(KernelLibrary(h200(), options()).named("double"));
    KernelLibraryOptions named = options();
    named.overrides = {{"Double", "plain"}};
    const KernelLibrary library(h200(), named);
    EXPECT_TRUE(library.named("double"));
    EXPECT_FALSE(library.named("triple"));
}

TEST_F(Library, CompilesOnceAndCaches) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    writePack(doubleVariant("slow", R"("priority": 1,)", kDoubleSource) + "," +
              doubleVariant("even", R"("priority": 5, "when": "n % 2 == 0",)", kDoubleSource));
    {
        KernelLibrary library(h200(), options());
        const KernelLibrary::Entry& entry = library.entry(call(2, 2048));
        const KernelUse& use = KernelLibrary::use(entry);
        EXPECT_EQ(use.variant, "even");
        EXPECT_EQ(use.pack, "mine");
        EXPECT_EQ(use.reason, "highest priority that fits");
        EXPECT_EQ(use.specialization, "factor=2");
        EXPECT_EQ(use.origin.substr(0, 11), "compiled in");
        ASSERT_EQ(use.kernels.size(), 1U);
        EXPECT_EQ(use.kernels[0].entry, "twice");
        EXPECT_GT(use.kernels[0].registers, 0);
        EXPECT_EQ(use.kernels[0].spillBytes, 0);
        const std::vector<KernelLaunch> launches = KernelLibrary::launches(entry, call(2, 2048));
        ASSERT_EQ(launches.size(), 1U);
        EXPECT_EQ(launches[0].grid, (std::array<unsigned, 3>{16, 1, 1}));
        EXPECT_EQ(launches[0].block, (std::array<unsigned, 3>{128, 1, 1}));
        EXPECT_EQ(launches[0].sharedBytes, 64U);
        EXPECT_TRUE(launches[0].dependent);
        EXPECT_TRUE(KernelLibrary::launches(entry, call(2, 0)).empty()) << "a grid of 0 is left out";
        EXPECT_EQ(std::memcmp(KernelLibrary::cubin(entry).data(),
                              "\x7f"
                              "ELF",
                              4),
                  0);
        // Other shapes, same specialisation: the same program.
        EXPECT_EQ(&library.entry(call(2, 8)), &entry);
        EXPECT_NE(&library.entry(call(3, 8)), &entry);
        const KernelUse& odd = KernelLibrary::use(library.entry(call(2, 3)));
        EXPECT_EQ(odd.variant, "slow");
        EXPECT_EQ(odd.reason, "fallback: mine/even: when failed (n % 2 == 0)");
        EXPECT_EQ(library.uses().size(), 3U);
        EXPECT_EQ(library.uses()[0].calls, 2U);
    }
    KernelLibraryOptions named = options();
    named.overrides = {{"Double", "mine/slow"}};
    KernelLibrary again(h200(), named);
    again.prefetch(call(2, 4));
    again.waitForPrefetch(nullptr, {});
    const KernelUse& use = KernelLibrary::use(again.entry(call(2, 4)));
    EXPECT_EQ(use.variant, "slow");
    EXPECT_EQ(use.reason, "named by --kernel");
    EXPECT_EQ(use.origin, "cubin cache") << "the sources and macros of both variants are the same";
    EXPECT_EQ(use.kernels[0].entry, "twice");
}

TEST_F(Library, ManyThreadsWaitForOneCompilation) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    writePack(doubleVariant("plain", "", kDoubleSource));
    KernelLibrary library(h200(), options());
    const KernelCall shared = call(5, 4);
    std::array<const KernelLibrary::Entry*, 4> entries{};
    std::vector<std::thread> threads;
    for (const KernelLibrary::Entry*& entry : entries) {
        threads.emplace_back([&] { entry = &library.entry(shared); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(entries[0], entries[3]);
    EXPECT_EQ(library.uses()[0].calls, 4U);
}

TEST_F(Library, ANextRunKeepsWhatIsCompiledAndCountsAnew) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    writePack(doubleVariant("plain", "", kDoubleSource));
    KernelLibrary library(h200(), options());
    const KernelLibrary::Entry* const entry = &library.entry(call(5, 4));
    library.entry(call(6, 4));
    EXPECT_GT(library.waitedSeconds(), 0);
    library.beginRun();
    EXPECT_TRUE(library.uses().empty());
    EXPECT_EQ(library.waitedSeconds(), 0);
    EXPECT_EQ(&library.entry(call(5, 4)), entry);
    const std::vector<KernelUse> uses = library.uses();
    ASSERT_EQ(uses.size(), 1U) << "what this run has not asked for is not its own";
    EXPECT_EQ(uses[0].calls, 1U);
    EXPECT_EQ(uses[0].origin, "kept from the run before");
    EXPECT_EQ(uses[0].compileSeconds, 0);
    EXPECT_EQ(library.waitedSeconds(), 0);
}

TEST_F(Library, SaysOnceWhichPackAnswersAFamily) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    writePack(doubleVariant("plain", "", kDoubleSource));
    std::vector<std::string> lines;
    base::setLogSink([&](base::LogLevel level, std::string_view text) {
        if (level == base::LogLevel::Info && text.starts_with("using ")) {
            lines.emplace_back(text);
        }
    });
    KernelLibrary cold(h200(), options());
    cold.entry(call(2, 3));
    cold.entry(call(2, 4));
    EXPECT_GT(cold.waitedSeconds(), 0);
    KernelLibrary warm(h200(), options());
    warm.entry(call(2, 3));
    base::setLogSink({});
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_TRUE(lines[0].starts_with("using Double from pack mine (sm_90a, compiled in ")) << lines[0];
    EXPECT_EQ(lines[1], "using Double from pack mine (sm_90a, cubin cache)");
}

TEST_F(Library, ASourceThatDoesNotCompileShowsTheLog) {
    if (Nvrtc::find() == nullptr) {
        GTEST_SKIP() << Nvrtc::whyMissing();
    }
    const std::string broken = "extern \"C\" __global__ void twice() { nothing(); }\n";
    folder_.write("double.cuh", broken);
    folder_.write("manifest.json", manifestOf("mine", doubleVariant("plain", "", broken)));
    KernelLibrary library(h200(), options());
    library.prefetch(call(2, 4));
    library.waitForPrefetch(nullptr, {});
    try {
        library.entry(call(2, 4));
        FAIL();
    } catch (const KernelCompileError& error) {
        EXPECT_EQ(error.kind(), base::ErrorKind::BadInput);
        EXPECT_NE(error.message().find("does not compile for sm_90a"), std::string::npos) << error.message();
        EXPECT_NE(error.message().find("nothing"), std::string::npos) << error.message();
        EXPECT_NE(error.log().find("identifier \"nothing\" is undefined"), std::string::npos) << error.log();
    }
}

TEST(CompileLog, GivesRegistersSpillsAndWarnings) {
    CompiledKernel out;
    readCompileLog("ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
                   "ptxas info    : Function properties for a\n"
                   "ptxas         .     336 bytes stack frame, 672 bytes spill stores, 696 bytes spill loads\n"
                   "ptxas info    : Used 32 registers, used 1 barriers, 256 bytes smem\n"
                   "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
                   "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                   "ptxas info    : Used 168 registers, used 1 barriers\n"
                   "ptxas info    : (C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized\n",
                   out);
    ASSERT_EQ(out.resources.size(), 2U);
    EXPECT_EQ(out.resources[0].registers, 32);
    EXPECT_EQ(out.resources[0].spillBytes, 672);
    EXPECT_EQ(out.resources[0].staticShared, 256);
    EXPECT_EQ(out.resources[1].entry, "b");
    EXPECT_EQ(out.resources[1].registers, 168);
    ASSERT_EQ(out.warnings.size(), 2U);
    EXPECT_EQ(out.warnings[0], "a: spills 672 bytes");
    EXPECT_NE(out.warnings[1].find("C7509"), std::string::npos);
}

} // namespace
} // namespace vitrine::kernels
