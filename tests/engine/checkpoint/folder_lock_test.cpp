// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/folder_lock.h"

#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FolderLocks : public testing::Test {
protected:
    std::string out() const { return folder_.file("a/b/out"); }
    std::string taken(const std::string& folder) const {
        return test::failure([&] { const FolderLock second("output", folder); });
    }

    test::TempFolder folder_;
};

TEST_F(FolderLocks, OneRunHasAFolder) {
    std::optional<FolderLock> first(std::in_place, "output", out());
    EXPECT_THAT(taken(out()), HasSubstr("output: another run writes into " + out() + " now"));
    fs::create_directory_symlink(out(), folder_.file("link"));
    EXPECT_THAT(taken(folder_.file("link")), HasSubstr("another run writes into"));
    EXPECT_EQ(taken(folder_.file("other")), "no error");
    const FolderLock moved(std::move(*first));
    first.reset();
    EXPECT_THAT(taken(out()), HasSubstr("another run writes into"));
}

TEST_F(FolderLocks, LeavesNothingThatItMade) {
    {
        const FolderLock lock("output", out());
    }
    EXPECT_FALSE(fs::exists(folder_.file("a")));
    {
        const FolderLock lock("output", out());
        folder_.write("a/b/out/result", "kept");
    }
    EXPECT_TRUE(fs::exists(out() + "/result"));
    EXPECT_FALSE(fs::exists(out() + "/.vitrine-lock"));
    EXPECT_EQ(taken(out()), "no error");
}

TEST_F(FolderLocks, AKilledProcessHoldsNothing) {
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const FolderLock lock("output", out());
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(fs::exists(out() + "/.vitrine-lock"));
    EXPECT_EQ(taken(out()), "no error");
    EXPECT_FALSE(fs::exists(out() + "/.vitrine-lock"));
}

TEST_F(FolderLocks, IsTakenAnewInAFolderThatWasMadeAgain) {
    {
        FolderLock lock("output", out());
        lock.renew();
        EXPECT_THAT(taken(out()), HasSubstr("another run writes into"));
        fs::remove_all(folder_.file("a"));
        fs::create_directories(out());
        lock.renew();
        EXPECT_THAT(taken(out()), HasSubstr("another run writes into")) << "it is locked anew";
        fs::remove_all(out());
        lock.renew();
        EXPECT_TRUE(fs::exists(out())) << "it is made again";
        EXPECT_THAT(taken(out()), HasSubstr("another run writes into"));
    }
    EXPECT_FALSE(fs::exists(folder_.file("a"))) << "what it made goes with it";
}

TEST_F(FolderLocks, IsLostToARunThatTookTheFolderMeanwhile) {
    FolderLock lock("output", out());
    fs::remove_all(out());
    std::optional<FolderLock> other(std::in_place, "output", out());
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(test::failure([&] { lock.renew(); }), HasSubstr("another run writes into " + out() + " now"));
    }
    other.reset();
    EXPECT_EQ(test::failure([&] { lock.renew(); }), "no error");
    EXPECT_THAT(taken(out()), HasSubstr("another run writes into"));
}

TEST_F(FolderLocks, APlaceThatCannotBeLockedIsOneSentence) {
    folder_.write("file", "mine");
    EXPECT_THAT(taken(folder_.file("file/out")), HasSubstr("cannot be made"));
    fs::create_symlink(folder_.file("file"), folder_.file(".vitrine-lock"));
    EXPECT_THAT(taken(folder_.path()), HasSubstr("creating"));
}

} // namespace
} // namespace vitrine::engine
