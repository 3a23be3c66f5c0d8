// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the Precision lab says of the models of two loads.
#include "ui/models/load/load_quality.h"

#include <QTest>

#include "tests/ui/models/precision/invented_lab.h"

using namespace vitrine;

namespace {

std::vector<sessions::RunInfo> runsWithLab() {
    return {test::inventedRun(test::inventedLab({2, 2, 20})),
            test::runInfo(2, "convert", "{}",
                          R"({"vitrine": 1, "workload": "convert", "model": "qwen3-30b", "to": "int4",)"
                          R"("group_size": 32, "output": "packed"})"),
            test::runInfo(3, "load", "{}", R"({"vitrine": 1, "workload": "load", "model": "qwen3-30b"})"),
            test::runInfo(4, "load", "{}", R"({"vitrine": 1, "workload": "load", "model": "packed"})"),
            test::runInfo(5, "load", "{}", R"({"vitrine": 1, "workload": "load", "model": "another"})")};
}

} // namespace

class LoadQualityTest final : public QObject {
    Q_OBJECT

private slots:
    void bothModelsAreFoundInTheLab() {
        const ui::FlatTreePtr table = ui::loadQuality(runsWithLab(), 4, 3);
        QVERIFY(table != nullptr);
        QCOMPARE(table->nodes[0].cells[1].text, QStringLiteral("4.500"));
        QCOMPARE(table->nodes[0].cells[2].text, QStringLiteral("16.000"));
        QCOMPARE(table->nodes[1].cells[1].text, QStringLiteral("7.43"));
        QCOMPARE(table->nodes[2].cells[1].text, QStringLiteral("97.31"));
        QCOMPARE(table->nodes[2].cells[2].text, QStringLiteral("100.00"));
    }

    void aThirdLoadStandsBesideThem() {
        std::vector<sessions::RunInfo> runs = runsWithLab();
        runs.back().metricsJson = R"({"resident_bytes": 3145728, "load_seconds": 1.5})";
        QCOMPARE(ui::thirdLoad(runs, 4, 3), sessions::RunId(5));
        QCOMPARE(ui::thirdLoad(runs, 4, 5), sessions::RunId(3));
        const ui::FlatTreePtr table = ui::threeLoads(runs, {4, 3, 5});
        const auto text = [&](std::size_t row, std::size_t column) { return table->nodes[row].cells[column].text; };
        QCOMPARE(text(0, 1), QStringLiteral("INT4, g32"));
        QCOMPARE(text(0, 2), QStringLiteral("BF16"));
        QCOMPARE(text(0, 3), QStringLiteral("–")); // the lab does not know it
        QCOMPARE(text(1, 3), QStringLiteral("3.0"));
        QCOMPARE(text(2, 3), QStringLiteral("1.50"));
        QCOMPARE(text(4, 1), QStringLiteral("7.43"));
        QCOMPARE(text(5, 2), QStringLiteral("100.00"));
        runs.back().status = sessions::RunStatus::Failed;
        QCOMPARE(ui::thirdLoad(runs, 4, 3), sessions::RunId(0));
        QVERIFY(ui::threeLoads({}, {1, 2, 3}) != nullptr);
    }

    void whatTheLabDoesNotKnowHasNoQuality() {
        QVERIFY(ui::loadQuality(runsWithLab(), 4, 5) == nullptr);
        QVERIFY(ui::loadQuality(runsWithLab(), 3, 3) == nullptr);
        QVERIFY(ui::loadQuality(runsWithLab(), 3, 99) == nullptr);
        std::vector<sessions::RunInfo> runs = runsWithLab();
        runs[1].status = sessions::RunStatus::Failed; // what it wrote is no model
        QVERIFY(ui::loadQuality(runs, 4, 3) == nullptr);
        runs = runsWithLab();
        runs[0].metricsJson.resize(100);
        QVERIFY(ui::loadQuality(runs, 4, 3) == nullptr);
        QVERIFY(ui::loadQuality({}, 1, 2) == nullptr);
    }
};

QTEST_MAIN(LoadQualityTest)
#include "load_quality_test.moc"
