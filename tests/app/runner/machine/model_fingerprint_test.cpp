// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/model_fingerprint.h"

#include <gtest/gtest.h>

#include "tests/sessions/temp_folder.h"

namespace vitrine::app {
namespace {

TEST(ModelFingerprint, CoversNamesSizesAndBothEnds) {
    const test::TempFolder folder;
    const std::string weights = folder.file("model.safetensors");
    std::string bytes(300'000, 'x');
    const auto print = [&] {
        test::writeAll(weights, bytes);
        return modelFingerprint(folder.file("."));
    };
    const std::string before = print();
    EXPECT_EQ(before.size(), 16u);
    EXPECT_EQ(print(), before);
    bytes.front() = 'y';
    const std::string first = print();
    EXPECT_NE(first, before);
    bytes.back() = 'y';
    const std::string last = print();
    EXPECT_NE(last, first);
    bytes[150'000] = 'y';
    EXPECT_EQ(print(), last) << "what lies between is not read";
    bytes.push_back('x');
    EXPECT_NE(print(), last);
    test::writeAll(folder.file("config.json"), "{}");
    EXPECT_NE(modelFingerprint(folder.file(".")), print() + "x");
    EXPECT_EQ(modelFingerprint(folder.file("none")), "unknown");
}

} // namespace
} // namespace vitrine::app
