// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/buffer_ring.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

TEST(BufferRing, GivesOutBlocksUntilTheReaderFallsBehind) {
    BufferRing ring(1024, 1, 3);
    std::uint8_t* const a = ring.take();
    std::uint8_t* const b = ring.take();
    std::uint8_t* const c = ring.take();
    ASSERT_NE(a, nullptr);
    ASSERT_NE(c, nullptr);
    EXPECT_NE(a, b);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 8, 0U);
    EXPECT_EQ(ring.take(), nullptr);
    BufferRing::Full full;
    EXPECT_FALSE(ring.next(full));
    ring.fill(b, 100);
    ring.fill(a, 1024);
    ASSERT_TRUE(ring.next(full));
    EXPECT_EQ(full.data, b) << "the oldest first";
    EXPECT_EQ(full.bytes, 100U);
    ring.giveBack(full.data);
    EXPECT_EQ(ring.take(), b);
    ASSERT_TRUE(ring.next(full));
    EXPECT_EQ(full.data, a);
    EXPECT_FALSE(ring.next(full));
}

} // namespace
} // namespace vitrine::profiler
