// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/line_pipe.h"

#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "base/descriptor.h"

namespace vitrine::base {
namespace {

TEST(LinePipe, ReadsWholeLinesHoweverTheyArrive) {
    Pipe pipe;
    std::thread writer([&] {
        const std::string text = "one\n\n" + std::string(200'000, 'x') + "\nlost";
        for (std::size_t i = 0; i < text.size(); i += 4099) {
            const std::string piece = text.substr(i, 4099);
            ASSERT_EQ(::write(pipe.write.get(), piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
        }
        EXPECT_TRUE(writeLine(pipe.write.get(), ""));
        pipe.write.reset();
    });
    LineReader reader(pipe.read.get());
    EXPECT_EQ(reader.next(), "one");
    EXPECT_EQ(reader.next(), "");
    EXPECT_EQ(reader.next()->size(), 200'000u);
    EXPECT_EQ(reader.next(), "lost");
    EXPECT_EQ(reader.next(), std::nullopt);
    EXPECT_FALSE(reader.wasTooLong());
    writer.join();
}

TEST(LinePipe, WaitsForALineOrAWake) {
    using namespace std::chrono_literals;
    Pipe lines, wake;
    LineReader reader(lines.read.get());
    EXPECT_EQ(reader.wait(0ms, wake.read.get()), LineReader::Arrived::Nothing);
    EXPECT_TRUE(writeLine(lines.write.get(), "a\nb"));
    EXPECT_EQ(reader.wait(1min, wake.read.get()), LineReader::Arrived::Input);
    EXPECT_EQ(reader.next(), "a");
    EXPECT_EQ(reader.wait(0ms, wake.read.get()), LineReader::Arrived::Input) << "b was read with a";
    EXPECT_EQ(reader.next(), "b");
    EXPECT_TRUE(writeLine(wake.write.get(), ""));
    EXPECT_EQ(reader.wait(1min, wake.read.get()), LineReader::Arrived::Wake);
}

TEST(LinePipe, WritingToNobodyIsNoSignal) {
    Pipe pipe;
    pipe.read.reset();
    EXPECT_FALSE(writeLine(pipe.write.get(), "lost"));
}

} // namespace
} // namespace vitrine::base
