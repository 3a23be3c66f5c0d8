// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/roofline_summary.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

const std::string kMetrics = R"({"roofline": {"bandwidth": 4.0e12, "bandwidth_source": "copy on the device",
    "parts": {"experts": 1.2e9, "attention": 1.2e9, "head": 1.0e9, "kv_cache": 0.6e9},
    "seconds_per_token": 1.25e-3, "sequences": 1, "context_tokens": 1032}})";

TEST(RooflineSummary, ReadsPartsAndWhatFollowsFromThem) {
    const auto roofline = rooflineSummary(kMetrics);
    ASSERT_TRUE(roofline);
    ASSERT_EQ(roofline->parts.size(), 4U);
    EXPECT_EQ(roofline->parts[3].name, "KV cache");
    EXPECT_DOUBLE_EQ(roofline->bytes, 4e9);
    EXPECT_DOUBLE_EQ(roofline->floorSeconds, 1e-3);
    EXPECT_DOUBLE_EQ(roofline->ratio, 0.8);
    EXPECT_DOUBLE_EQ(roofline->parts[0].share, 0.3);
    EXPECT_EQ(bandwidthText(4.25e12), "4.25\u00A0TB/s");
    EXPECT_EQ(rooflineSentence(*roofline), "0.80 of what 4.00\u00A0TB/s allow; experts: 30 % of the bytes.");
    EXPECT_EQ(rooflineFootnote(*roofline), "Bandwidth: copy on the device, mean context 1,032 tokens");
}

TEST(RooflineSummary, CachesMayBeFasterThanMemory) {
    auto roofline = *rooflineSummary(kMetrics);
    roofline.ratio = 1.4;
    EXPECT_NE(rooflineSentence(roofline).find("caches"), std::string::npos);
}

TEST(RooflineSummary, LeavesOutWhatCannotBe) {
    for (const char* metrics : {
             "{}",
             "x",
             R"({"roofline": 3})",
             R"({"roofline": {"bandwidth": 0, "seconds_per_token": 1, "parts": {"head": 1}}})",
             R"({"roofline": {"bandwidth": 1, "parts": {"head": 1}}})",
             R"({"roofline": {"bandwidth": 1, "seconds_per_token": 1, "parts": {}}})",
             R"({"roofline": {"bandwidth": 1, "seconds_per_token": 1, "parts": {"head": -4}}})",
         }) {
        EXPECT_FALSE(rooflineSummary(metrics)) << metrics;
    }
}

} // namespace
} // namespace vitrine::profiler
