// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/host/outcome.h"

#include <cerrno>
#include <filesystem>
#include <gtest/gtest.h>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

namespace vitrine::app {
namespace {

TEST(Outcome, EveryKindHasItsExitCode) {
    using Status = RunOutcome::Status;
    const auto of = [](const auto& error) { return outcomeOf(std::make_exception_ptr(error)); };
    EXPECT_EQ(of(base::BadInput("x")).exitCode, 2);
    EXPECT_EQ(of(base::Unsupported("x")).exitCode, 2);
    EXPECT_EQ(of(base::Cancelled()).exitCode, 130);
    EXPECT_EQ(of(base::Cancelled()).status, Status::Cancelled);
    EXPECT_EQ(of(base::DeviceFault("x")).exitCode, 1);
    EXPECT_EQ(of(base::Internal("x")).exitCode, 1);
    EXPECT_EQ(of(base::OutOfMemory({.requested = 5})).exitCode, 3);
    EXPECT_EQ(of(std::bad_alloc()).status, Status::OutOfMemory);
    EXPECT_EQ(of(std::runtime_error("odd")).error, "odd");
    EXPECT_EQ(of(7).exitCode, 1);
}

TEST(Outcome, WhatLibrariesSayBecomesASentence) {
    const auto of = [](const auto& error) { return outcomeOf(std::make_exception_ptr(error)); };
    namespace fs = std::filesystem;
    const RunOutcome file =
        of(fs::filesystem_error("status", "a/b", std::error_code(ENAMETOOLONG, std::generic_category())));
    EXPECT_EQ(file.error, "a/b: File name too long; check the path and its permissions");
    EXPECT_EQ(file.exitCode, 2);
    EXPECT_EQ(of(std::system_error(EAGAIN, std::generic_category(), "thread")).error,
              "the system refused a thread, a file or memory: Resource temporarily unavailable; close other programs "
              "and try again");
    EXPECT_EQ(of(std::out_of_range("map::at")).error, "a mistake of Vitrine (map::at); report this with the command");
    try {
        nlohmann::json(1).at("key");
    } catch (...) {
        const RunOutcome value = outcomeOf(std::current_exception());
        EXPECT_EQ(value.error.find("[json"), value.error.find('(') + 1) << value.error;
        EXPECT_EQ(value.exitCode, 1);
    }
}

TEST(Outcome, SentencesStayOneLine) {
    EXPECT_EQ(oneLine("a\nb\r\n\tc\x1b[31m\n"), "a b c?[31m");
    EXPECT_EQ(outcomeOf(std::make_exception_ptr(base::BadInput("f: x\ny"))).error, "f: x y");
}

TEST(Outcome, OutOfMemoryKeepsItsDetails) {
    base::OutOfMemoryDetails details;
    details.requested = 10;
    details.budget = 20;
    details.holders.push_back({"weights", "layer 3", 15});
    const auto shown = errorJson(std::make_exception_ptr(base::OutOfMemory(details)));
    EXPECT_EQ(shown["kind"], "out_of_memory");
    EXPECT_EQ(shown["requested_bytes"], 10);
    EXPECT_EQ(shown["holders"][0]["bytes"], 15);
    EXPECT_EQ(errorJson(std::make_exception_ptr(base::BadInput("x"))).size(), 2u);
}

} // namespace
} // namespace vitrine::app
