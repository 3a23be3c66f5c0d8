// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/check_cost.h"

#include <gtest/gtest.h>

#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

TEST(CheckCost, ADenseModelChecksCheaply) {
    const auto context = test::makeContext(kernels::Backend::Meta, nullptr);
    Model model(*context, openModel("synthetic:tiny-llama"), ModelOptions{}, nullptr);
    const CheckCosts costs(model, 0);
    EXPECT_GT(costs.of(1).token, 0);
    EXPECT_LT(costs.of(1).token, 0.2);
    EXPECT_GT(costs.of(1).step, 0);
    EXPECT_NEAR(costs.of(8).token, 8 * costs.of(1).token, 1e-12) << "the products of eight rows";
}

TEST(CheckCost, ATokenReadsExpertsUntilAllAreRead) {
    const auto context = test::makeContext(kernels::Backend::Meta, nullptr);
    Model model(*context, openModel("synthetic:tiny-qwen3-moe"), ModelOptions{}, nullptr);
    const CheckCosts costs(model, 0);
    const double share =
        static_cast<double>(model.config().expertsPerToken) / static_cast<double>(model.config().experts);
    const WeightBytes bytes = model.weightBytes();
    const auto chosen =
        static_cast<double>(bytes.expert) * static_cast<double>(bytes.moeLayers * model.config().expertsPerToken);
    const double read = static_cast<double>(bytes.shared + bytes.head) + chosen;
    EXPECT_GT(costs.of(1).token, chosen * (1 - share) / read);
    EXPECT_LT(costs.of(1).token, chosen * (1 - share) / read + 0.2);
}

TEST(CheckCost, ADraftModelIsReadForEachToken) {
    const auto context = test::makeContext(kernels::Backend::Meta, nullptr);
    Model model(*context, openModel("synthetic:tiny-llama"), ModelOptions{}, nullptr);
    const WeightBytes bytes = model.weightBytes();
    const CheckCost alone = CheckCosts(model, 0).of(4);
    const CheckCost twin = CheckCosts(model, bytes.shared + bytes.head).of(4);
    EXPECT_NEAR(twin.token, alone.token + 1, 1e-9) << "once for all rows";
}

} // namespace
} // namespace vitrine::engine
