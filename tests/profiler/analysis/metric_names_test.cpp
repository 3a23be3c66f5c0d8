// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/metric_names.h"

#include <gtest/gtest.h>

namespace vitrine::profiler {
namespace {

TEST(MetricNames, AreWhatPeopleRead) {
    EXPECT_EQ(metricTitle("decode_tokens_per_second"), "decode rate");
    EXPECT_EQ(metricTitle("roofline.parts.head"), "a token reads: head");
    EXPECT_EQ(metricTitle("peak_by_category.kv_cache"), "at the peak: kv_cache");
    EXPECT_EQ(metricTitle("acceptance_rate.top_k"), "acceptance rate, top k");
}

TEST(MetricNames, WhatAnswersFirstComesFirst) {
    EXPECT_LT(metricRank("peak_bytes"), metricRank("decode_tokens_per_second"));
    EXPECT_LT(metricRank("decode_tokens_per_second"), metricRank("no_such_metric"));
    EXPECT_LT(metricRank("no_such_metric"), metricRank("peak_by_category.kv_cache"));
}

} // namespace
} // namespace vitrine::profiler
