// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/cubin_cache.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/log.h"
#include "tests/kernels/cuda/jit/pack_testing.h"

namespace vitrine::kernels {
namespace {

CompiledKernel kernelOf(std::size_t bytes, std::uint8_t value) {
    CompiledKernel kernel;
    kernel.image.assign(bytes, value);
    KernelResources resources;
    resources.entry = "twice";
    resources.registers = 40;
    resources.spillBytes = 8;
    resources.staticShared = 512;
    kernel.resources.push_back(resources);
    kernel.warnings = {"twice: spills 8 bytes"};
    kernel.seconds = 0.5;
    kernel.label = "double/plain factor=2";
    return kernel;
}

std::string keyOf(int number) {
    return base::sha256Hex(std::to_string(number));
}

TEST(CubinCache, KeepsWhatItIsGiven) {
    const TestFolder folder;
    CubinCache cache(folder.path() + "/deep/cubins", 1 << 20);
    EXPECT_FALSE(cache.load(keyOf(1)));
    cache.store(keyOf(1), kernelOf(1000, 7));
    const std::optional<CompiledKernel> back = cache.load(keyOf(1));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->image, kernelOf(1000, 7).image);
    ASSERT_EQ(back->resources.size(), 1U);
    EXPECT_EQ(back->resources[0].registers, 40);
    EXPECT_EQ(back->resources[0].spillBytes, 8);
    EXPECT_EQ(back->resources[0].cubinBytes, 1000);
    EXPECT_EQ(back->warnings, kernelOf(1, 1).warnings);
    EXPECT_EQ(back->label, "double/plain factor=2");
    EXPECT_EQ(cache.list().size(), 1U);
    EXPECT_EQ(cache.clear(), 1);
    EXPECT_FALSE(cache.load(keyOf(1)));
}

TEST(CubinCache, WhoWaitsForACompilationFindsItsKernel) {
    const TestFolder folder;
    CubinCache cache(folder.path() + "/cubins", 1 << 20);
    auto lock = cache.lock(keyOf(1));
    bool found = false;
    std::thread other([&] {
        const auto mine = CubinCache(folder.path() + "/cubins", 1 << 20).lock(keyOf(1));
        found = cache.load(keyOf(1)).has_value();
    });
    const auto free = cache.lock(keyOf(2)); // another kernel is not waited for
    cache.store(keyOf(1), kernelOf(10, 7));
    lock.reset();
    other.join();
    EXPECT_TRUE(found);
    EXPECT_EQ(cache.list().size(), 1U);
}

TEST(CubinCache, DamageCountsAsAbsence) {
    const TestFolder folder;
    int warnings = 0;
    base::setLogLevel(base::LogLevel::Error);
    base::setLogSink([&](base::LogLevel, std::string_view) { ++warnings; });
    CubinCache cache(folder.path(), 1 << 20);
    cache.store(keyOf(1), kernelOf(300, 7));
    const std::filesystem::path file = std::filesystem::path(folder.path()) / (keyOf(1) + ".cubin");
    std::ifstream in(file, std::ios::binary);
    const std::string good{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    for (std::size_t at = 0; at < good.size(); at += 11) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x20);
        folder.write(keyOf(1) + ".cubin", bad);
        EXPECT_FALSE(cache.load(keyOf(1))) << "byte " << at;
        folder.write(keyOf(1) + ".cubin", good.substr(0, at));
        EXPECT_FALSE(cache.load(keyOf(1))) << "length " << at;
    }
    ASSERT_EQ(cache.list().size(), 1U);
    EXPECT_FALSE(cache.list()[0].intact);
    folder.write(keyOf(1) + ".cubin", good);
    EXPECT_TRUE(cache.load(keyOf(1)));
    base::setLogSink({});
    base::setLogLevel(base::LogLevel::Warning);
    EXPECT_GT(warnings, 10);
}

TEST(CubinCache, TheLimitRemovesWhatWasUnusedForLongest) {
    const TestFolder folder;
    CubinCache cache(folder.path(), 4000);
    for (int i = 0; i < 3; ++i) {
        cache.store(keyOf(i), kernelOf(1000, 7));
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
    }
    EXPECT_TRUE(cache.load(keyOf(0))); // used again: now 1 is the oldest
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    cache.store(keyOf(3), kernelOf(1000, 7));
    EXPECT_TRUE(cache.load(keyOf(0)));
    EXPECT_FALSE(cache.load(keyOf(1)));
    EXPECT_TRUE(cache.load(keyOf(3)));
}

TEST(CubinCache, SeveralProcessesShareIt) {
    const TestFolder folder;
    std::vector<pid_t> children;
    for (int child = 0; child < 4; ++child) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            CubinCache cache(folder.path(), 1 << 20);
            bool good = true;
            for (int round = 0; round < 60; ++round) {
                cache.store(keyOf(round % 5), kernelOf(20000, static_cast<std::uint8_t>(round % 5)));
                const std::optional<CompiledKernel> back = cache.load(keyOf(round % 5));
                good = good && back && back->image[19999] == round % 5;
            }
            ::_exit(good ? 0 : 1);
        }
        children.push_back(pid);
    }
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    const CubinCache cache(folder.path(), 1 << 20);
    const std::vector<CubinCache::File> files = cache.list();
    EXPECT_EQ(files.size(), 5U);
    EXPECT_TRUE(std::all_of(files.begin(), files.end(), [](const CubinCache::File& file) { return file.intact; }));
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        EXPECT_EQ(entry.path().extension(), ".cubin") << "a draft was left";
    }
}

TEST(CubinCache, AFolderThatCannotBeWrittenIsNoError) {
    const TestFolder folder;
    folder.write("file", "no folder");
    CubinCache cache(folder.path() + "/file/cubins", 1 << 20);
    cache.store(keyOf(1), kernelOf(10, 1));
    EXPECT_FALSE(cache.load(keyOf(1)));
    EXPECT_TRUE(cache.list().empty());
}

// A process of its own, whose files may not grow beyond a few hundred bytes.
TEST(CubinCache, AFullDiskIsNoErrorAndLeavesNothing) {
    const TestFolder folder;
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit little{512, 512};
        ::setrlimit(RLIMIT_FSIZE, &little);
        CubinCache cache(folder.path(), 1 << 20);
        cache.store(keyOf(1), kernelOf(10'000, 1));
        ::_exit(cache.load(keyOf(1)) ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

} // namespace
} // namespace vitrine::kernels
