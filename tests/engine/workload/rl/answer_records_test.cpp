// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/answer_records.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

/// Keeps the answers that it is told of.
class AnswerSink final : public base::TraceSink {
public:
    base::StringId intern(std::string_view text) override {
        names_.emplace_back(text);
        return {static_cast<std::uint32_t>(names_.size())};
    }
    void record(const base::TraceEvent& event) override {
        if (const auto* answer = std::get_if<base::RolloutAnswerEvent>(&event)) {
            answers.push_back(*answer);
        }
    }
    std::string name(base::StringId id) const { return id.value == 0 ? std::string() : names_[id.value - 1]; }

    std::vector<base::RolloutAnswerEvent> answers;

private:
    std::vector<std::string> names_;
};

TEST(AnswerRecords, SayEachAnswerOfAStep) {
    std::vector<RolloutGroup> groups(2);
    for (RolloutGroup& group : groups) {
        group.answers.resize(2);
        for (GroupAnswer& answer : group.answers) {
            answer.ids = {1, 2, 3};
            answer.versions = {0, 0, GroupAnswer::kNotSaid};
            answer.finish = FinishReason::StopToken;
        }
    }
    groups[1].answers[0].reward = 0.75;
    groups[1].answers[0].judgeSeconds = 2.5;
    groups[1].answers[1].finish = FinishReason::Length;
    const std::vector<std::pair<std::size_t, std::size_t>> places{{1, 0}, {1, 1}};
    AnswerSink sink;
    const auto context = test::makeContext(kernels::Backend::Cpu, &sink);
    recordAnswers(context->tracer(), 7, groups, places);
    ASSERT_EQ(sink.answers.size(), 4U);
    EXPECT_EQ(sink.answers[0].row, -1) << "it was left out";
    EXPECT_TRUE(std::isnan(sink.answers[0].reward));
    EXPECT_TRUE(std::isnan(sink.answers[0].judgeSeconds));
    const base::RolloutAnswerEvent& judged = sink.answers[2];
    EXPECT_EQ(judged.batch, 7);
    EXPECT_EQ(judged.group, 1);
    EXPECT_EQ(judged.place, 0);
    EXPECT_EQ(judged.row, 0);
    EXPECT_EQ(judged.tokens, 2) << "the policy only read the third";
    EXPECT_EQ(judged.reward, 0.75);
    EXPECT_EQ(judged.judgeSeconds, 2.5);
    EXPECT_EQ(sink.name(judged.finish), "stop_token");
    EXPECT_EQ(sink.answers[3].row, 1);
    EXPECT_EQ(sink.name(sink.answers[3].finish), "length");
}

} // namespace
} // namespace vitrine::engine
