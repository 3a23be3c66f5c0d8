// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// A training step in words and tables, alone and beside its baseline.
#include "ui/models/finetune/step_text.h"

#include <QTest>

#include "tests/profiler/analysis/training_step_script.h"

using namespace vitrine;
using profiler::testing::ScriptedRun;
using profiler::testing::TrainingStepScript;

namespace {

ui::TimelinePtr runOf(const TrainingStepScript& script, int steps = 1, bool memory = true) {
    return profiler::testing::trainingRun(script, steps, memory);
}

QString cell(const ui::FlatTreePtr& table, std::size_t row, std::size_t column) {
    return table->nodes[row].cells[column].text;
}

} // namespace

class StepTextTest final : public QObject {
    Q_OBJECT

private slots:
    void theSentenceNamesWhatHoldsThePeak() {
        const auto whole = ui::stepPair(runOf({}), 1, nullptr);
        QCOMPARE(ui::stepSentence(whole->a.anatomy),
                 QStringLiteral("The peak is <b>320\u00A0MiB</b>, in the loss: the logits of all tokens at once hold "
                                "<b>240\u00A0MiB</b>."));
        const auto chunked = ui::stepPair(runOf({.chunks = 8}), 1, nullptr);
        QVERIFY(ui::stepSentence(chunked->a.anatomy).contains(QLatin1String("in the MLP backward of layer 2")));
        QVERIFY(ui::stepSecondText(*chunked, std::nullopt).startsWith(QLatin1String("The next peak is 110")));
    }

    void adviceSaysWhatOffloadWouldSave() {
        const auto pair = ui::stepPair(runOf({}), 1, nullptr);
        ui::StepAdvice advice;
        advice.peak = 100 << 20;
        advice.change = QStringLiteral("Tiled MLP");
        advice.changed = 90 << 20;
        advice.otherwise = 70 << 20;
        const QString text = ui::stepSecondText(*pair, advice);
        QVERIFY2(text.contains(QStringLiteral("Tiled MLP would lower the peak by 10.0")), qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral("Offload would save 30.0")), qPrintable(text));
        QCOMPARE(ui::offloadTable(*pair, advice)->nodes.size(), std::size_t(1));
    }

    void withoutABaselineThereAreNoColumnsOfIt() {
        const auto pair = ui::stepPair(runOf({}), 1, nullptr);
        QCOMPARE(ui::phasePeakTable(*pair)->columns.size(), std::size_t(2));
        QCOMPARE(ui::phasePeakTable(*pair)->nodes.size(), std::size_t(4));
        QVERIFY(ui::agreementTable(*pair)->nodes.empty());
        QVERIFY(ui::offloadTable(*pair, std::nullopt)->nodes.empty());
    }

    void differencesAreAMinusBAndAddUp() {
        const auto pair = ui::stepPair(runOf({.chunks = 8, .tiles = 4, .offload = true}), 1, runOf({.chunks = 8}));
        const auto table = ui::peakCategoryTable(*pair);
        QCOMPARE(table->columns.size(), std::size_t(4));
        const std::size_t total = table->nodes.size() - 1;
        QCOMPARE(cell(table, total, 0), QStringLiteral("total"));
        QVERIFY(cell(table, total, 3).startsWith(QStringLiteral("▼ −")));
        double sum = 0;
        for (std::size_t i = 0; i < total; ++i) {
            sum += cell(table, i, 1).toDouble();
        }
        QCOMPARE(sum, cell(table, total, 1).toDouble());
        QCOMPARE(ui::techniquesText(pair->a.anatomy), QStringLiteral("Chunked loss, offload, tiled MLP"));
        QCOMPARE(ui::techniquesText(pair->b->anatomy), QStringLiteral("Chunked loss, recompute"));
        QVERIFY(ui::stepSecondText(*pair, std::nullopt).contains(QLatin1String("B (Chunked loss, recompute) peaks")));
        QVERIFY(cell(ui::agreementTable(*pair), 0, 1).endsWith(QLatin1String("equal")));
    }

    void theNearestStepOfTheBaselineIsTaken() {
        const auto pair = ui::stepPair(runOf({}, 5), 4, runOf({}, 2));
        QCOMPARE(pair->a.values.step, std::int64_t(4));
        QCOMPARE(pair->b->values.step, std::int64_t(2));
    }

    void offeredStepsHaveTheFirstOnesAndTheNewest() {
        const auto steps = ui::offeredSteps(*runOf({.layers = 1}, 300), 12);
        QVERIFY(steps.size() <= 12);
        QCOMPARE(steps.front(), std::int64_t(1));
        QCOMPARE(steps[2], std::int64_t(3));
        QCOMPARE(steps.back(), std::int64_t(300));
        QVERIFY(ui::offeredSteps(*ScriptedRun().timeline()).empty());
    }

    void aStepWithoutMemorySaysSo() {
        ScriptedRun run;
        run.begin(base::ScopeKind::Step, "train", 1);
        run.begin(base::ScopeKind::Layer, "forward layer", 0);
        run.time = 10;
        run.end();
        run.end();
        run.record(base::TrainingStepEvent{0, 10, 1, 4, 1.0, 1e-4, 0.5});
        const auto pair = ui::stepPair(run.timeline(), 1, nullptr);
        QVERIFY(pair != nullptr);
        QVERIFY(ui::stepSentence(pair->a.anatomy).contains(QLatin1String("no memory events")));
        QVERIFY(ui::stepSecondText(*pair, std::nullopt).isEmpty());
    }

    void theDetailBeginsWithTheLastChunksAndThreeLayers() {
        const auto pair = ui::stepPair(runOf({.layers = 6, .chunks = 8}), 1, nullptr);
        const ui::TimeRange range = ui::firstDetail(pair->a.anatomy);
        QCOMPARE(range.begin, base::TimeNs(600 + 300));
        QCOMPARE(range.end, base::TimeNs(1400 + 3 * 250));
        const ui::TimeRange peak = ui::detailAroundPeak(pair->a.anatomy);
        QVERIFY(peak.contains(pair->a.anatomy.peak.maxTime - pair->a.anatomy.begin));
    }
};

QTEST_GUILESS_MAIN(StepTextTest)
#include "step_text_test.moc"
