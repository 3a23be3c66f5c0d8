// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/log.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace vitrine::base {
namespace {

class Log : public testing::Test {
protected:
    void TearDown() override {
        setLogSink({});
        setLogLevel(LogLevel::Warning);
    }
};

TEST_F(Log, StandardErrorFollowsTheLevel) {
    EXPECT_EQ(logLevel(), LogLevel::Warning);
    testing::internal::CaptureStderr();
    logDebug("d");
    logInfo("i");
    logWarning("the profile names no PCIe rate {}");
    setLogLevel(LogLevel::Info);
    logInfo("chose rms_norm/simd");
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "vitrine: warning: the profile names no PCIe rate {}\nvitrine: info: chose rms_norm/simd\n");
}

TEST_F(Log, TheSinkGetsEveryMessage) {
    std::vector<std::string> seen;
    setLogSink([&](LogLevel level, std::string_view text) {
        seen.push_back(std::to_string(static_cast<int>(level)) + ' ' + std::string(text));
    });
    logDebug("one");
    logInfo("two");
    EXPECT_EQ(seen, (std::vector<std::string>{"0 one", "1 two"}));
    setLogSink({});
    logDebug("three");
    EXPECT_EQ(seen.size(), 2U);
}

TEST_F(Log, ASinkMayLogAndMayThrow) {
    int calls = 0;
    setLogSink([&](LogLevel, std::string_view) {
        ++calls;
        logDebug("from inside");
        throw std::runtime_error("broken");
    });
    testing::internal::CaptureStderr();
    logDebug("outside");
    logDebug("outside");
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(calls, 2);
    EXPECT_NE(text.find("receiver failed"), std::string::npos);
}

TEST_F(Log, ManyThreads) {
    std::size_t count = 0;
    setLogSink([&](LogLevel, std::string_view) { ++count; });
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] {
            for (int i = 0; i < 500; ++i) {
                logDebug("x");
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(count, 2000U);
}

} // namespace
} // namespace vitrine::base
