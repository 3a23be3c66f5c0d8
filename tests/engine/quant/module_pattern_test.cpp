// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/module_pattern.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace vitrine::engine {
namespace {

TEST(ModulePattern, NamesAndPartsOfNames) {
    EXPECT_TRUE(matchesModule("lm_head", "lm_head"));
    EXPECT_TRUE(matchesModule("mlp", "model.layers.0.mlp.up_proj"));
    EXPECT_TRUE(matchesModule("re:.*up_proj", "model.layers.0.mlp.up_proj"));
    EXPECT_FALSE(matchesModule("re:up_proj", "model.layers.0.mlp.up_proj")) << "a pattern begins at the begin";
    EXPECT_FALSE(matchesModule("ml", "model.layers.0.mlp.up_proj"));
    EXPECT_FALSE(matchesModule("", "lm_head"));
    EXPECT_FALSE(matchesModule("re:(", "lm_head")) << "a pattern that is none fits nothing";
}

TEST(ModulePattern, APatternThatMeansNothingIsRefusedWithItsPlace) {
    EXPECT_NO_THROW(requireModulePattern("lm_head"));
    EXPECT_NO_THROW(requireModulePattern("re:.*up_proj"));
    EXPECT_THROW(requireModulePattern(std::string(2000, 'a')), base::BadInput);
    try {
        requireModulePattern("re:(");
        ADD_FAILURE();
    } catch (const base::BadInput& error) {
        EXPECT_EQ(error.message(), "re:(: is no regular expression: missing closing parenthesis at character 5");
    }
}

/// 480 groups that every step of a search would remember take tens of megabytes without a limit.
TEST(ModulePattern, SearchesThatNeedMuchMemoryAreGivenUp) {
    const auto pattern = [](int groups) {
        std::string out = "re:";
        for (int i = 0; i < groups; ++i) {
            out += "()";
        }
        return out + "(?:.?|){50}";
    };
    EXPECT_TRUE(matchesModule(pattern(20), "lm_head"));
    EXPECT_FALSE(matchesModule(pattern(480), "lm_head"));
}

} // namespace
} // namespace vitrine::engine
