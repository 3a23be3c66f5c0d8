// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/precision_data.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::ui {
namespace {

using Json = nlohmann::json;

std::string demoModel() {
    return base::resourcePath("models/vitrine-demo");
}

sessions::RunInfo doneRun(sessions::RunId id, Json spec, const Json& metrics) {
    spec["vitrine"] = 1;
    sessions::RunInfo run;
    run.id = id;
    run.workload = spec["workload"];
    run.specJson = spec.dump();
    run.metricsJson = metrics.dump();
    run.status = sessions::RunStatus::Done;
    return run;
}

Json labSpec() {
    return {{"workload", "precision"},
            {"model", demoModel()},
            {"formats", "int4:32,mxfp4"},
            {"text_tokens", 8},
            {"backend", "cpu"}};
}

/// One run of the workload on the demo model, for all tests.
const sessions::RunInfo& labRun() {
    static const sessions::RunInfo kRun = [] {
        Json spec = labSpec();
        spec["vitrine"] = 1;
        return doneRun(1, labSpec(), engine::runExperiment(engine::Experiment::parse(spec, "experiment"), {}, {}));
    }();
    return kRun;
}

TEST(PrecisionData, ARunBecomesTheData) {
    const PrecisionDataPtr data = precisionData(labRun(), {labRun()});
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(data->model, demoModel());
    EXPECT_FALSE(data->device.empty());
    ASSERT_EQ(data->result.formats.size(), 3U);
    EXPECT_EQ(data->result.text.ids.size(), 8U);
    EXPECT_EQ(data->measuredRates, std::vector<std::optional<double>>(3));
}

TEST(PrecisionData, OtherRunsGiveNone) {
    EXPECT_EQ(precisionData(doneRun(1, {{"workload", "generate"}, {"model", "m"}}, Json::object()), {}), nullptr);
    EXPECT_EQ(precisionData(doneRun(1, labSpec(), Json::object()), {}), nullptr);
    sessions::RunInfo running = labRun();
    running.status = sessions::RunStatus::Running;
    EXPECT_EQ(precisionData(running, {}), nullptr);
}

TEST(PrecisionData, RatesAreThoseOfConvertedModels) {
    const auto generate = [](sessions::RunId id, const std::string& model, double rate, double resident) {
        return doneRun(id, {{"workload", "generate"}, {"model", model}, {"prompt", "x"}},
                       {{"decode_tokens_per_second", rate}, {"resident_bytes", resident}, {"time_base", "real"}});
    };
    const auto convert = [](sessions::RunId id, int group, const std::string& output) {
        return doneRun(id,
                       {{"workload", "convert"},
                        {"model", demoModel()},
                        {"to", "int4"},
                        {"group_size", group},
                        {"output", output}},
                       Json::object());
    };
    const PrecisionDataPtr alone = precisionData(labRun(), {labRun()});
    ASSERT_NE(alone, nullptr);
    const auto dense = static_cast<double>(alone->result.formats[0].bytes);
    const PrecisionDataPtr data =
        precisionData(labRun(), {convert(2, 32, "/int4-32"), convert(3, 64, "/int4-64"), generate(4, "/int4-32", 50, 1),
                                 generate(5, "/int4-64", 60, 1), generate(6, demoModel(), 20, dense * 1.004),
                                 generate(7, demoModel(), 90, dense / 4)});
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(data->measuredRates[0], 20) << "the run whose weights were packed does not count";
    EXPECT_EQ(data->measuredRates[1], 50);
    EXPECT_FALSE(data->measuredRates[2]);
}

TEST(PrecisionData, OneMatrixIsReadFromTheFiles) {
    const PrecisionDataPtr data = precisionData(labRun(), {});
    ASSERT_NE(data, nullptr);
    const auto& weights = data->result.weights;
    const auto found = std::ranges::find_if(weights, [](const auto& w) { return w.role == "down" && w.expert == 5; });
    ASSERT_NE(found, weights.end());
    const auto number = static_cast<std::size_t>(found - weights.begin());
    const auto tensor = precisionTensor(*data, number, 1, {});
    ASSERT_TRUE(tensor->error.isEmpty()) << tensor->error.toStdString();
    EXPECT_EQ(tensor->detail.expert, 5);
    EXPECT_NEAR(tensor->detail.error.squaredError, data->result.effect(1, number).error.squaredError,
                1e-8 * tensor->detail.error.squaredError);
    EXPECT_EQ(tensor->worstGroup.error.group, tensor->detail.worstGroups.front().group);
    EXPECT_TRUE(std::ranges::is_sorted(tensor->formats, std::greater{}, &engine::FormatChoice::bytes));
    EXPECT_EQ(tensor->formats.front().name, "bf16");
    EXPECT_GE(tensor->formats.size(), 7U);
    EXPECT_EQ(precisionGroup(*data, number, 1, 3, {})->detail.error.group, 3);
    EXPECT_FALSE(precisionGroup(*data, number, 1, 1 << 30, {})->error.isEmpty());
}

TEST(PrecisionData, AModelThatIsGoneIsSaid) {
    PrecisionData data = *precisionData(labRun(), {});
    data.model = "/nowhere/model";
    EXPECT_TRUE(precisionTensor(data, 0, 1, {})->error.contains("/nowhere/model"));
    base::StopSource stop;
    stop.request_stop();
    data.model = demoModel();
    EXPECT_THROW(precisionTensor(data, 0, 1, stop.get_token()), base::Cancelled);
}

} // namespace
} // namespace vitrine::ui
