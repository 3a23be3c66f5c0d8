// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/precision_data.h"

#include <QTest>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "ui/models/precision/precision_map.h"

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

} // namespace

class TestPrecisionData : public QObject {
    Q_OBJECT

private slots:
    void aRunBecomesTheData();
    void otherRunsGiveNone();
    void aRunThatGoesOnHasTheErrorsThatAreKnown();
    void ratesAreThoseOfConvertedModels();
    void oneMatrixIsReadFromTheFiles();
    void aModelThatIsGoneIsSaid();
};

void TestPrecisionData::aRunBecomesTheData() {
    const PrecisionDataPtr data = precisionData(labRun(), {labRun()});
    QVERIFY(data != nullptr);
    QCOMPARE(data->model, demoModel());
    QVERIFY(!data->device.empty());
    QCOMPARE(data->result.formats.size(), std::size_t{3});
    QCOMPARE(data->result.text.ids.size(), std::size_t{8});
    QVERIFY(data->measuredRates == std::vector<std::optional<double>>(3));
}

void TestPrecisionData::otherRunsGiveNone() {
    QVERIFY(precisionData(doneRun(1, {{"workload", "generate"}, {"model", "m"}}, Json::object()), {}) == nullptr);
    QVERIFY(precisionData(doneRun(1, labSpec(), Json::object()), {}) == nullptr);
    sessions::RunInfo failed = labRun();
    failed.status = sessions::RunStatus::Failed;
    QVERIFY(precisionData(failed, {}) == nullptr);
}

void TestPrecisionData::aRunThatGoesOnHasTheErrorsThatAreKnown() {
    Json spec = labSpec();
    spec["vitrine"] = 1;
    Json facts = Json::object(), first;
    engine::WorkloadSinks sinks;
    sinks.fact = [&](std::string_view name, const Json& value) {
        facts[std::string(name)] = value;
        first = first.is_null() && facts.contains("precision") ? facts : first;
    };
    engine::runExperiment(engine::Experiment::parse(spec, "experiment"), sinks, {});
    sessions::RunInfo running = doneRun(1, labSpec(), first);
    running.status = sessions::RunStatus::Running;
    const PrecisionDataPtr data = precisionData(running, {});
    QVERIFY(data != nullptr);
    QVERIFY(data->live);
    QCOMPARE(data->result.text.scored(), std::size_t{0});
    const KnownErrors int4 = knownErrors(data->result, 1), mxfp4 = knownErrors(data->result, 2);
    QVERIFY(int4.known > 0 && int4.known < int4.all);
    QCOMPARE(mxfp4.known, std::size_t{0});
    QCOMPARE(formatInWork(data->result), std::size_t{1});
    QVERIFY(!std::isnan(weightError(data->result, ErrorMeasure::Snr, 1, 0)));
    QVERIFY(std::isnan(weightError(data->result, ErrorMeasure::Snr, 2, 0)));
    const PrecisionMap map = precisionMap(data->result);
    QVERIFY(cellWords(data->result, map, ErrorMeasure::Snr, 2, 0, 0).contains(QStringLiteral("not measured yet")));
}

void TestPrecisionData::ratesAreThoseOfConvertedModels() {
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
    QVERIFY(alone != nullptr);
    const auto dense = static_cast<double>(alone->result.formats[0].bytes);
    const PrecisionDataPtr data =
        precisionData(labRun(), {convert(2, 32, "/int4-32"), convert(3, 64, "/int4-64"), generate(4, "/int4-32", 50, 1),
                                 generate(5, "/int4-64", 60, 1), generate(6, demoModel(), 20, dense * 1.004),
                                 generate(7, demoModel(), 90, dense / 4)});
    QVERIFY(data != nullptr);
    // The run whose weights were packed does not count.
    QVERIFY(data->measuredRates[0] == 20.0);
    QVERIFY(data->measuredRates[1] == 50.0);
    QVERIFY(!data->measuredRates[2]);
}

void TestPrecisionData::oneMatrixIsReadFromTheFiles() {
    const PrecisionDataPtr data = precisionData(labRun(), {});
    QVERIFY(data != nullptr);
    const auto& weights = data->result.weights;
    const auto found = std::ranges::find_if(weights, [](const auto& w) { return w.role == "down" && w.expert == 5; });
    QVERIFY(found != weights.end());
    const auto number = static_cast<std::size_t>(found - weights.begin());
    TensorFiles files;
    const auto own = files.tensor(*data, number, 1, {});
    QCOMPARE(own->formats.size(), std::size_t{3}); // those of the run
    const auto tensor = files.withOtherFormats(*data, number, *own, {});
    QVERIFY2(tensor->error.isEmpty(), qPrintable(tensor->error));
    QCOMPARE(tensor->detail.expert, std::int64_t{5});
    const double stored = data->result.effect(1, number).error.squaredError;
    QVERIFY(std::abs(tensor->detail.error.squaredError - stored) <= 1e-8 * stored);
    QCOMPARE(tensor->worstGroup.error.group, tensor->detail.worstGroups.front().group);
    QVERIFY(std::ranges::is_sorted(tensor->formats, std::greater{}, &engine::FormatChoice::bytes));
    QCOMPARE(tensor->formats.front().name, std::string("bf16"));
    QVERIFY(tensor->formats.size() >= 7);
    QCOMPARE(files.group(*data, number, 1, 3, {})->detail.error.group, std::int64_t{3});
    QVERIFY(!files.group(*data, number, 1, 1 << 30, {})->error.isEmpty());
}

void TestPrecisionData::aModelThatIsGoneIsSaid() {
    PrecisionData data = *precisionData(labRun(), {});
    data.model = "/nowhere/model";
    data.folder = "/nowhere/else"; // the run was on another machine
    QVERIFY(TensorFiles().tensor(data, 0, 1, {})->error.contains("/nowhere/model"));
    base::StopSource stop;
    stop.request_stop();
    data.model = demoModel();
    QVERIFY_THROWS_EXCEPTION(base::Cancelled, TensorFiles().tensor(data, 0, 1, stop.get_token()));
}

} // namespace vitrine::ui

QTEST_GUILESS_MAIN(vitrine::ui::TestPrecisionData)
#include "precision_data_test.moc"
