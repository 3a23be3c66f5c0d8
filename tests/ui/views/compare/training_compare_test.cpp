// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Two training runs in the Compare view: one step of each, aligned by phase, and both losses, while the runs go on too.
#include "ui/views/compare/training_compare.h"

#include <QComboBox>
#include <QTableView>
#include <QTest>
#include <QWidget>
#include <algorithm>

#include "tests/profiler/analysis/training_step_script.h"
#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/finetune/training_script.h"
#include "ui/views/compare/compare_view.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/series_lane.h"
#include "ui/widgets/timeline/step_lane.h"

using namespace vitrine;
using profiler::testing::TrainingStepScript;

namespace {

ui::TimelinePtr runOf(const TrainingStepScript& script, int steps) {
    return profiler::testing::trainingRun(script, steps, true, [](int step) { return 2.0 / step; });
}

struct Compared {
    Compared() : view({&document, &time, nullptr, nullptr}, &window) {
        window.resize(1080, 820);
        view.resize(1080, 820);
        window.show();
    }
    void show(const ui::TimelinePtr& a, const ui::TimelinePtr& b) {
        document.show(QStringLiteral("x.vitrine"),
                      {test::TrainingScript{}.info(1), test::TrainingScript{}.info(2, ", \"checkpoint\": \"offload\"")},
                      {{1, a}, {2, b}});
        document.setRunA(1);
        document.setRunB(2);
    }
    ui::TrainingCompare& figure() { return *view.training(); }
    bool drawn() { return figure().pair() != nullptr && figure().pair()->b && view.settled(); }

    ui::SessionDocument document;
    ui::TimeCursor time;
    QWidget window; ///< as in the program, the view does not say how large its window is
    ui::CompareView view;
};

} // namespace

class TrainingCompareTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void oneStepOfEachAndBothLosses() {
        Compared shown;
        shown.show(runOf({}, 3), runOf({.tiles = 4, .offload = true}, 5));
        QTRY_VERIFY(shown.drawn());
        QVERIFY(shown.figure().isVisible() && !shown.view.stack()->isVisible());
        QVERIFY(shown.figure().laneB()->isVisible());
        QCOMPARE(shown.figure().steps()->count(), 3); // of A
        QCOMPARE(shown.figure().curve(true)->raw.size(), std::size_t(3));
        QCOMPARE(shown.figure().curve(false)->raw.size(), std::size_t(5));
        QVERIFY(shown.figure().lossLane()->facts().startsWith(QLatin1String("Step 3, smoothed loss: A ")));
        QVERIFY(shown.figure().lossCursor()->showsAll());
        QVERIFY(shown.figure().noteText().contains(QStringLiteral("B − A ")));
        QVERIFY(shown.view.picture({1080, 820}, 1).width() > 0);
    }

    void phasesStandBelowEachOther() {
        Compared shown;
        shown.show(runOf({}, 2), runOf({.unit = 400}, 2));
        QTRY_VERIFY(shown.drawn());
        const base::TimeNs phased = shown.figure().stepCursor()->extent().end;
        QCOMPARE(phased, shown.figure().pair()->a.length());
        shown.figure().alignment()->setCurrent(1); // over seconds B is longer
        QCOMPARE(shown.figure().stepCursor()->extent().end, shown.figure().pair()->b->length());
        QVERIFY(shown.figure().pair()->b->length() > phased);
    }

    void lossesOverTokensAndTime() {
        Compared shown;
        shown.show(runOf({}, 3), runOf({}, 3));
        QTRY_VERIFY(shown.drawn());
        shown.figure().lossAxis()->setCurrent(1);
        QTRY_VERIFY(shown.view.settled());
        QCOMPARE(shown.figure().curve(true)->end, 3 * 4096 * ui::kTokenLength);
        QVERIFY(shown.figure().lossLane()->facts().startsWith(QLatin1String("12,288 tokens")));
        shown.figure().lossAxis()->setCurrent(2);
        QTRY_VERIFY(shown.view.settled());
        QVERIFY(shown.figure().lossCursor()->extent().end >= shown.figure().curve(true)->end);
        QVERIFY(shown.figure().lossCursor()->showsAll());
    }

    void anotherStepIsChosen() {
        Compared shown;
        shown.show(runOf({}, 3), runOf({}, 3));
        QTRY_VERIFY(shown.drawn());
        shown.figure().steps()->setCurrentIndex(2);
        QTRY_COMPARE(shown.figure().pair()->a.values.step, 3);
        QCOMPARE(shown.figure().pair()->b->values.step, 3);
    }

    void theWholeRunsAreASegmentAway() {
        Compared shown;
        shown.show(runOf({}, 3), runOf({}, 3));
        QTRY_VERIFY(shown.drawn());
        QVERIFY(!shown.view.alignment()->isVisible());
        shown.view.extent()->setCurrent(1);
        QVERIFY(shown.view.stack()->isVisible() && !shown.figure().isVisible());
        QVERIFY(shown.view.alignment()->isVisible());
    }

    void aLowWindowGivesTheTablesPlaceToTheFigure() {
        Compared shown;
        shown.show(runOf({}, 2), runOf({}, 2));
        QTRY_VERIFY(shown.drawn());
        const QList<QTableView*> tables = shown.view.findChildren<QTableView*>();
        const auto found = std::ranges::find(tables, QStringLiteral("Results of the runs"), &QWidget::accessibleName);
        QVERIFY(found != tables.end());
        const QTableView* table = *found;
        QVERIFY(table->isVisible());
        shown.view.resize(960, 430);
        QTRY_VERIFY(!table->isVisible());
        QVERIFY(shown.figure().isVisible());
        shown.view.extent()->setCurrent(1);
        QVERIFY(table->isVisible());
    }

    void otherRunsHaveNoSteps() {
        Compared shown;
        const sessions::RunInfo a = test::runInfo(1, "generate", "{}"), b = test::runInfo(2, "generate", "{}");
        shown.document.show(QStringLiteral("x.vitrine"), {a, b}, {{1, runOf({}, 1)}, {2, runOf({}, 1)}});
        shown.document.setRunA(1);
        shown.document.setRunB(2);
        QVERIFY(!shown.figure().isVisible() && !shown.view.extent()->isVisible());
        QVERIFY(shown.view.stack()->isVisible());
    }

    void runsThatGoOn() {
        ui::TrainingCompare figure(nullptr);
        figure.resize(1000, 500);
        figure.show();
        const sessions::RunInfo a = test::TrainingScript{}.info(1), b = test::TrainingScript{}.info(2);
        figure.setRuns({a, runOf({}, 0)}, {b, nullptr});
        QTRY_COMPARE(figure.noteText(), QStringLiteral("#1 has no step yet."));
        figure.setRuns({a, runOf({}, 1)}, {b, runOf({}, 0)});
        QTRY_VERIFY(figure.pair() != nullptr && figure.settled());
        QVERIFY(!figure.pair()->b && !figure.laneB()->isVisible());
        figure.setRuns({a, runOf({}, 2)}, {b, runOf({}, 1)});
        QTRY_VERIFY(figure.pair()->b && figure.settled());
        const ui::StepPairPtr before = figure.pair();
        figure.setRuns({a, runOf({}, 9)}, {b, runOf({}, 7)});
        QTRY_COMPARE(figure.curve(true)->raw.size(), std::size_t(9));
        QCOMPARE(figure.pair(), before); // the step that is looked at stays
        QCOMPARE(figure.steps()->count(), 9);
    }
};

QTEST_MAIN(TrainingCompareTest)
#include "training_compare_test.moc"
