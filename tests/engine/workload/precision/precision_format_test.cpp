// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/precision_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "base/error.h"

namespace vitrine::engine {
namespace {

using testing::HasSubstr;

TEST(PrecisionFormat, ANameAndAGroupSayHowAMatrixIsRounded) {
    const PrecisionFormat int4 = precisionFormat("int4:32");
    EXPECT_EQ(int4.title, "INT4, g32");
    EXPECT_EQ(int4.quantization->packing.group, 32);
    EXPECT_FALSE(int4.quantization->packing.zeros);
    EXPECT_EQ(precisionFormat("int4").title, "INT4, g128");
    EXPECT_TRUE(precisionFormat("awq:32").quantization->packing.zeros);
    EXPECT_EQ(precisionFormat("fp8").title, "FP8, 128 x 128");
    EXPECT_EQ(precisionFormat("fp8:-1").title, "FP8, one scale");
    EXPECT_EQ(precisionFormat("int8").title, "INT8, whole rows");
    EXPECT_EQ(precisionFormat("nf4").title, "NF4");
    EXPECT_FALSE(precisionFormat("bf16").quantization);
}

TEST(PrecisionFormat, TheReferenceIsAlwaysFirst) {
    const std::vector<PrecisionFormat> added = precisionFormats("int4:32,nf4");
    ASSERT_EQ(added.size(), 3U);
    EXPECT_EQ(added[0].name, "bf16");
    const std::vector<PrecisionFormat> moved = precisionFormats("nf4,bf16,fp8");
    ASSERT_EQ(moved.size(), 3U);
    EXPECT_EQ(moved[0].name, "bf16");
    EXPECT_EQ(moved[1].name, "nf4");
}

TEST(PrecisionFormat, WhatIsWrongIsSaidWithTheOption) {
    const auto problem = [](const std::string& list) {
        try {
            precisionFormats(list);
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return std::string();
    };
    EXPECT_THAT(problem("int5"), HasSubstr("formats: \"int5\" is no format; write int4, int8"));
    EXPECT_THAT(problem("int4:12"), HasSubstr("formats: \"int4:12\""));
    EXPECT_THAT(problem("int4:"), HasSubstr("a multiple of 8"));
    EXPECT_THAT(problem("int4:32x"), HasSubstr("a multiple of 8"));
    EXPECT_THAT(problem("int4:99999999999999999999"), HasSubstr("a multiple of 8"));
    EXPECT_THAT(problem("nf4:64"), HasSubstr("nf4 has groups of one size"));
    EXPECT_THAT(problem("nf4,nf4"), HasSubstr("is there twice"));
    EXPECT_THAT(problem("bf16,bf16,nf4"), HasSubstr("is there twice"));
    EXPECT_THAT(problem("bf16"), HasSubstr("nothing to compare"));
    EXPECT_THAT(problem(""), HasSubstr("is no format"));
    EXPECT_THAT(problem("nf4,"), HasSubstr("is no format"));
}

TEST(PrecisionFormat, AnyTextGivesFormatsOrOneSentence) {
    std::mt19937 random(7);
    const std::string letters = "int4bfpxgqaw816nm:,-0239 \x80\n";
    std::size_t refused = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string text;
        for (std::size_t length = random() % 12; length > 0; --length) {
            text += letters[random() % letters.size()];
        }
        try {
            EXPECT_GE(precisionFormats(text).size(), 2U) << text;
        } catch (const base::BadInput& error) {
            EXPECT_TRUE(error.message().starts_with("formats: ")) << error.message();
            ++refused;
        }
    }
    EXPECT_GT(refused, 10'000U);
}

TEST(PrecisionFormat, ARuleOfInt4FollowsTheGroup) {
    EXPECT_EQ(precisionFormat("int4:32:seven").quantization->packing.rule, kernels::IntegerRule::Seven);
    EXPECT_EQ(precisionFormat("int4:32:compressed-tensors").quantization->packing,
              precisionFormat("int4:32").quantization->packing);
    EXPECT_THROW(precisionFormat("int4:32:eight"), base::BadInput);
    EXPECT_THROW(precisionFormat("int4::seven"), base::BadInput);
    EXPECT_THROW(precisionFormat("int8:32:seven"), base::BadInput);
}

} // namespace
} // namespace vitrine::engine
