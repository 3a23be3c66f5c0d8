// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/broken_numbers.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/generation/batch_engine.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A model whose weights a test spoils: bytes of ones are NaN in every float type.
class BrokenModel : public testing::Test {
protected:
    static void spoil(const kernels::TensorView& weight, std::int64_t row) {
        const std::uint64_t bytes = weight.bytes() / static_cast<std::uint64_t>(weight.shape[0]);
        std::memset(static_cast<std::byte*>(weight.data) + static_cast<std::uint64_t>(row) * bytes, 0xFF, bytes);
    }
    static GenerateRequest request(std::vector<std::int32_t> prompt) {
        GenerateRequest out;
        out.prompt = std::move(prompt);
        out.maxNewTokens = 6;
        return out;
    }
    std::string failureOf(const std::vector<GenerateRequest>& requests) {
        GenerateReport report;
        GenerateOptions options;
        options.cache.dtype = kernels::DType::F32;
        try {
            Generator(model_, nullptr, options).run(requests, report, {});
        } catch (const base::BadInput& error) {
            EXPECT_EQ(report.results.at(0).finish, FinishReason::Failed);
            return error.message();
        }
        return {};
    }

    std::unique_ptr<kernels::Context> context_ = test::makeContext(kernels::Backend::Cpu);
    ModelSource source_ = openModel("synthetic:tiny-llama");
    Model model_{*context_, source_, ModelOptions{}, nullptr};
};

TEST_F(BrokenModel, AWholeModelIsNotBroken) {
    EXPECT_EQ(failureOf({request({1, 2, 3})}), "");
}

TEST_F(BrokenModel, TheFirstBrokenLayerAndTheStepAreNamed) {
    spoil(model_.layers()[1].down.weight.data, 0);
    EXPECT_THAT(failureOf({request({1, 2, 3})}),
                AllOf(HasSubstr("the output of layer 1 "), HasSubstr("prefill step 0")));
    spoil(model_.layers()[0].o.weight.data, 3);
    EXPECT_THAT(failureOf({request({1, 2, 3})}), HasSubstr("the output of layer 0 "));
}

TEST_F(BrokenModel, AStepThatMeetsTheFaultLaterIsNamed) {
    spoil(model_.decoder().embedding(), 5);
    GenerateRequest meets = request({1, 2, 3});
    meets.sampling.bias = {{9, 100}};
    EXPECT_EQ(failureOf({meets}), "") << "it never reads token 5";
    meets.sampling.bias = {{5, 100}};
    EXPECT_THAT(failureOf({meets}), AllOf(HasSubstr("the output of the embedding "), HasSubstr("decode step 0")));
}

TEST_F(BrokenModel, TheHeadIsNamed) {
    spoil(model_.decoder().head().weight.data, 17);
    EXPECT_THAT(failureOf({request({1, 2, 3})}), HasSubstr("the output of the head"));
}

TEST_F(BrokenModel, OfABatchOnlyTheRequestThatMeetsTheFaultFails) {
    spoil(model_.decoder().embedding(), 5);
    for (const bool survives : {true, false}) {
        BatchOptions options;
        options.cache.dtype = kernels::DType::F32;
        options.scheduler.slots = 3;
        options.survivesBrokenNumbers = survives;
        BatchEngine engine(model_, nullptr, options);
        engine.add(request({1, 2, 3}), 0);
        engine.add(request({4, 5, 6}), 0);
        engine.add(request({7, 8, 9}), 0);
        const auto run = [&] {
            while (engine.step()) {
            }
        };
        if (!survives) {
            EXPECT_THROW(run(), base::BadInput);
            continue;
        }
        run();
        EXPECT_EQ(engine.result(1).result.finish, FinishReason::Failed);
        EXPECT_THAT(engine.result(1).failure, HasSubstr("the output of the embedding "));
        for (const std::int32_t whole : {0, 2}) {
            EXPECT_EQ(engine.result(whole).result.ids.size(), 6U);
        }
        EXPECT_EQ(engine.cache().book()->counts().used, 0);
    }
}

} // namespace
} // namespace vitrine::engine
