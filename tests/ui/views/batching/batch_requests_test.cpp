// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The list of requests of a long trace: who runs at some moment is found, scrolled to, and alone in the list.
#include <QCheckBox>
#include <QTest>
#include <algorithm>

#include "tests/ui/models/batching/batch_run.h"
#include "tests/ui/models/common/patience.h"
#include "ui/views/batching/batching_view.h"

namespace base = vitrine::base;
namespace test = vitrine::test;
namespace ui = vitrine::ui;

namespace {

constexpr int kSlots = 6;

const test::BatchTrace& trace() {
    static const test::BatchTrace kTrace = test::BatchTrace::uniform(600, 4, 60, 0.004, 3);
    return kTrace;
}

struct Fixture {
    test::BatchRun flowing{trace(), kSlots, false}, waiting{trace(), kSlots, true};
    ui::TimelinePtr flow = flowing.timeline(), wait = waiting.timeline();
};

Fixture& fixture() {
    static Fixture one;
    return one;
}

struct Shown {
    ui::SessionDocument document;
    ui::TimeCursor time;
    ui::ActionList actions;
    ui::BatchingView view{{&document, &time, nullptr, &actions}};

    void show() {
        view.resize(1080, 800);
        view.show();
        document.show(QStringLiteral("x.vitrine"),
                      {test::batchInfo(1, "continuous", kSlots), test::batchInfo(2, "static", kSlots)},
                      {{1, fixture().flow}, {2, fixture().wait}});
        document.setRunA(1);
        document.setRunB(2);
        QTRY_VERIFY(view.settled());
        view.showPage(ui::BatchingView::Requests);
        QTRY_VERIFY(lane(0)->visibleRows() > 5);
    }
    ui::RequestLane* lane(int side) const { return view.requestLane(side); }
    bool shows(int side, std::int32_t request) const {
        return request >= lane(side)->first() && request < lane(side)->first() + lane(side)->visibleRows();
    }
};

std::vector<std::int32_t> runningByLives(const ui::BatchSide& side, base::TimeNs at) {
    std::vector<std::int32_t> running;
    for (const ui::BatchRequest& request : side.requests) {
        if (request.admitted >= 0 && request.admitted <= at && (request.end < 0 || request.end > at)) {
            running.push_back(request.number);
        }
    }
    return running;
}

} // namespace

class BatchRequestsTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void runningAgainstLives() {
        for (const auto& [timeline, mode] : {std::pair{fixture().flow, "continuous"}, {fixture().wait, "static"}}) {
            const auto side = ui::batchSide(test::batchInfo(1, mode, kSlots), *timeline);
            for (const auto axis : {ui::BatchAxis::Time, ui::BatchAxis::Steps}) {
                const auto map = ui::BatchMap::make(side, axis);
                for (int i = 1; i < 200; ++i) {
                    const base::TimeNs at = side->end / 200 * i + 1;
                    const base::TimeNs place = map->place(at);
                    const std::vector<std::int32_t> running = map->runningAt(place);
                    QCOMPARE(static_cast<double>(running.size()), map->running().at(place).value_or(0));
                    if (axis == ui::BatchAxis::Time) {
                        QCOMPARE(running, runningByLives(*side, at));
                    }
                }
                QVERIFY(map->runningAt(map->length()).empty());
            }
        }
    }

    void listFollowsTheCursor() {
        Shown s;
        s.show();
        const ui::BatchSide& side = *s.view.pair().a;
        for (const double part : {0.7, 0.3}) {
            const auto at = static_cast<base::TimeNs>(part * static_cast<double>(side.end));
            s.view.time()->setCursor(at);
            const std::vector<std::int32_t> running = runningByLives(side, at);
            QVERIFY(running.size() > 2);
            for (const std::int32_t request : running) {
                QVERIFY2(s.shows(0, request) && s.shows(1, request), qPrintable(QString::number(request)));
            }
        }
        // What is in sight stays where it is, and so does what is clicked.
        const int first = s.lane(0)->first();
        s.view.time()->setCursor(*s.view.time()->cursor() + 1);
        QCOMPARE(s.lane(0)->first(), first);
        const QPoint place(s.lane(1)->width() * 3 / 4, 60);
        const std::int32_t clicked = s.lane(1)->requestAt(place);
        QTest::mouseClick(s.lane(1), Qt::LeftButton, {}, place);
        QCOMPARE(s.view.chosenRequest(), clicked);
        QCOMPARE(s.lane(0)->first(), first);
    }

    void onlyWhoRuns() {
        Shown s;
        s.show();
        QVERIFY(s.view.runningOnly()->isVisible());
        s.view.showPage(ui::BatchingView::Slots);
        QVERIFY(!s.view.runningOnly()->isVisible());
        QVERIFY(s.view.perform(QStringLiteral("batching.running"))); // from any page
        QCOMPARE(s.view.page(), ui::BatchingView::Requests);
        QVERIFY(s.view.runningOnly()->isChecked());
        QVERIFY(s.view.time()->cursor().has_value());
        for (const double part : {0.5, 0.2}) {
            for (const int side : {0, 1}) {
                const ui::BatchSide& facts = side == 0 ? *s.view.pair().a : *s.view.pair().b;
                const auto at = static_cast<base::TimeNs>(part * static_cast<double>(s.view.pair().a->end));
                s.view.time()->setCursor(at);
                QCOMPARE(s.lane(side)->only(), std::optional(runningByLives(facts, at)));
                QCOMPARE(s.lane(side)->rowCount(), static_cast<int>(s.lane(side)->only()->size()));
            }
        }
        // Keys walk through these rows, and a click means the row that it saw, wherever the cursor goes.
        const std::vector<std::int32_t> rows = *s.lane(0)->only();
        s.lane(0)->setFocus();
        s.view.perform(QStringLiteral("select.next"));
        QCOMPARE(s.view.chosenRequest(), rows[0]);
        s.view.perform(QStringLiteral("select.next"));
        QCOMPARE(s.view.chosenRequest(), rows[1]);
        const QPoint place(s.lane(0)->width() - 100, 23 + 3 + 25);
        const std::int32_t under = s.lane(0)->requestAt(place);
        QVERIFY(under >= 0);
        QTest::mouseClick(s.lane(0), Qt::LeftButton, {}, place);
        QCOMPARE(s.view.chosenRequest(), under);
        // After the end nobody runs, which is said and painted.
        s.view.time()->setCursor(s.view.time()->extent().end);
        QCOMPARE(s.lane(0)->rowCount(), 0);
        QVERIFY(!s.lane(0)->picture(1).isNull());
        QVERIFY(!s.lane(0)->step(1));
        s.view.perform(QStringLiteral("batching.running"));
        QVERIFY(!s.view.runningOnly()->isChecked());
        QCOMPARE(s.lane(0)->rowCount(), 600);
    }

    /// A queue is longest before a step lets requests in, though both have the same place on the axis of steps.
    void mostThatWaited() {
        test::RecordedRun run;
        for (int i = 0; i < 20; ++i) {
            run.record(base::RequestEvent{0, i, base::RequestChange::Arrived, -1, -1, 3, {}});
        }
        for (int i = 0; i < 16; ++i) {
            run.record(base::RequestEvent{0, i, base::RequestChange::Admitted, i, 0, 0, {}});
        }
        run.record(base::BatchStepEvent{0, 1000, 0, 16});
        run.record(base::BatchStepEvent{1000, 2000, 1, 16});
        const auto timeline = run.timeline();
        const auto side = ui::batchSide(test::batchInfo(1, "continuous", 16), *timeline);
        for (const auto axis : {ui::BatchAxis::Time, ui::BatchAxis::Steps}) {
            const auto map = ui::BatchMap::make(side, axis);
            QCOMPARE(map->queue().largest(), 20.0);
            QCOMPARE(*map->queue().at(0), 4.0); // what waits from then on
            QCOMPARE(*map->queue().most(0, 500), 20.0);
            QCOMPARE(*map->queue().most(1, 500), 4.0);
        }
    }
};

QTEST_MAIN(BatchRequestsTest)
#include "batch_requests_test.moc"
