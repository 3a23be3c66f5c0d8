// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/policy/rollouts.h"

#include <cmath>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/engine/rl/policy/rollout_testing.h"

namespace vitrine::engine {
namespace {

using test::fourRollouts;
using test::TensorFileMaker;
using testing::ElementsAre;
using testing::HasSubstr;

class RolloutsTest : public testing::Test {
protected:
    Rollouts read(const TensorFileMaker& maker) const {
        return readRollouts(folder_.write("rollouts.safetensors", maker.bytes()), 64);
    }
    void expectRefused(const TensorFileMaker& maker, const std::string& what) const {
        const std::string said = test::failure([&] { read(maker); });
        EXPECT_THAT(said, HasSubstr("rollouts.safetensors: " + what));
        EXPECT_THAT(said, testing::StartsWith("bad_input"));
        EXPECT_EQ(said.find('\n'), std::string::npos);
    }

    test::TempFolder folder_;
};

TEST_F(RolloutsTest, ReadsRowsAndMakesAdvantagesOfRewards) {
    const Rollouts out = read(fourRollouts());
    EXPECT_EQ(out.rows, 4);
    EXPECT_EQ(out.width, 6);
    EXPECT_EQ(out.answerTokens(), 7);
    EXPECT_THAT(std::vector<std::int32_t>(out.answer(1).begin(), out.answer(1).end()), ElementsAre(21, 22, 23));
    EXPECT_THAT(std::vector<std::int32_t>(out.prompt(3).begin(), out.prompt(3).end()), ElementsAre(5, 6, 7));
    EXPECT_NEAR(out.advantages[0], 0.70710, 1e-4);
    EXPECT_NEAR(out.advantages[1], -0.70710, 1e-4);
    EXPECT_EQ(out.rollout.size(), 24U);
    EXPECT_TRUE(out.old.empty() && out.reference.empty());
    EXPECT_EQ(out.ids[17], 0) << "what stands after a row's end is not an id";
}

TEST_F(RolloutsTest, AdvantagesWinAndWiderCountsAreTaken) {
    TensorFileMaker maker = fourRollouts();
    maker.set<float>("advantages", {4}, {1, 2, 3, 4}).set<std::int32_t>("groups", {4}, {1, 2, 3, 4});
    maker.set<std::int64_t>("lengths", {4}, {4, 6, 3, 4}).set<double>("something", {1}, {1});
    EXPECT_THAT(read(maker).advantages, ElementsAre(1, 2, 3, 4));
}

TEST_F(RolloutsTest, ValuesOutsideOfAnswersMayBeAnything) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> old(24, nan);
    for (const std::size_t answer : {2, 3, 9, 10, 11, 14, 21}) {
        old[answer] = -1;
    }
    TensorFileMaker maker = fourRollouts();
    EXPECT_EQ(read(maker.set<float>("old_logprobs", {4, 6}, old)).old.size(), 24U);
    old[10] = std::numeric_limits<float>::infinity();
    expectRefused(maker.set<float>("old_logprobs", {4, 6}, old), "old_logprobs: row 1: token 4: inf is not a finite");
}

TEST_F(RolloutsTest, AGgufFileIsUnsupported) {
    const std::string path = folder_.write("rollouts.safetensors", "GGUF" + fourRollouts().bytes());
    EXPECT_THAT(test::failure([&] { readRollouts(path, 64); }), testing::StartsWith("unsupported"));
}

TEST_F(RolloutsTest, EachFaultIsOneSentenceThatNamesTensorAndRow) {
    const auto with = [](const std::function<void(TensorFileMaker&)>& change) {
        TensorFileMaker maker = fourRollouts();
        change(maker);
        return maker;
    };
    using Maker = TensorFileMaker;
    for (const char* name : {"input_ids", "prompt_lengths", "lengths", "groups"}) {
        expectRefused(with([&](Maker& m) { m.remove(name); }), std::string(name) + ": missing");
    }
    expectRefused(with([](Maker& m) { m.remove("rewards"); }), "advantages: missing, and so are rewards");
    expectRefused(with([](Maker& m) { m.set<float>("input_ids", {4, 6}, std::vector<float>(24)); }),
                  "input_ids: must be I32 or I64");
    expectRefused(with([](Maker& m) { m.set<std::int32_t>("input_ids", {24}, std::vector<std::int32_t>(24)); }),
                  "input_ids: has the shape (24)");
    expectRefused(with([](Maker& m) { m.set<std::int32_t>("input_ids", {0, 6}, {}); }), "input_ids: has the shape (0");
    expectRefused(with([](Maker& m) { m.set<std::int32_t>("lengths", {3}, {4, 6, 3}); }),
                  "lengths: has the shape (3), and (4) is needed");
    expectRefused(with([](Maker& m) { m.set<std::int32_t>("lengths", {4}, {4, 7, 3, 4}); }),
                  "lengths: row 1: 7 is not");
    expectRefused(with([](Maker& m) { m.set<std::int32_t>("lengths", {4}, {4, 6, 2, 4}); }),
                  "lengths: row 2: 2 leaves no answer after a prompt of 2 tokens");
    expectRefused(with([](Maker& m) { m.set<std::int32_t>("prompt_lengths", {4}, {2, 3, 2, 0}); }),
                  "prompt_lengths: row 3: 0 is not");
    expectRefused(with([](Maker& m) { m.set<std::int64_t>("prompt_lengths", {4}, {2, -3, 2, 3}); }),
                  "prompt_lengths: row 1: -3 is not");
    expectRefused(with([](Maker& m) { m.set<std::int32_t>("groups", {4}, {0, 1, 0, 2}); }),
                  "groups: row 1: is alone in group 1");
    expectRefused(with([](Maker& m) { m.set<float>("rewards", {4}, {1, 0, NAN, 2}); }),
                  "rewards: row 2: nan is not a finite number");
    expectRefused(with([](Maker& m) { m.set<float>("rewards", {2, 2}, {1, 0, 0, 2}); }),
                  "rewards: has the shape (2, 2)");
    expectRefused(with([](Maker& m) { m.set<double>("advantages", {4}, {1, 0, 0, 2}); }), "advantages: must be F32");
    expectRefused(with([](Maker& m) {
                      m.set<std::int32_t>("input_ids", {4, 6}, {1, 2, 11, 12, 0, 0, 5, 6, 7, 21, 64, 23,
                                                                1, 2, 13, 0,  0, 0, 5, 6, 7, 24, 0,  0});
                  }),
                  "input_ids: row 1: token 4: id 64 is outside the model's vocabulary of 64");
    expectRefused(with([](Maker& m) { m.set<float>("reference_logprobs", {4, 5}, std::vector<float>(20)); }),
                  "reference_logprobs: has the shape (4, 5)");
}

} // namespace
} // namespace vitrine::engine
