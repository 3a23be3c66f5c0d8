// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The lanes of a run that goes on: what one more step costs does not grow with the steps before it. Times are printed
// and not asserted, because machines differ; VITRINE_FRAME_STEPS=100000 makes it the size that the design speaks of.
#include "ui/views/finetune/live_lanes.h"

#include <QDeadlineTimer>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <utility>

#include "tests/ui/models/finetune/training_script.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/series_lane.h"

using namespace vitrine;
using test::TrainingScript;

namespace {

/// A run of a window that is open while steps are added.
struct Live {
    explicit Live(int steps, double codes = 0)
        : script{.steps = steps, .total = steps + steps / 20, .evalEvery = 1000, .memory = true, .codes = codes} {
        script.record(recorded);
        time.reset({0, script.total * ui::kStepLength});
        window.resize(1060, 800);
        lanes.stack()->resize(1060, 720);
        window.show();
        show();
        lanes.stack()->grab();
    }
    void show() {
        ui::LiveRun run;
        run.info = script.info();
        run.info.status = sessions::RunStatus::Running;
        run.timeline = recorded.timelineSoFar();
        run.training = ui::TrainingRun::make(run.info, *run.timeline, 0.9);
        run.peak = (1 << 20) + 8192;
        run.smoothing = 0.9;
        run.live = true;
        shown = run;
        clock.start();
        lanes.setRun(std::move(run));
    }
    void addStep() {
        script.recordStep(recorded, ++script.steps);
        show();
    }
    double ms() const { return static_cast<double>(clock.nsecsElapsed()) / 1e6; }

    TrainingScript script;
    test::RecordedRun recorded;
    ui::TimeCursor time;
    QWidget window;
    ui::LiveLanes lanes{&time, &window};
    ui::LiveRun shown;
    QElapsedTimer clock;
};

} // namespace

class LiveLanesTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void oneMoreStepCostsTheSameHoweverManyThereAre() {
        for (const int steps : {3000, 30'000}) {
            Live live(steps);
            std::vector<const ui::SeriesLane*> lanes;
            std::vector<std::int64_t> painted;
            for (const auto* lane : live.lanes.stack()->findChildren<ui::SeriesLane*>()) {
                lanes.push_back(lane);
                painted.push_back(lane->paintedColumns());
            }
            QCOMPARE(lanes.size(), std::size_t(5)); // the lane of codes is hidden
            QVERIFY(live.lanes.codes()->isHidden());
            constexpr int kMore = 20;
            const std::uint64_t made = live.lanes.series().made();
            QVERIFY(made > 3000);
            for (int i = 0; i < kMore; ++i) {
                live.addStep();
                live.lanes.stack()->grab();
            }
            // Seven series and the memory, each at most the last column that was known and a new one.
            const std::uint64_t more = live.lanes.series().made() - made;
            QVERIFY2(more <= kMore * 8 * 3, qPrintable(QStringLiteral("%1 for %2").arg(more).arg(steps)));
            for (std::size_t i = 0; i < lanes.size(); ++i) {
                const std::int64_t each = (lanes[i]->paintedColumns() - painted[i]) / kMore;
                QVERIFY2(each < lanes[i]->width() / 5, qPrintable(lanes[i]->title() + QString::number(each)));
            }
        }
    }

    /// What was added step by step looks like all of it at once.
    void growingLooksLikeAllAtOnce() {
        Live grown(1500);
        for (int i = 0; i < 30; ++i) {
            grown.addStep();
            grown.lanes.stack()->grab();
        }
        Live fresh(1500);
        fresh.script.steps = 1530;
        for (int step = 1501; step <= 1530; ++step) {
            fresh.script.recordStep(fresh.recorded, step);
        }
        fresh.show();
        for (ui::Lane* lane : fresh.lanes.stack()->lanes()) {
            lane->invalidate();
        }
        QVERIFY(grown.lanes.stack()->grab().toImage() == fresh.lanes.stack()->grab().toImage());
    }

    void codesThatAreCountedLateAreShown() {
        Live grown(40, 0.5);
        QVERIFY(!grown.lanes.codes()->isHidden());
        QCOMPARE(grown.lanes.codes()->scale().unit, 0.01);
        const double codes = std::exchange(grown.script.codes, 0.0);
        grown.addStep();
        grown.lanes.updateFacts();
        QCOMPARE(grown.lanes.codes()->facts(), ui::unknownText());
        grown.lanes.stack()->grab();
        grown.script.codes = codes;
        const double counted = grown.script.beginOf(41) + 0.095;
        grown.recorded.counter("codes_changed", counted, codes / 41);
        grown.addStep();
        grown.lanes.updateFacts();
        QCOMPARE(grown.lanes.codes()->facts(), ui::codesText(codes / 42));
        Live fresh(40, 0.5);
        for (const int step : {41, 42}) {
            fresh.script.recordStep(fresh.recorded, step);
        }
        fresh.script.steps = 42;
        fresh.show();
        fresh.lanes.updateFacts();
        for (ui::Lane* lane : fresh.lanes.stack()->lanes()) {
            lane->invalidate();
        }
        QVERIFY(grown.lanes.codes()->grab().toImage() == fresh.lanes.codes()->grab().toImage());
    }

