// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// What a fine-tuning run reports of its steps while it goes on.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/trace.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/broken_model.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using base::TrainingMark;

/// Keeps the events of the training and the counters.
class TrainingSink final : public base::TraceSink {
public:
    base::StringId intern(std::string_view text) override {
        const std::lock_guard lock(mutex_);
        names_.emplace_back(text);
        return {static_cast<std::uint32_t>(names_.size())};
    }
    void record(const base::TraceEvent& event) override {
        const std::lock_guard lock(mutex_);
        if (const auto* step = std::get_if<base::TrainingStepEvent>(&event)) {
            steps.push_back(*step);
        } else if (const auto* mark = std::get_if<base::TrainingMarkEvent>(&event)) {
            marks.push_back(*mark);
        } else if (const auto* counter = std::get_if<base::CounterEvent>(&event)) {
            counters[names_[counter->name.value - 1]] = counter->value;
        }
    }
    std::vector<std::int64_t> marked(TrainingMark kind) const {
        std::vector<std::int64_t> out;
        for (const base::TrainingMarkEvent& mark : marks) {
            if (mark.kind == kind) {
                out.push_back(mark.step);
            }
        }
        return out;
    }

    std::vector<base::TrainingStepEvent> steps;
    std::vector<base::TrainingMarkEvent> marks;
    std::map<std::string, double> counters;

private:
    std::mutex mutex_;
    std::vector<std::string> names_;
};

Json train(Json experiment, TrainingSink& sink) {
    experiment["vitrine"] = 1;
    experiment["workload"] = "finetune";
    experiment["backend"] = experiment.value("backend", "cpu");
    WorkloadSinks sinks;
    sinks.trace = &sink;
    return runExperiment(Experiment::parse(experiment, "experiment"), sinks, {});
}

TEST(FinetuneRecord, EachStepIsReportedWithWhatTheResultSays) {
    const test::TempFolder folder;
    for (const char* profile : {"light", "full"}) {
        TrainingSink sink;
        const Json out = train({{"model", test::fixture("llama")},
                                {"tokens_file", test::fixture("llama-lora/batch.safetensors")},
                                {"batch", 1},
                                {"profile", profile},
                                {"steps", 6},
                                {"lr", 0.001},
                                {"warmup_steps", 4},
                                {"output", folder.path() + "/" + profile},
                                {"save_every", 2},
                                {"keep_checkpoints", 2}},
                               sink);
        ASSERT_EQ(sink.steps.size(), 6U);
        for (std::size_t i = 0; i < sink.steps.size(); ++i) {
            const base::TrainingStepEvent& step = sink.steps[i];
            EXPECT_EQ(step.step, static_cast<std::int64_t>(i) + 1);
            EXPECT_EQ(step.loss, out["losses"][i].get<double>());
            EXPECT_EQ(step.gradientNorm, out["grad_norms"][i].get<double>());
            EXPECT_EQ(step.learningRate, out["learning_rates"][i].get<double>());
            EXPECT_GT(step.tokens, 0);
            EXPECT_GT(step.end, step.begin);
            EXPECT_TRUE(i == 0 || step.begin >= sink.steps[i - 1].end);
        }
        EXPECT_EQ(sink.marked(TrainingMark::Saved), (std::vector<std::int64_t>{2, 4, 6}));
        EXPECT_EQ(sink.marked(TrainingMark::Dropped), std::vector<std::int64_t>{2});
        EXPECT_EQ(sink.counters.at("training_steps"), 6);
        EXPECT_EQ(sink.counters.at("trained_parameters"), out["trained_parameters"].get<double>());
        EXPECT_GT(sink.counters.at("model_parameters"), sink.counters.at("trained_parameters"));
    }
}

TEST(FinetuneRecord, AResumedRunSaysWhereItWentOn) {
    const test::TempFolder folder;
    const Json first = {
        {"model", test::fixture("llama")}, {"prompt_length", 12}, {"batch", 1}, {"steps", 2}, {"save_every", 2},
        {"output", folder.path() + "/out"}};
    TrainingSink ignored;
    train(first, ignored);
    Json again = first;
    again["steps"] = 4;
    again["resume"] = folder.path() + "/out";
    TrainingSink sink;
    train(again, sink);
    EXPECT_EQ(sink.marked(TrainingMark::Resumed), std::vector<std::int64_t>{2});
    ASSERT_EQ(sink.steps.size(), 2U);
    EXPECT_EQ(sink.steps.front().step, 3);
}

TEST(FinetuneRecord, ACheckpointIsSavedWhenSomebodyAsksForIt) {
    const test::TempFolder folder;
    TrainingSink sink;
    WorkloadSinks sinks;
    sinks.trace = &sink;
    int steps = 0;
    sinks.saveWanted = [&steps] { return ++steps == 2; };
    const Json experiment = {{"vitrine", 1},
                             {"workload", "finetune"},
                             {"model", test::fixture("llama")},
                             {"backend", "cpu"},
                             {"prompt_length", 12},
                             {"batch", 1},
                             {"steps", 4},
                             {"output", folder.path() + "/out"}};
    runExperiment(Experiment::parse(experiment, "experiment"), sinks, {});
    EXPECT_EQ(sink.marked(TrainingMark::Saved), std::vector<std::int64_t>{2});
}

TEST(FinetuneRecord, TheStepThatFailsIsReportedToo) {
    const test::TempFolder folder;
    const std::string model = folder.path() + "/broken";
    test::copyWithBrokenRow("llama", model, "model.layers.1.mlp.down_proj.weight", 3);
    TrainingSink sink;
    EXPECT_THROW(train({{"model", model}, {"prompt_length", 12}, {"batch", 1}, {"steps", 3}}, sink), base::BadInput);
    ASSERT_EQ(sink.steps.size(), 1U);
    EXPECT_FALSE(std::isfinite(sink.steps.front().loss));
}

TEST(FinetuneRecord, MetaHasNoValuesToReport) {
    TrainingSink sink;
    train({{"model", test::fixture("llama")}, {"backend", "meta"}, {"prompt_length", 12}, {"batch", 1}, {"steps", 2}},
          sink);
    EXPECT_TRUE(sink.steps.empty());
    EXPECT_EQ(sink.counters.at("training_steps"), 2);
}

} // namespace
} // namespace vitrine::engine
