// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_columns.h"

#include <QTest>

#include "tests/ui/models/finetune/training_script.h"

using namespace vitrine;
using test::TrainingScript;

class TrainingColumnsTest final : public QObject {
    Q_OBJECT

private slots:
    void aRunThatGoesOnShowsWhatItWouldShowAtOnce() {
        const auto axis = ui::AxisMap::ofTime({0, 40 * ui::kStepLength}, 100);
        for (const int columns : {100, 20}) { // steps wider and narrower than a column
            TrainingScript script{.steps = 3, .total = 40, .memory = true};
            test::RecordedRun recorded;
            script.record(recorded);
            ui::TrainingColumns kept;
            for (int i = 0; i < 30; ++i) {
                const auto timeline = recorded.timelineSoFar();
                const auto run = ui::TrainingRun::make(script.info(), *timeline, 0);
                const auto grown = kept.stack(*run, *timeline, axis, columns);
                const auto fresh = ui::TrainingColumns().stack(*run, *timeline, axis, columns);
                QCOMPARE(grown->values, fresh->values);
                for (std::size_t c = 0; c < grown->columns.size(); ++c) {
                    QCOMPARE(grown->columns[c].present, fresh->columns[c].present);
                    QCOMPARE(grown->columns[c].total, fresh->columns[c].total);
                    QCOMPARE(grown->columns[c].time, fresh->columns[c].time);
                }
                QCOMPARE(kept.stack(*run, *timeline, axis, columns), grown); // nothing is new
                script.recordStep(recorded, ++script.steps);
            }
        }
    }

    void oneMoreStepAsksForItsColumnsOnly() {
        TrainingScript script{.steps = 2000, .total = 4000, .memory = true};
        test::RecordedRun recorded;
        script.record(recorded);
        const auto axis = ui::AxisMap::ofTime({0, 4000 * ui::kStepLength}, 400);
        ui::TrainingColumns kept;
        std::uint64_t first = 0;
        for (int i = 0; i < 20; ++i) {
            const auto timeline = recorded.timelineSoFar();
            kept.stack(*ui::TrainingRun::make(script.info(), *timeline, 0), *timeline, axis, 400);
            first = i == 0 ? kept.asked() : first;
            script.recordStep(recorded, ++script.steps);
        }
        QVERIFY(first >= 200);
        QVERIFY(kept.asked() - first <= 20 * 3);
    }
};

QTEST_GUILESS_MAIN(TrainingColumnsTest)
#include "training_columns_test.moc"
