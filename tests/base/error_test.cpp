// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/error.h"

#include <gtest/gtest.h>

namespace vitrine::base {
namespace {

TEST(Error, NamesAndExitCodes) {
    EXPECT_EQ(errorKindName(ErrorKind::BadInput), "bad_input");
    EXPECT_EQ(errorKindName(ErrorKind::Unsupported), "unsupported");
    EXPECT_EQ(errorKindName(ErrorKind::OutOfMemory), "out_of_memory");
    EXPECT_EQ(errorKindName(ErrorKind::Cancelled), "cancelled");
    EXPECT_EQ(errorKindName(ErrorKind::DeviceFault), "device_fault");
    EXPECT_EQ(errorKindName(ErrorKind::Internal), "internal");
    EXPECT_EQ(exitCode(ErrorKind::BadInput), 2);
    EXPECT_EQ(exitCode(ErrorKind::Unsupported), 2);
    EXPECT_EQ(exitCode(ErrorKind::OutOfMemory), 3);
    EXPECT_EQ(exitCode(ErrorKind::Cancelled), 130);
    EXPECT_EQ(exitCode(ErrorKind::DeviceFault), 1);
    EXPECT_EQ(exitCode(ErrorKind::Internal), 1);
}

TEST(Error, CaughtByItsBaseKeepsKindAndText) {
    try {
        throw BadInput("config.json: hidden_size: is 0; give a positive number");
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::BadInput);
        EXPECT_STREQ(error.what(), "config.json: hidden_size: is 0; give a positive number");
    }
}

OutOfMemoryDetails lowFacts() {
    OutOfMemoryDetails details;
    details.what = "grad_logits";
    details.requested = std::uint64_t{12} << 30;
    details.budget = std::uint64_t{16} << 30;
    details.held = std::uint64_t{13} << 30;
    details.largestFree = std::uint64_t{2} << 30;
    details.holders = {{"weights", "", std::uint64_t{9} << 30},
                       {"kv_cache", "layers.3", std::uint64_t{2} << 30},
                       {"activations", "", std::uint64_t{1} << 30},
                       {"workspace", "", 5}};
    return details;
}

TEST(Error, OutOfMemorySaysWhatWasAskedAndWhoHoldsIt) {
    const OutOfMemory error(lowFacts());
    EXPECT_EQ(error.kind(), ErrorKind::OutOfMemory);
    EXPECT_EQ(error.message(),
              "grad_logits: out of memory: 12.00 GiB asked for, 3.00 GiB of 16.00 GiB free (largest free "
              "block 2.00 GiB); held by weights 9.00 GiB, kv_cache 2.00 GiB, activations "
              "1.00 GiB; load quantized weights, choose a smaller model or raise the memory budget");
    EXPECT_EQ(error.details().holders.size(), 4U);
}

TEST(Error, OutOfMemoryWithoutHoldersOrFreeMemory) {
    OutOfMemoryDetails details;
    details.requested = 100;
    details.budget = 50;
    details.held = 70; // untracked bytes may exceed the budget
    const OutOfMemory error(details);
    EXPECT_EQ(error.message(), "allocation: out of memory: 100 B asked for, 0 B of 50 B free; use a smaller batch or a "
                               "shorter context, or raise the memory budget");
}

TEST(Error, AdviceFollowsTheLargestHolder) {
    OutOfMemoryDetails details = lowFacts();
    details.holders.front().category = "kv_cache";
    EXPECT_NE(OutOfMemory(details).message().find("shorter context"), std::string::npos);
    details.holders.front().category = "optimizer";
    EXPECT_NE(OutOfMemory(details).message().find("LoRA"), std::string::npos);
}

TEST(Error, AdviceFollowsWhatWasAskedForWhenThatIsKnown) {
    OutOfMemoryDetails details = lowFacts();
    details.category = "kv_cache";
    EXPECT_NE(OutOfMemory(details).message().find("shorter context"), std::string::npos);
}

TEST(Error, OutOfMemoryKeepsTheLargestHolders) {
    OutOfMemoryDetails details = lowFacts();
    for (int layer = 0; layer < 40; ++layer) {
        details.holders.push_back({"activations", "layer " + std::to_string(layer), 1});
    }
    const OutOfMemory error(details);
    EXPECT_EQ(error.details().holders.size(), 8U);
    EXPECT_EQ(error.details().holders.front().category, "weights");
}

} // namespace
} // namespace vitrine::base
