// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A workload that no product file knows: registered here, it is checked, run, planned and put into words as any other.

#include "engine/workload/experiment/workload_table.h"

#include <array>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/option_value.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

constexpr std::array kOptions = {
    OptionSpec{"count_to", OptionType::Integer, "3", "", 1, 100, "", "", "Counting", "The last number"},
    OptionSpec{"count_word", OptionType::Text, "", "", 0, 0, "", "", "Counting", "Said before each number"},
};
constexpr std::array<std::string_view, 1> kSharedKeys = {"repeat"};
constexpr std::array<std::string_view, 1> kViews = {"memory"};

void check(const Experiment& experiment, const std::string& name) {
    if (experiment.integer("count_to") == 13) {
        failOption(name, "count_to", "13 is not counted to");
    }
}

void count(const Run& run) {
    std::string said;
    for (std::int64_t i = 1; i <= run.spec.integer("count_to"); ++i) {
        said += run.spec.text("count_word") + std::to_string(i);
    }
    run.metrics["said"] = said;
    run.metrics["times"] = run.repeats();
    run.metrics["seed"] = run.seed();
}

void planCount(const Run& run) {
    run.metrics["fits"] = run.spec.integer("count_to") < 10;
}

std::optional<std::string> words(const Experiment& experiment, const Json& metrics) {
    return experiment.isPlan() ? std::nullopt
                               : std::optional(fmt::format("Counted: {}\n", metrics["said"].get<std::string>()));
}

bool needsNoModel(const Experiment&) {
    return false;
}

constexpr Workload kCount = {
    .name = "count",
    .title = "Count",
    .optionSets = kRunOptions,
    .optionKeys = kSharedKeys,
    .ownOptions = kOptions,
    .ownOptionsBefore = "output",
    .needsModel = needsNoModel,
    .check = check,
    .run = count,
    .plan = planCount,
    .resultText = words,
    .formView = "run",
    .formPlace = 9,
    .views = kViews,
};

Json counting(const Json& more = Json::object()) {
    Json out = {{"vitrine", 1}, {"workload", "count"}};
    out.update(more);
    return out;
}

class OutsideWorkload : public testing::Test {
protected:
    static std::string errorOf(const Json& experiment) {
        try {
            Experiment::parse(experiment, "count.json");
        } catch (const base::BadInput& error) {
            return error.message();
        }
        return "";
    }

    WorkloadRegistration registration_{kCount};
};

TEST_F(OutsideWorkload, IsCheckedLikeAnyOther) {
    EXPECT_EQ(errorOf(counting({{"count_to", 5}, {"plan", true}})), "");
    EXPECT_EQ(errorOf(counting({{"count_to", 13}})), "count.json: count_to: 13 is not counted to");
    EXPECT_THAT(errorOf(counting({{"count_to", 101}})), HasSubstr("a whole number from 1 to 100"));
    EXPECT_THAT(errorOf(counting({{"slots", 4}})), HasSubstr("count does not take it"));
    EXPECT_THAT(errorOf(counting({{"count_too", 4}})), HasSubstr("the nearest known one is count_to"));
    EXPECT_THAT(errorOf({{"vitrine", 1}, {"workload", "generate"}, {"count_to", 5}}),
                HasSubstr("generate does not take it"));
    EXPECT_THAT(errorOf({{"vitrine", 1}, {"workload", "dance"}}),
                HasSubstr("batch, serve, finetune, rl, score, count"));
}

TEST_F(OutsideWorkload, HasItsPlaceInTheTables) {
    const std::span<const OptionSpec> options = optionTable();
    const auto first =
        std::find_if(options.begin(), options.end(), [](const OptionSpec& spec) { return spec.key == "count_to"; });
    ASSERT_LT(first + 2, options.end());
    EXPECT_EQ(first[1].key, "count_word");
    EXPECT_EQ(first[2].key, "output");
    EXPECT_EQ(workloadsOfForm("run").back(), &kCount);
    EXPECT_TRUE(showsIn(*workloadOfRun("plan count"), "memory"));
    EXPECT_THROW(WorkloadRegistration again(kCount), base::Internal);
}

