// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/descriptor.h"

#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace vitrine::base {
namespace {

bool isOpenFile(int number) {
    return ::fcntl(number, F_GETFD) >= 0;
}

TEST(Descriptor, ClosesOnceAndMoves) {
    int number = -1;
    {
        Pipe pipe;
        number = pipe.read.get();
        EXPECT_TRUE(isOpenFile(number));
        EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0) << "other programs would inherit it";
        Descriptor moved = std::move(pipe.read);
        EXPECT_EQ(moved.get(), number);
        EXPECT_TRUE(moved.isOpen());
        EXPECT_FALSE(pipe.read.isOpen()); // NOLINT(bugprone-use-after-move): it has none
        pipe.read.reset();
        EXPECT_TRUE(isOpenFile(number));
        pipe.read = std::move(moved);
        EXPECT_EQ(pipe.read.get(), number);
    }
    EXPECT_FALSE(isOpenFile(number));
}

TEST(Descriptor, ReadsWithoutWaiting) {
    const Pipe pipe;
    setNonBlocking(pipe.read);
    char byte = 0;
    EXPECT_EQ(::read(pipe.read.get(), &byte, 1), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_THROW(setNonBlocking(Descriptor()), Internal);
}

} // namespace
} // namespace vitrine::base
