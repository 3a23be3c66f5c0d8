// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Fine-tune view: its states, its lanes over steps, going on from a checkpoint, and starting a run from the form.
#include "ui/views/finetune/finetune_view.h"

#include <QCheckBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "tests/ui/models/common/patience.h"
#include "tests/ui/models/common/played_runs.h"
#include "tests/ui/models/finetune/training_script.h"
#include "ui/models/finetune/training_text.h"
#include "ui/views/finetune/answer_table.h"
#include "ui/views/finetune/finetune_form.h"
#include "ui/views/finetune/finetune_panel.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/mark_strip.h"
#include "ui/widgets/timeline/series_lane.h"

using namespace vitrine;
using test::TrainingScript;

namespace {

/// A view of its own with what it needs.
struct Shown {
    explicit Shown(ui::RunController* runs = nullptr) : view({&document, &time, runs, nullptr}) {
        view.resize(1080, 820);
        view.show();
    }
    void show(const TrainingScript& script, sessions::RunStatus status = sessions::RunStatus::Done,
              const std::string& options = {}) {
        sessions::RunInfo info = script.info(1, options);
        info.status = status;
        const auto timeline = script.timeline();
        time.reset({0, timeline->end()});
        document.show(QStringLiteral("x.vitrine"), {info}, {{1, timeline}});
    }

    ui::SessionDocument document;
    ui::TimeCursor time;
    ui::FinetuneView view;
};

base::TimeNs place(int step) {
    return step * ui::kStepLength;
}

} // namespace

class FinetuneViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void withoutARun() {
        Shown shown;
        QCOMPARE(shown.view.page(), ui::FinetuneView::Form);
        shown.view.showPage(ui::FinetuneView::Live);
        QCOMPARE(shown.view.liveText(), QStringLiteral("No fine-tuning run in this session."));
        QVERIFY(shown.view.picture({1024, 700}, 1).width() > 0);
        shown.document.show(QStringLiteral("x.vitrine"), {test::runInfo(1, "generate", "{}")}, {});
        QTRY_COMPARE(shown.view.liveText(), QStringLiteral("No fine-tuning run in this session."));
    }

    void anotherRunIsChosen() {
        Shown shown;
        const TrainingScript script{.steps = 3};
        shown.document.show(QStringLiteral("x.vitrine"), {script.info(1), test::runInfo(2, "generate", "{}")},
                            {{1, script.timeline()}});
        shown.document.setRunA(2);
        shown.view.showPage(ui::FinetuneView::Live);
        QTRY_COMPARE(shown.view.liveText(), QStringLiteral("The chosen run is no fine-tuning run."));
    }

    void beforeTheFirstStep() {
        Shown shown;
        shown.show({.steps = 0, .total = 50}, sessions::RunStatus::Running);
        QTRY_VERIFY(shown.view.training() != nullptr && shown.view.training()->totalSteps());
        QCOMPARE(shown.view.page(), ui::FinetuneView::Live);
        QVERIFY(shown.view.liveText().isEmpty()); // axes that wait
        QVERIFY(shown.view.panel()->howText().contains(QLatin1String("first step")));
        QVERIFY(shown.view.lossLane()->picture(1).width() > 0);
    }

    void failedBeforeTheFirstStep() {
        Shown shown;
        sessions::RunInfo info = TrainingScript{}.info();
        info.status = sessions::RunStatus::Failed;
        info.error = "data: rows.jsonl: line 3 is no JSON";
        shown.document.show(QStringLiteral("x.vitrine"), {info}, {{1, TrainingScript{}.timeline()}});
        QTRY_VERIFY(shown.view.liveText().contains(QLatin1String("line 3 is no JSON")));
    }

    void twoSteps() {
        Shown shown;
        shown.show({.steps = 2, .memory = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QVERIFY(shown.view.liveText().isEmpty());
        QVERIFY(shown.view.readout().startsWith(QLatin1String("Step 2: loss")));
        QVERIFY(shown.view.readout().contains(QLatin1String("peak")));
        QVERIFY(!shown.view.marks()->isVisible()); // nothing was saved
        QVERIFY2(shown.view.memoryLane()->facts().startsWith(QLatin1String("measured")),
                 qPrintable(shown.view.memoryLane()->facts()));
    }

    void theCursorNamesAStepEverywhere() {
        Shown shown;
        const TrainingScript script{.steps = 60, .evalEvery = 20, .saveEvery = 10, .keep = 3, .memory = true};
        shown.show(script);
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        shown.view.axis()->setCursor(place(41) + 100);
        QVERIFY(shown.view.readout().startsWith(QLatin1String("Step 41:")));
        QVERIFY2(shown.view.lossLane()->facts().contains(QLatin1String("at 40")),
                 qPrintable(shown.view.lossLane()->facts()));
        // The other views stand inside that step.
        QVERIFY(shown.time.cursor());
        QVERIFY(*shown.time.cursor() >= test::ns(script.beginOf(41)));
        QVERIFY(*shown.time.cursor() < test::ns(script.beginOf(42)));
        QCOMPARE(shown.view.marks()->rows().front().marks.size(), std::size_t(6));
        QVERIFY(shown.view.lossLane()->spoken().contains(QLatin1String("Step 41")));
    }

    void answersStandSideBySide() {
        Shown shown;
        sessions::RunInfo info = TrainingScript{}.info(1, R"(, "sample_prompts": ["A?"], "sample_every": 20)");
        info.metricsJson = R"({"answers": [{"step": 0, "prompt": "A?", "text": "no", "tokens": 1},)"
                           R"({"step": 20, "prompt": "A?", "text": "maybe", "tokens": 2},)"
                           R"({"step": 40, "prompt": "A?", "text": "yes", "tokens": 3}]})";
        info.status = sessions::RunStatus::Running;
        shown.document.show(QStringLiteral("x.vitrine"), {info},
                            {{1, TrainingScript{.steps = 45, .total = 60}.timeline()}});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        ui::AnswerTable* answers = shown.view.answers();
        QCOMPARE(answers->leftStep(), 0);
        QCOMPARE(answers->rightStep(), 40);
        QVERIFY(answers->asText().contains(QLatin1String("| A? | no | yes |")));
        const ui::MarkRow& diamonds = shown.view.marks()->rows().back();
        QCOMPARE(diamonds.marks.size(), std::size_t(3));
        QCOMPARE(diamonds.marks[0].look, ui::StripMark::Look::Filled);
        QCOMPARE(diamonds.marks[1].look, ui::StripMark::Look::Outline);
        QCOMPARE(diamonds.marks[2].look, ui::StripMark::Look::Accent);
        QVERIFY(answers->show(20, true));
        QCOMPARE(answers->leftStep(), 20);
        QCOMPARE(shown.view.marks()->rows().back().marks[0].look, ui::StripMark::Look::Outline);
        QVERIFY(!answers->show(30, false));
    }

    void withoutPromptsTheFormIsOffered() {
        Shown shown;
        shown.show({.steps = 5});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QVERIFY(shown.view.answers()->addButton()->isVisible());
        shown.view.answers()->addButton()->click();
        QCOMPARE(shown.view.page(), ui::FinetuneView::Form);
    }

    void keysWalkThroughSteps() {
        Shown shown;
        shown.show({.steps = 60, .memory = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        shown.view.axis()->setCursor(place(10));
        QVERIFY(shown.view.perform(QStringLiteral("select.next")));
        QCOMPARE(*shown.view.axis()->cursor(), place(11));
        QVERIFY(shown.view.perform(QStringLiteral("select.previous")));
        QCOMPARE(*shown.view.axis()->cursor(), place(10));
        QVERIFY(shown.view.perform(QStringLiteral("go.peak-next")));
        QCOMPARE(*shown.view.axis()->cursor() % place(2), 0); // even steps hold more
        QVERIFY(QTest::qWaitForWindowActive(&shown.view));
        shown.view.activated();
        QTest::keyClick(&shown.view, Qt::Key_PageDown, Qt::ControlModifier);
        QCOMPARE(shown.view.page(), ui::FinetuneView::Step);
        shown.view.activated();
        QTest::keyClick(&shown.view, Qt::Key_PageUp, Qt::ControlModifier);
        QCOMPARE(shown.view.page(), ui::FinetuneView::Live);
    }

    /// A loss that begins high does not make the rest of the run flat.
    void theScaleOfTheLossFollowsMostSteps() {
        Shown shown;
        shown.show({.steps = 400});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        const double first = shown.view.training()->loss().value(0);
        QVERIFY2(shown.view.lossLane()->scale().high < first + 0.3, qPrintable(QString::number(first)));
        shown.view.axis()->setRange({place(200), place(400)}, false);
        QVERIFY(shown.view.lossLane()->scale().high < 1.3);
    }

    void ranges() {
        Shown shown;
        shown.show({.steps = 300, .total = 1000}, sessions::RunStatus::Running);
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QCOMPARE(shown.view.axis()->range().begin, 0);
        // The axis of a run that goes on ends up to an eighth behind its newest step, with some air.
        QVERIFY(shown.view.axis()->range().end > place(300) && shown.view.axis()->range().end < place(350));
        shown.view.ranges()->setCurrent(ui::FinetuneView::Last100);
        QCOMPARE(shown.view.axis()->range().begin, place(200));
        shown.view.ranges()->setCurrent(ui::FinetuneView::All);
        QVERIFY(shown.view.axis()->range().end > place(1000));
        QVERIFY(shown.view.panel()->howText().startsWith(QLatin1String("700 steps of")));
    }

    void whatIsNoNumberIsSaid() {
        Shown shown;
        shown.show({.steps = 5, .endsInNan = true}, sessions::RunStatus::Failed);
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QVERIFY2(shown.view.lossLane()->facts().startsWith(QLatin1String("not a number at step 5")),
                 qPrintable(shown.view.lossLane()->facts()));
        QVERIFY(shown.view.lossLane()->picture(1).width() > 0);
    }

    void branchOpensTheForm() {
        Shown shown;
        shown.show({.steps = 60, .total = 100, .saveEvery = 20}, sessions::RunStatus::Cancelled);
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        ui::FinetunePanel* panel = shown.view.panel();
        QCOMPARE(panel->checkpoints()->model()->rowCount(), 3);
        QCOMPARE(panel->branchButton()->text(), QStringLiteral("Branch from 60"));
        QVERIFY(panel->resumeButton()->isEnabled());
        panel->choose(40);
        panel->branchButton()->click();
        QCOMPARE(shown.view.page(), ui::FinetuneView::Form);
        QCOMPARE(shown.view.form()->form()->text(QStringLiteral("resume")), QStringLiteral("out/checkpoint-40"));
        QCOMPARE(shown.view.form()->form()->text(QStringLiteral("output")), QStringLiteral("out-from-40"));
    }

    void whatWasTrainedIsTriedInTheRunView() {
        Shown shown;
        shown.show({.steps = 60, .total = 60, .saveEvery = 20}, sessions::RunStatus::Done);
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QVERIFY(!shown.view.tryButton()->isHidden());
        QSignalSpy wanted(&shown.view, &ui::View::experimentWanted);
        shown.view.tryButton()->click();
        QCOMPARE(wanted.size(), 1);
        const auto experiment = nlohmann::json::parse(wanted[0][0].toString().toStdString());
        QCOMPARE(experiment["workload"].get<std::string>(), std::string("generate"));
        QCOMPARE(experiment["adapter"].get<std::string>(), std::string("out"));
        shown.show({.steps = 60, .total = 100, .saveEvery = 20}, sessions::RunStatus::Cancelled);
        QTRY_VERIFY(shown.view.settled() && shown.view.tryButton()->isHidden());
    }

    void whatWasTrainedForAFormatIsComparedInThePrecisionLab() {
        Shown shown;
        const TrainingScript script{.steps = 60, .codes = 0.02};
        shown.show(script);
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QVERIFY(shown.view.compareButton()->isHidden());
        shown.show(script, sessions::RunStatus::Done, R"(, "method": "full", "qat": "int4", "group_size": 8)");
        QTRY_VERIFY(shown.view.settled() && !shown.view.compareButton()->isHidden());
        QVERIFY(shown.view.compareButton()->isEnabled());
        QVERIFY(shown.view.compareButton()->toolTip().contains(QLatin1String("INT4, g8")));
        QVERIFY(shown.view.tryButton()->isHidden());
        QSignalSpy wanted(&shown.view, &ui::View::experimentWanted);
        shown.view.compareButton()->click();
        QCOMPARE(wanted.size(), 1);
        const auto experiment = nlohmann::json::parse(wanted[0][0].toString().toStdString());
        QCOMPARE(experiment["workload"].get<std::string>(), std::string("precision"));
        QCOMPARE(experiment["formats"].get<std::string>(), std::string("bf16,int4:8:seven"));
        shown.show(script, sessions::RunStatus::Done, R"(, "method": "full", "qat": "fp8", "output": "")");
        QTRY_VERIFY(shown.view.settled() && !shown.view.compareButton()->isEnabled());
        QVERIFY(shown.view.compareButton()->toolTip().contains(QLatin1String("no output folder")));
        shown.view.showPage(ui::FinetuneView::Form);
        QVERIFY(shown.view.compareButton()->isHidden());
    }

    void startsFromTheForm() {
        test::PlayedRuns runs;
        Shown shown(&runs);
        const QTemporaryDir folder;
        shown.view.setSessionFolder(folder.path());
        ui::ExperimentForm* form = shown.view.form()->form();
        QVERIFY(shown.view.perform(QStringLiteral("run.start")));
        QVERIFY(!runs.busy); // nothing to train on
        form->setText(QStringLiteral("model"), QStringLiteral("synthetic:tiny"));
        form->setText(QStringLiteral("data"), QStringLiteral("rows.jsonl"));
        QVERIFY(shown.view.form()->configuration()->toPlainText().contains(QLatin1String("rows.jsonl")));
        QVERIFY(shown.view.perform(QStringLiteral("run.start")));
        QVERIFY(runs.busy);
        QCOMPARE(runs.asked["workload"].get<std::string>(), std::string("finetune"));
        QCOMPARE(runs.asked["data"].get<std::string>(), std::string("rows.jsonl"));
        QVERIFY(runs.session.startsWith(folder.path()));
        // What it saves has a place beside the session, which the form shows.
        const QString output = form->text(QStringLiteral("output"));
        QVERIFY(output.startsWith(folder.path()) && output.endsWith(QStringLiteral("-training")));
        QCOMPARE(runs.asked["output"].get<std::string>(), output.toStdString());
        QCOMPARE(shown.view.page(), ui::FinetuneView::Live);
        QCOMPARE(shown.view.runButton()->text(), QStringLiteral("Stop"));
        shown.view.runButton()->click();
        QCOMPARE(runs.stops, 1);
    }

    void theConfigurationIsAText() {
        Shown shown;
        ui::FinetuneForm* form = shown.view.form();
        form->configuration()->setPlainText(
            QStringLiteral(R"({"vitrine": 1, "workload": "finetune", "model": "m", "data": "d.jsonl", "rank": 4})"));
        QTRY_COMPARE(form->form()->text(QStringLiteral("rank")), QStringLiteral("4"));
        QVERIFY(form->configurationError().isEmpty());
        QVERIFY(form->commandText().contains(QLatin1String("--rank 4")));
        form->configuration()->setPlainText(QStringLiteral("{ no"));
        QTRY_VERIFY(form->configurationError().contains(QLatin1String("no JSON object")));
        form->configuration()->setPlainText(
            QStringLiteral(R"({"vitrine": 1, "workload": "finetune", "model": "m", "rnk": 4})"));
        QTRY_VERIFY(form->configurationError().startsWith(QLatin1String("rnk: ")));
    }

    void lowWindowsKeepLossAndMemoryOpen() {
        Shown shown;
        shown.view.resize(900, 440);
        shown.show({.steps = 5, .memory = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QTRY_VERIFY(shown.view.memoryLane()->geometry().bottom() <= shown.view.memoryLane()->parentWidget()->height());
        QVERIFY(!shown.view.lossLane()->collapsed() && !shown.view.memoryLane()->collapsed());
        shown.view.resize(1080, 820);
        for (const ui::Lane* lane : shown.view.findChildren<ui::SeriesLane*>()) {
            QTRY_VERIFY(!lane->collapsed());
        }
    }

    /// The page gets its size before it is seen.
    void lowWindowsFoldLanesOfAPageThatIsOpenedLater() {
        QWidget window; // which, unlike a layout, can be lower than all lanes
        window.resize(1080, 820);
        window.show();
        Shown shown;
        shown.view.setParent(&window);
        shown.view.show();
        shown.show({.steps = 5, .memory = true});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        shown.view.showPage(ui::FinetuneView::Form);
        shown.view.resize(900, 440);
        shown.view.showPage(ui::FinetuneView::Live);
        for (const ui::Lane* lane : shown.view.findChildren<ui::SeriesLane*>()) {
            QTRY_COMPARE(lane->collapsed(), lane != shown.view.lossLane());
        }
        QVERIFY(!shown.view.memoryLane()->collapsed());
    }

    void hundredThousandSteps() {
        Shown shown;
        shown.show({.steps = 100'000, .evalEvery = 1000, .saveEvery = 1000});
        QTRY_VERIFY(shown.view.settled() && shown.view.training() != nullptr);
        QVERIFY(shown.view.readout().startsWith(QLatin1String("Step 100,000")));
        shown.view.header()->setTableShown(true);
        QCOMPARE(ui::trainingStepTable(*shown.view.training())->nodes.size(), std::size_t(1000));
        shown.view.header()->setTableShown(false);
        QVERIFY(shown.view.picture({1372, 810}, 1).width() > 0);
    }
};

QTEST_MAIN(FinetuneViewTest)
#include "finetune_view_test.moc"
