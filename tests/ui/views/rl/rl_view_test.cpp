// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The RL view: without a run, with a few and many steps, against a baseline, and its step.
#include "ui/views/rl/rl_view.h"

#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/views/rl/shown_rl.h"
#include "ui/views/rl/rl_lanes.h"
#include "ui/views/rl/rl_panel.h"
#include "ui/views/rl/rl_step_legend.h"
#include "ui/views/rl/rl_step_pane.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/bar_lane.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/series_lane.h"
#include "ui/widgets/timeline/step_lane.h"

using namespace vitrine;
using test::RlScript;
using test::ShownRl;

namespace {

const ui::FlatNode& figure(const ui::RlView& view, std::size_t row) {
    return view.panel()->figures()->model()->tree().nodes[row];
}

} // namespace

class RlViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void withoutARun() {
        ShownRl shown;
        QCOMPARE(shown.view.nothingText(), QStringLiteral("No reinforcement learning run in this session."));
        QVERIFY(!shown.view.wantsInspector());
        QVERIFY(shown.view.picture({1024, 700}, 1).width() > 0);
        shown.document.show(QStringLiteral("x.vitrine"), {test::runInfo(1, "generate", "{}"), RlScript{}.info(2)}, {});
        shown.document.setRunA(1);
        QTRY_COMPARE(shown.view.nothingText(), QStringLiteral("The chosen run is no reinforcement learning."));
    }

    void beforeTheFirstStep() {
        ShownRl shown;
        shown.show({.steps = 0, .total = 20}, {}, sessions::RunStatus::Running);
        QTRY_VERIFY(shown.view.nothingText().isEmpty()); // axes that wait
        QVERIFY(shown.view.lanes()->reward()->picture(1).width() > 0);
        QVERIFY(!shown.view.lanes()->shownStep());
        QVERIFY(shown.view.sentenceText().isEmpty());
    }

    void failedBeforeTheFirstStep() {
        ShownRl shown;
        sessions::RunInfo info = RlScript{}.info();
        info.status = sessions::RunStatus::Failed;
        info.error = "task: sumz: is none";
        shown.document.show(QStringLiteral("x.vitrine"), {info}, {{1, RlScript{}.timeline()}});
        QTRY_VERIFY(shown.view.nothingText().contains(QStringLiteral("sumz")));
    }

    void twoStepsAreEnough() {
        ShownRl shown;
        shown.show({.steps = 2, .memory = true});
        QTRY_COMPARE(shown.view.shown().number(), 2);
        QTRY_VERIFY(shown.view.settled());
        QCOMPARE(shown.view.lanes()->factsOf(shown.view.lanes()->reward()),
                 QString::number(RlScript{}.reward(2), 'f', 3));
        QVERIFY(shown.view.picture({1440, 820}, 1).width() > 0);
    }

    /// A step is chosen: header values, inspector and the memory of the step follow.
    void aStepIsChosen() {
        ShownRl shown;
        shown.show({.steps = 30, .evalEvery = 10, .memory = true}, RlScript{.steps = 20, .difference = 0.012});
        QTRY_VERIFY(shown.view.settled() && shown.view.shown().b != nullptr);
        shown.view.chooseStep(12);
        QTRY_COMPARE(shown.view.shown().number(), 12);
        QCOMPARE(shown.view.lanes()->factsOf(shown.view.lanes()->difference()), QStringLiteral("A 0.0030, B 0.0120"));
        QCOMPARE(figure(shown.view, 5).cells[3].text, QStringLiteral("▼ 4.00x"));
        QCOMPARE(figure(shown.view, 5).cells[3].delta.value(), -1);
        QTRY_VERIFY(shown.view.stepPane()->memory() != nullptr && shown.view.stepPane()->memory()->step == 12);
        QVERIFY(shown.view.stepPane()->headText().startsWith(QStringLiteral("peak 4.0\u00A0MiB in rollout, 4.0")));
        QCOMPARE(shown.view.stepPane()->bands()->rows()[0].parts.size(), std::size_t(3));
        QCOMPARE(shown.view.stepPane()->bands()->rows()[1].parts.size(), std::size_t(2)); // awake, asleep
        // B ended at step 20.
        shown.view.chooseStep(25);
        QTRY_COMPARE(shown.view.shown().number(), 25);
        QCOMPARE(figure(shown.view, 0).cells[2].text, QStringLiteral("–"));
        QCOMPARE(figure(shown.view, 0).cells[3].delta.value(), 0);
    }

    void whatLimitsTheStep() {
        ShownRl shown;
        shown.show({.steps = 5});
        QTRY_VERIFY(shown.view.sentenceText().contains(QStringLiteral("1 of 32 answers")));
        QVERIFY(shown.view.changeText().contains(QStringLiteral("partial_tokens")));
        QSignalSpy wanted(&shown.view, &ui::View::experimentWanted);
        shown.view.tryButton()->click();
        QCOMPARE(wanted.size(), 1);
        QVERIFY(wanted[0][0].toString().contains(QStringLiteral("\"partial_tokens\"")));
    }

    void aPhaseOpensOtherViews() {
        ShownRl shown;
        shown.show({.steps = 3, .memory = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.stepPane()->memory() != nullptr);
        QSignalSpy opened(&shown.view, &ui::View::openView);
        emit shown.view.stepPane()->bands()->partClicked(0, 0);
        QCOMPARE(opened.size(), 1);
        QCOMPARE(opened[0][0].toString(), QStringLiteral("memory"));
        QCOMPARE(shown.time.range().begin, test::ns(RlScript{}.beginOf(3)));
        QCOMPARE(shown.time.range().end, test::ns(RlScript{}.beginOf(3) + RlScript::kRollout));
    }

    /// A double click in the memory of the step, or Enter at its cursor, opens Memory at that instant.
    void anInstantOfTheStepOpensMemory() {
        ShownRl shown;
        shown.show({.steps = 3, .memory = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.stepPane()->memory() != nullptr);
        QSignalSpy opened(&shown.view, &ui::View::openView);
        ui::StepLane* lane = shown.view.stepPane()->lane();
        const QPoint middle(lane->width() / 2, lane->height() / 2);
        QTest::mouseDClick(lane, Qt::LeftButton, {}, middle);
        QCOMPARE(opened.size(), 1);
        const base::TimeNs begin = test::ns(RlScript{}.beginOf(3));
        QCOMPARE(shown.time.cursor().value(), begin + lane->timeAt(middle.x()));
        QTest::keyClick(lane, Qt::Key_Return);
        QCOMPARE(opened.size(), 2);
    }

    /// The bar of the last step ends within the axis, however few there are.
    void theLastBarHasRoom() {
        ShownRl shown;
        shown.show({.steps = 2});
        QTRY_VERIFY(shown.view.settled() && shown.view.shown().number() == 2);
        QVERIFY(shown.view.axis()->extent().end > 5 * ui::kStepLength / 2);
    }

    /// A dragged range shows means, and a step again when it goes.
    void meansOfARange() {
        ShownRl shown;
        shown.show({.steps = 10}, RlScript{.steps = 6, .difference = 0.012});
        QTRY_VERIFY(shown.view.settled() && shown.view.shown().b != nullptr);
        shown.view.axis()->setMeasured(ui::TimeRange{2 * ui::kStepLength - 1, 4 * ui::kStepLength + 1});
        QTRY_VERIFY(shown.view.settled());
        QCOMPARE(figure(shown.view, 2).cells[1].text, QStringLiteral("53.0")); // 52, 53 and 54 tokens
        QCOMPARE(figure(shown.view, 5).cells[2].text, QStringLiteral("0.0120"));
        shown.view.axis()->setMeasured({});
        QCOMPARE(figure(shown.view, 2).cells[1].text, QStringLiteral("60.0"));
    }

    void aStepWithoutMemoryLeadsToOneThatHasIt() {
        ShownRl shown;
        RlScript script{.steps = 4};
        test::RecordedRun run;
        script.steps = 0;
        script.record(run);
        for (int step = 1; step <= 4; ++step) {
            script.memory = step == 2;
            script.recordStep(run, step);
        }
        const ui::TimelinePtr timeline = run.timeline();
        shown.time.reset({0, timeline->end()});
        shown.document.show(QStringLiteral("x.vitrine"), {script.info(1)}, {{1, timeline}});
        shown.document.setRunA(1);
        QTRY_COMPARE(shown.view.stepPane()->emptyText(), QStringLiteral("Memory was not recorded in step 4."));
        QCOMPARE(shown.view.stepPane()->memory()->nearestWithMemory.value(), 2);
        emit shown.view.stepPane()->stepWanted(2);
        QTRY_VERIFY(shown.view.settled() && shown.view.stepPane()->emptyText().isEmpty());
    }

    void rewardsAreSmoothed() {
        ShownRl shown;
        shown.show({.steps = 30});
        QTRY_VERIFY(shown.view.settled());
        const std::size_t raw = shown.view.lanes()->reward()->plots()[0].series.size();
        QVERIFY(shown.view.perform(QStringLiteral("view.smooth")));
        const ui::SeriesPlot& plot = shown.view.lanes()->reward()->plots()[0];
        QCOMPARE(plot.series.size(), raw + 1);
        QVERIFY(plot.series[raw - 1].letter.isNull() && plot.series[raw].letter == QLatin1Char('A'));
        QVERIFY(shown.view.whyNot(QStringLiteral("view.smooth")).isEmpty());
    }

    void axes() {
        ShownRl shown;
        shown.show({.steps = 10});
        QTRY_VERIFY(shown.view.settled());
        for (const int axis : {1, 2, 0}) {
            shown.view.axes()->setCurrent(axis);
            QTRY_VERIFY(shown.view.settled() && shown.view.lanes()->placeOf(10).has_value());
            shown.view.chooseStep(4);
            QTRY_COMPARE(shown.view.shown().number(), 4);
        }
    }

    void keys() {
        ShownRl shown;
        shown.show({.steps = 30, .evalEvery = 10});
        QTRY_VERIFY(shown.view.settled());
        shown.view.chooseStep(5);
        QTest::keyClick(shown.view.lanes()->reward(), Qt::Key_Right);
        QCOMPARE(shown.view.lanes()->chosenStep().value(), 6);
        QTest::keyClick(&shown.view, Qt::Key_Right, Qt::ShiftModifier);
        QCOMPARE(shown.view.lanes()->chosenStep().value(), 16);
        QTest::keyClick(&shown.view, Qt::Key_E);
        QCOMPARE(shown.view.lanes()->chosenStep().value(), 20);
        QVERIFY(shown.view.perform(QStringLiteral("zoom.follow")));
        QCOMPARE(shown.view.lanes()->chosenStep().value(), 30);
        QVERIFY(!shown.view.axis()->cursor());
    }

    /// In a low window plots keep the height to be read, and what the memory is of stays in sight.
    void aLowWindow() {
        ShownRl shown;
        shown.show({.steps = 5, .evalEvery = 2, .memory = true}, RlScript{.steps = 5});
        QTRY_VERIFY(shown.view.settled() && shown.view.stepPane()->memory() != nullptr);
        shown.view.resize(976, 458);
        const ui::RlLanes* lanes = shown.view.lanes();
        for (const ui::Lane* lane :
             {static_cast<const ui::Lane*>(lanes->reward()), static_cast<const ui::Lane*>(lanes->evaluation()),
              static_cast<const ui::Lane*>(lanes->difference())}) {
            QVERIFY(!lane->collapsed());
            QTRY_VERIFY(lane->frame().size.height() >= 80);
        }
        QVERIFY(lanes->lengths()->collapsed() && lanes->phases()->collapsed());
        const ui::RlStepPane* pane = shown.view.stepPane();
        QTRY_VERIFY(pane->lane()->frame().size.height() >= 80);
        QVERIFY(pane->legend()->strip()->isVisible() && !pane->legend()->column()->isVisible());
        QVERIFY(pane->geometry().bottom() <= pane->parentWidget()->rect().bottom());
        shown.view.resize(1000, 800);
        QTRY_VERIFY(pane->legend()->column()->isVisible() && !pane->legend()->strip()->isVisible());
        QVERIFY(!lanes->lengths()->collapsed());
    }

    /// From the step that is shown first, one click leads to the one in which the run held the most.
    void thePeakOfTheRun() {
        ShownRl shown;
        shown.show({.steps = 3, .memory = true, .highest = 2});
        QTRY_VERIFY(shown.view.settled() && shown.view.stepPane()->memory() != nullptr);
        QCOMPARE(shown.view.stepPane()->highestButton()->text(), QStringLiteral("Peak of the run: step 2"));
        shown.view.stepPane()->highestButton()->click();
        QTRY_VERIFY(shown.view.settled() && shown.view.stepPane()->memory()->step == 2);
        QVERIFY(shown.view.stepPane()->highestButton()->isHidden());
    }

    void whatHeldTheMemory() {
        ShownRl shown;
        shown.show({.steps = 3, .memory = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.stepPane()->memory() != nullptr);
        QCOMPARE(shown.view.stepPane()->heldText(),
                 QStringLiteral("At the peak: kv_cache 3.0\u00A0MiB, weights 1.0\u00A0MiB. Asleep: 3.0\u00A0MiB given "
                                "back, 1.0\u00A0MiB stayed: weights 1.0\u00A0MiB."));
    }

    /// However many steps there are, a frame is made of columns. Times are printed, because machines differ.
    void manySteps() {
        const int steps = qEnvironmentVariableIntValue("VITRINE_FRAME_STEPS") > 0
                              ? qEnvironmentVariableIntValue("VITRINE_FRAME_STEPS")
                              : 5000;
        ShownRl shown;
        const RlScript script{.steps = steps};
        const ui::TimelinePtr nothing = RlScript{}.timeline();
        shown.time.reset({0, 1000});
        shown.document.show(QStringLiteral("x.vitrine"),
                            {script.info(1, script.results()), script.info(2, script.results())},
                            {{1, nothing}, {2, nothing}});
        shown.document.setRunA(1);
        shown.document.setRunB(2);
        QTRY_VERIFY_WITH_TIMEOUT(shown.view.settled() && shown.view.shown().b != nullptr, 30000);
        QCOMPARE(shown.view.shown().number(), steps);
        shown.view.grab();
        for (ui::Lane* lane : shown.view.lanes()->stack()->lanes()) {
            lane->invalidate();
            lane->grab();
            qInfo("%s: %.2f ms", qPrintable(lane->title()), lane->lastPictureMs());
        }
        shown.view.chooseStep(steps / 2);
        QTRY_COMPARE(shown.view.shown().number(), steps / 2);
    }
};

QTEST_MAIN(RlViewTest)
#include "rl_view_test.moc"
