// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The page Step of the Fine-tune view: its states, the range in detail, and the ways to it.
#include "ui/views/finetune/step_page.h"

#include <QComboBox>
#include <QPushButton>
#include <QTest>

#include "tests/profiler/analysis/training_step_script.h"
#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/finetune/training_script.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/views/finetune/step_panel.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/copy_lane.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/series_lane.h"
#include "ui/widgets/timeline/step_lane.h"

using namespace vitrine;
using profiler::testing::TrainingStepScript;

namespace {

ui::TimelinePtr runOf(const TrainingStepScript& script, int steps = 3) {
    return profiler::testing::trainingRun(script, steps);
}

struct Shown {
    Shown() : view({&document, &time, nullptr, nullptr}) {
        view.resize(1080, 820);
        view.show();
    }
    void show(const ui::TimelinePtr& a, const ui::TimelinePtr& b = nullptr) {
        std::vector<sessions::RunInfo> runs{test::TrainingScript{}.info(1)};
        std::map<sessions::RunId, ui::TimelinePtr> timelines{{1, a}};
        if (b) {
            runs.push_back(test::TrainingScript{}.info(2));
            timelines[2] = b;
        }
        document.show(QStringLiteral("x.vitrine"), runs, timelines);
        document.setRunA(1);
        document.setRunB(b ? 2 : 0);
        view.showPage(ui::FinetuneView::Step);
    }
    ui::StepPage& page() { return *view.stepPage(); }

    ui::SessionDocument document;
    ui::TimeCursor time;
    ui::FinetuneView view;
};

} // namespace

class StepPageTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void withoutARun() {
        Shown shown;
        shown.view.showPage(ui::FinetuneView::Step);
        QCOMPARE(shown.page().emptyText(), QStringLiteral("No fine-tuning run in this session."));
        QVERIFY(shown.view.picture({1024, 700}, 1).width() > 0);
    }

    void aRunWithoutABaseline() {
        Shown shown;
        shown.show(runOf({.offload = true}, 2));
        QTRY_VERIFY(shown.page().pair() != nullptr && shown.page().settled());
        QVERIFY(shown.page().sentenceText().startsWith(QLatin1String("The peak is")));
        QVERIFY(!shown.page().laneB()->isVisible());
        QVERIFY(shown.page().copyLane()->isVisible());
        QVERIFY(shown.page().baselineButton()->isVisible());
        QCOMPARE(shown.page().panel()->peaks()->model()->columnCount(), 2);
        QCOMPARE(shown.page().steps()->count(), 2);
        QVERIFY(shown.view.picture({1080, 820}, 1).width() > 0);
    }

    void theBaselineIsLaidOverA() {
        Shown shown;
        shown.show(runOf({.tiles = 4, .offload = true}), runOf({}));
        QTRY_VERIFY(shown.page().pair() != nullptr && shown.page().pair()->b && shown.page().settled());
        QVERIFY(shown.page().laneB()->isVisible());
        QCOMPARE(shown.page().panel()->peaks()->model()->columnCount(), 4);
        QVERIFY(shown.page().readout().contains(QLatin1String("A to B")));
        shown.page().alignment()->setCurrent(1);
        QVERIFY(shown.view.picture({1080, 820}, 1).width() > 0);
    }

    void withoutOffloadThereAreNoCopyLanes() {
        Shown shown;
        shown.show(runOf({}));
        QTRY_VERIFY(shown.page().pair() != nullptr && shown.page().settled());
        QVERIFY(!shown.page().copyLane()->isVisible());
    }

    void aPhaseSetsTheDetailAndAgainSetsItBack() {
        Shown shown;
        shown.show(runOf({}));
        QTRY_VERIFY(shown.page().pair() != nullptr && shown.page().settled());
        const ui::TimeRange before = shown.page().detailRange();
        const ui::TimeRange forward = shown.page().bands()->rows()[0].parts[0].range;
        emit shown.page().bands()->partClicked(0, 0);
        QVERIFY(shown.page().detailRange() == forward);
        emit shown.page().bands()->partClicked(0, 0);
        QVERIFY(shown.page().detailRange() == before);
    }

    void keysGoToThePeakAndFromLayerToLayer() {
        Shown shown;
        shown.show(runOf({}));
        QTRY_VERIFY(shown.page().pair() != nullptr && shown.page().settled());
        const profiler::StepAnatomy& step = shown.page().pair()->a.anatomy;
        QVERIFY(shown.view.perform(QStringLiteral("go.peak-next")));
        QVERIFY(shown.page().detailRange().contains(step.peak.maxTime - step.begin));
        shown.page().axis()->setCursor(50);
        QVERIFY(shown.view.perform(QStringLiteral("select.next")));
        QCOMPARE(shown.page().detailRange().begin, base::TimeNs(100));
        QVERIFY(shown.view.perform(QStringLiteral("select.previous")));
        QCOMPARE(shown.page().detailRange().begin, base::TimeNs(0));
    }

    void returnOnAStepOfLiveOpensIt() {
        Shown shown;
        shown.show(runOf({}));
        shown.view.showPage(ui::FinetuneView::Live);
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        shown.view.axis()->setCursor(2 * ui::kStepLength);
        QVERIFY(shown.view.perform(QStringLiteral("measure.filter")));
        QCOMPARE(shown.view.page(), ui::FinetuneView::Step);
        QTRY_VERIFY(shown.page().pair() != nullptr && shown.page().settled());
        QCOMPARE(shown.page().pair()->a.values.step, std::int64_t(2));
    }

    void manySteps() {
        Shown shown;
        shown.show(runOf({.layers = 1}, 2000));
        QTRY_VERIFY(shown.page().pair() != nullptr && shown.page().settled());
        QVERIFY(shown.page().steps()->count() <= 41);
        shown.view.openStep(1999);
        QTRY_VERIFY(shown.page().pair()->a.values.step == 1999);
    }
};

QTEST_MAIN(StepPageTest)
#include "step_page_test.moc"
