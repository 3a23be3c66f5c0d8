// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_text.h"

#include <QTest>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/experiment.h"
#include "engine/workload/precision/precision_format.h"
#include "tests/ui/models/finetune/training_script.h"
#include "ui/models/common/format.h"

using namespace vitrine;
using test::TrainingScript;

namespace {

ui::TrainingRunPtr runOf(const TrainingScript& script) {
    return ui::TrainingRun::make(script.info(), *script.timeline(), 0.9);
}

sessions::RunInfo live(const TrainingScript& script) {
    sessions::RunInfo info = script.info();
    info.status = sessions::RunStatus::Running;
    return info;
}

} // namespace

class TrainingTextTest final : public QObject {
    Q_OBJECT

private slots:
    void longTimes() {
        QCOMPARE(ui::longTimeText(223), QStringLiteral("3 min 43 s"));
        QCOMPARE(ui::longTimeText(59.9999), ui::durationText(59'999'900'000));
        QCOMPARE(ui::longTimeText(4200), QStringLiteral("1 h 10 min"));
        QCOMPARE(ui::longTimeText(3599.8), QStringLiteral("1 h 0 min"));
        QCOMPARE(ui::longTimeText(180'000), QStringLiteral("2 d 2 h"));
        QCOMPARE(ui::longTimeText(std::numeric_limits<double>::quiet_NaN()), ui::unknownText());
        QCOMPARE(ui::longTimeText(-1), ui::unknownText());
    }

    void timeLeft() {
        const TrainingScript begun{.steps = 5, .total = 100};
        ui::TrainingTimeText words = ui::trainingTimeText(live(begun), runOf(begun).get());
        QCOMPARE(words.number, ui::unknownText());
        QVERIFY(words.how.contains(QLatin1String("after 20 steps")));
        const TrainingScript half{.steps = 50, .total = 100};
        words = ui::trainingTimeText(live(half), runOf(half).get());
        QCOMPARE(words.title, QStringLiteral("Time left"));
        QVERIFY2(words.how.startsWith(QLatin1String("50 steps of 90.0")), qPrintable(words.how));
        words = ui::trainingTimeText(half.info(), runOf(half).get());
        QCOMPARE(words.title, QStringLiteral("Time"));
        QCOMPARE(words.how, QStringLiteral("for 50 of 100 steps"));
        QVERIFY(ui::trainingTimeText(live(begun), nullptr).how.contains(QLatin1String("first step")));
        QVERIFY(ui::trainingTimeText(begun.info(), nullptr).how.contains(QLatin1String("No step")));
    }

    void facts() {
        const auto facts = ui::trainingFacts(TrainingScript{}.info(1, R"(, "sequence_length": 4096, "lr": 0.0002)"));
        const auto value = [&](const QString& name) {
            for (const auto& [each, text] : facts) {
                if (each == name) {
                    return text;
                }
            }
            return QString();
        };
        QCOMPARE(value(QStringLiteral("Model")), QStringLiteral("tiny"));
        QCOMPARE(value(QStringLiteral("Data")), QStringLiteral("rows.jsonl"));
        QCOMPARE(value(QStringLiteral("Row")), QStringLiteral("4,096 tokens, packed"));
        QCOMPARE(value(QStringLiteral("Method")), QStringLiteral("LoRA, rank 8 on attention"));
        QVERIFY(ui::trainingFacts(test::runInfo(1, "finetune", "{}", "no json")).empty());
    }

    void tables() {
        const TrainingScript script{.steps = 60, .evalEvery = 20, .saveEvery = 10, .keep = 3};
        const auto run = runOf(script);
        const auto saved = ui::checkpointTable(*run);
        QCOMPARE(saved->nodes.size(), std::size_t(3));
        QCOMPARE(saved->nodes[0].key, quint64(60));
        QCOMPARE(saved->nodes[0].cells[2].text, QStringLiteral("best, newest"));
        QCOMPARE(ui::checkpointTable(*run, 1)->nodes.size(), std::size_t(1));
        const auto steps = ui::trainingStepTable(*run, 7);
        QCOMPARE(steps->nodes.size(), std::size_t(7));
        QCOMPARE(steps->nodes.back().key, quint64(60));
        QCOMPARE(ui::trainingStepTable(*run)->nodes.size(), std::size_t(60));
        QVERIFY(ui::trainingStepTable(*runOf({}))->nodes.empty());
        const auto trained = ui::trainedTable(script.info(), run.get());
        QCOMPARE(trained->nodes[0].cells[1].text, QStringLiteral("LoRA, rank 8"));
        QVERIFY(trained->nodes[2].cells[1].text.contains(QLatin1String("1,000")));
        QVERIFY(ui::trainingStepText(*run, 59).startsWith(QLatin1String("Step 60: loss 1.250")));
        QCOMPARE(ui::lossText(std::numeric_limits<double>::infinity()), QStringLiteral("not a number"));
    }

    void changedCodes() {
        const auto run = runOf({.steps = 3, .codes = 0.03});
        const auto steps = ui::trainingStepTable(*run);
        QCOMPARE(steps->columns.back().title, QStringLiteral("Codes changed"));
        QCOMPARE(steps->nodes[2].cells.back().text, QStringLiteral("1.0\u00A0%"));
        QVERIFY(ui::trainingStepText(*run, 2).endsWith(QStringLiteral(", 1.0\u00A0% of codes changed")));
        QCOMPARE(ui::trainingStepTable(*runOf({.steps = 3}))->columns.size(), steps->columns.size() - 1);
        QCOMPARE(ui::codesText(0.0001312), QStringLiteral("0.0131\u00A0%"));
        QCOMPARE(ui::codesText(0), QStringLiteral("0.0\u00A0%"));
    }

    void formatsThatTrainingWasFor() {
        const auto formatOf = [](const std::string& options) {
            return ui::formatTrainedFor(TrainingScript{}.info(1, R"(, "method": "full")" + options));
        };
        QCOMPARE(formatOf(""), std::string());
        QCOMPARE(formatOf(R"(, "qat": "int4")"), std::string("int4:32:seven"));
        QCOMPARE(formatOf(R"(, "qat": "int4", "group_size": -1, "int4_rule": "seven")"), std::string("int4:-1:seven"));
        QCOMPARE(formatOf(R"(, "qat": "int4", "group_size": 8, "int4_rule": "compressed-tensors")"),
                 std::string("int4:8"));
        QCOMPARE(formatOf(R"(, "qat": "fp8")"), std::string("fp8"));
        QCOMPARE(formatOf(R"(, "qat": "mxfp4")"), std::string("mxfp4"));
        for (const char* format : {"int4:32:seven", "int4:-1:seven", "int4:8", "fp8", "mxfp4"}) {
            QCOMPARE(engine::precisionFormats("bf16," + std::string(format)).size(), std::size_t(2));
        }
        QCOMPARE(ui::formatTrainedFor(live({})), std::string());
    }

    void comparingFormats() {
        const auto info =
            TrainingScript{}.info(1, R"(, "method": "full", "qat": "int4", "batch": 4, "backend": "cpu")");
        const auto lab = nlohmann::json::parse(*ui::experimentComparing(info));
        QCOMPARE(lab["workload"].get<std::string>(), std::string("precision"));
        QCOMPARE(lab["model"].get<std::string>(), std::string("out"));
        QCOMPARE(lab["formats"].get<std::string>(), std::string("bf16,int4:32:seven"));
        QCOMPARE(lab["backend"].get<std::string>(), std::string("cpu"));
        QVERIFY(!lab.contains("output"));
        QVERIFY(engine::Experiment::read(lab.dump()));
        QVERIFY(!ui::experimentComparing(TrainingScript{}.info()));
        const auto merged = TrainingScript{}.info(1, R"(, "method": "lora", "qat": "int4", "merge": "int4")");
        QCOMPARE(nlohmann::json::parse(*ui::experimentComparing(merged))["model"].get<std::string>(),
                 std::string("out/merged"));
        QVERIFY(!ui::experimentComparing(TrainingScript{}.info(1, R"(, "method": "lora", "qat": "int4")")));
        QVERIFY(!ui::experimentComparing(
            test::runInfo(1, "finetune", "{}",
                          R"({"vitrine": 1, "workload": "finetune", "model": "m", "method": "full", "qat": "fp8"})")));
    }

    void goingOn() {
        const auto info = TrainingScript{}.info();
        const auto resumed = nlohmann::json::parse(*ui::experimentFrom(info, 40, false));
        QCOMPARE(resumed["resume"].get<std::string>(), std::string("out/checkpoint-40"));
        QCOMPARE(resumed["output"].get<std::string>(), std::string("out"));
        const auto branch = nlohmann::json::parse(*ui::experimentFrom(info, 40, true));
        QCOMPARE(branch["output"].get<std::string>(), std::string("out-from-40"));
        QVERIFY(!ui::experimentFrom(test::runInfo(1, "finetune", "{}", R"({"vitrine": 1, "workload": "finetune"})"), 4,
                                    true));
    }
};

QTEST_GUILESS_MAIN(TrainingTextTest)
#include "training_text_test.moc"