TEST_F(OutsideWorkload, RunsIsPlannedAndHasWords) {
    const Experiment experiment = Experiment::parse(counting({{"count_word", "n"}, {"repeat", 2}}), "count.json");
    const Json metrics = runExperiment(experiment, {}, {});
    EXPECT_EQ(metrics, Json({{"said", "n1n2n3"}, {"times", 2}, {"seed", 0}}));
    EXPECT_EQ(resultText(experiment, metrics), "Counted: n1n2n3\n");
    EXPECT_EQ(runName(experiment), "count");

    const Json planned = planExperiment(experiment, {}, {});
    EXPECT_EQ(planned, Json({{"fits", true}}));
    EXPECT_EQ(resultText(experiment.asPlan(), planned), "It fits.\n\nfits  yes\n");
    EXPECT_EQ(runWorkload(experiment.asPlan()), "plan count");
}

TEST(WorkloadTable, LosesWhatIsNoLongerRegistered) {
    {
        const WorkloadRegistration registration(kCount);
    }
    EXPECT_EQ(findWorkload("count"), nullptr);
    EXPECT_EQ(findOption("count_to"), nullptr);
}

TEST(WorkloadTable, EveryRowCanRunAndFindsItsOptions) {
    for (const Workload* workload : workloadTable()) {
        EXPECT_NE(workload->run, nullptr) << workload->name;
        EXPECT_FALSE(workload->title.empty()) << workload->name;
        for (const std::string_view key : workload->optionKeys) {
            const OptionSpec* option = findOption(key);
            ASSERT_NE(option, nullptr) << workload->name << " " << key;
            EXPECT_EQ(option->sets & workload->optionSets, 0U) << workload->name << " names " << key << " twice";
        }
        EXPECT_TRUE(workload->ownOptionsBefore.empty() || findOption(workload->ownOptionsBefore) != nullptr)
            << workload->name;
    }
}

TEST(Experiment, AccessorsHaveTheTablesDefaults) {
    const Experiment load =
        Experiment::parse({{"vitrine", 1}, {"workload", "load"}, {"model", "synthetic:tiny-llama"}}, "load.json");
    EXPECT_EQ(load.integer("max_new_tokens"), 128);
    EXPECT_EQ(load.text("weights"), "quantized");
    EXPECT_FALSE(load.isPlan());
    EXPECT_EQ(load.maybeBytes("vram_budget"), std::nullopt);
    EXPECT_FALSE(load.has("vram_budget"));
    EXPECT_TRUE(load.texts("kernel").empty());
    // What loads share with others asks for options that they do not take.
    EXPECT_FALSE(load.has("cache"));
    EXPECT_EQ(load.text("cache"), "dynamic");
    EXPECT_EQ(load.bytes("session_limit"), std::uint64_t{512} << 20);
}

TEST(Experiment, MisuseIsInternal) {
    Experiment load =
        Experiment::parse({{"vitrine", 1}, {"workload", "load"}, {"model", "synthetic:tiny-llama"}}, "load.json");
    EXPECT_THROW(load.integer("weights"), base::Internal);
    EXPECT_THROW(load.text("max_new_tokens"), base::Internal);
    EXPECT_THROW(load.text("no_such_key"), base::Internal);
    EXPECT_THROW(load.integer("top_k"), base::Internal) << "it is unset and has no default";
    EXPECT_THROW(load.set("slots", std::int64_t{4}), base::Internal);
    EXPECT_THROW(load.set("max_new_tokens", std::string("7")), base::Internal);
    load.set("max_new_tokens", std::int64_t{7});
    EXPECT_EQ(load.toJson()["max_new_tokens"], 7);
}

} // namespace
} // namespace vitrine::engine