    void codesHideWithTheirRun() {
        Live live(40, 0.5);
        QVERIFY(!live.lanes.codes()->collapsed());
        const Live other(40);
        live.lanes.setRun(other.shown);
        QVERIFY(live.lanes.codes()->isHidden());
    }

    void frames() {
        bool given = false;
        const int wanted = qEnvironmentVariableIntValue("VITRINE_FRAME_STEPS", &given);
        Live live(given && wanted > 0 ? wanted : 2000);
        const auto print = [&](const char* what, double most) {
            qInfo("%d steps, %s: at most %.1f ms", live.script.steps, what, most);
        };
        double most = 0, made = 0;
        for (int i = 0; i < 20; ++i) {
            QElapsedTimer whole;
            whole.start();
            live.addStep();
            made = std::max(made, static_cast<double>(whole.nsecsElapsed()) / 1e6 - live.ms());
            live.lanes.stack()->grab();
            most = std::max(most, live.ms());
        }
        print("one more step, by the thread of the window", most);
        print("one more step, timeline and series by another thread", made);
        most = 0;
        for (int i = 0; i < 20; ++i) {
            const QPointF at(100 + i * 40, 40);
            QMouseEvent move(QEvent::MouseMove, at, live.lanes.loss()->mapToGlobal(at), Qt::NoButton, Qt::NoButton,
                             Qt::NoModifier);
            live.clock.start();
            QCoreApplication::sendEvent(live.lanes.loss(), &move);
            live.lanes.updateFacts();
            live.lanes.stack()->grab();
            most = std::max(most, live.ms());
        }
        print("pointing at a step", most);
        most = 0;
        for (int i = 0; i < 20; ++i) {
            live.clock.start();
            live.time.zoom(i < 10 ? 0.7 : 1.4, live.script.steps / 2 * ui::kStepLength);
            live.lanes.stack()->grab();
            most = std::max(most, live.ms());
        }
        print("zooming", most);
        most = 0;
        live.time.zoom(0.6, 0);
        for (int i = 0; i < 20; ++i) {
            live.clock.start();
            live.time.pan(i < 10 ? 0.05 : -0.05);
            live.lanes.stack()->grab();
            most = std::max(most, live.ms());
        }
        print("scrolling", most);
        for (const ui::Lane* lane : live.lanes.stack()->lanes()) {
            qInfo("  %s: its picture took %.2f ms", qPrintable(lane->title()), lane->lastPictureMs());
        }
        QVERIFY(live.lanes.memory()->model() && live.lanes.memory()->model()->largestTotal() > 0);
    }

    /// The whole view over a session file to which another program appends.
    void turnsOfTheEventLoop() {
        bool given = false;
        const int wanted = qEnvironmentVariableIntValue("VITRINE_FRAME_STEPS", &given);
        TrainingScript script{.steps = given && wanted > 0 ? wanted : 2000, .memory = true};
        script.total = script.steps + script.steps / 20;
        const QTemporaryDir folder;
        const auto file = sessions::SessionFile::open(folder.filePath(QStringLiteral("x.vitrine")).toStdString(),
                                                      sessions::OpenMode::CreateOrOpen);
        const sessions::RunId id = file->createRun(script.info());
        test::RecordedRun recorded;
        script.record(recorded);
        file->appendChunks(id, recorded.drain());
        ui::SessionDocument document;
        ui::TimeCursor time;
        ui::FinetuneView view({&document, &time, nullptr, nullptr});
        view.resize(1080, 820);
        view.show();
        document.open(QString::fromStdString(file->path()));
        const auto knows = [&] { return view.training() != nullptr && view.training()->lastStep() == script.steps; };
        QTRY_VERIFY_WITH_TIMEOUT(knows(), 120'000);
        const ui::TimeRange range = view.axis()->range();
        double longest = 0, sum = 0;
        int shown = 0;
        constexpr int kMore = 10;
        for (int i = 0; i < kMore; ++i) {
            script.recordStep(recorded, ++script.steps);
            file->appendChunks(id, recorded.drain());
            QElapsedTimer clock;
            const QDeadlineTimer limit(30'000);
            for (const auto* before = view.training().get(); !knows() && !limit.hasExpired();) {
                clock.start();
                QCoreApplication::processEvents(QEventLoop::AllEvents);
                const double turn = static_cast<double>(clock.nsecsElapsed()) / 1e6;
                longest = std::max(longest, turn);
                sum += before != view.training().get() ? turn : 0;
                before = view.training().get();
            }
            shown += knows() ? 1 : 0;
            clock.start();
            QCoreApplication::processEvents(QEventLoop::AllEvents); // paints
            longest = std::max(longest, static_cast<double>(clock.nsecsElapsed()) / 1e6);
        }
        qInfo("%d steps in the whole view: taking one more %.1f ms, longest turn of the event loop %.1f ms",
              script.steps, sum / kMore, longest);
        QCOMPARE(shown, kMore);
        QVERIFY(view.axis()->range() == range); // it grows in jumps
    }
};

QTEST_MAIN(LiveLanesTest)
#include "live_lanes_test.moc"
