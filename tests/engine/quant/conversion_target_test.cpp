// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/conversion_target.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {
namespace {

std::string ruleOf(std::string_view name, std::optional<bool> symmetric = std::nullopt) {
    return roundingRule(conversionTarget(name, std::nullopt, symmetric).value());
}

TEST(ConversionTarget, RulesSayHowAValueIsRounded) {
    EXPECT_EQ(ruleOf("int4"), "s = max(|w|) / 7.5, q = round(w / s), -8 to 7");
    EXPECT_EQ(ruleOf("int8"), "s = max(|w|) / 127.5, q = round(w / s), -128 to 127");
    EXPECT_EQ(ruleOf("int4", false), "s = (max(w) - min(w)) / 15, q = round(w / s) + zero, 0 to 15");
    EXPECT_EQ(ruleOf("awq"), ruleOf("int4", false));
    EXPECT_EQ(ruleOf("gptq"), ruleOf("int4"));
    EXPECT_EQ(ruleOf("fp8"), "s = max(|w|) / 448, w' = s times the nearest E4M3 to w / s");
    for (const std::string_view name : {"mxfp4", "nf4"}) {
        EXPECT_TRUE(ruleOf(name).starts_with("s = ")) << name;
    }
}

TEST(ConversionTarget, SevenIsARuleOfSymmetricInt4) {
    const Quantization seven = conversionTarget("int4", 32, std::nullopt, "seven").value();
    EXPECT_EQ(roundingRule(seven), "s = max(max(|w|) / 7, 1e-5), q = round(w / s), -7 to 7");
    EXPECT_EQ(conversionTitle(seven), "INT4, g32, rule of seven");
    EXPECT_EQ(conversionTarget("int4", 32, std::nullopt, "compressed-tensors")->packing,
              conversionTarget("int4", 32, std::nullopt)->packing);
    EXPECT_THROW(conversionTarget("int4", 32, false, "seven"), base::BadInput);
    EXPECT_THROW(conversionTarget("fp8", std::nullopt, std::nullopt, "seven"), base::BadInput);
    const Quantization read = parseQuantization(quantizationConfig(seven), "config.json");
    EXPECT_EQ(read.packing.rule, kernels::IntegerRule::Seven) << "the config says it";
}

} // namespace
} // namespace vitrine::engine
