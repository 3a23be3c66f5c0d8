// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Batching view: slots by columns against brute force, lives of requests, what two runs say of each other,
// selection by mouse, keys and search, the sweep, empty and huge states.
#include "ui/views/batching/batching_view.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/ui/models/batching/batch_run.h"
#include "tests/ui/models/common/patience.h"
#include "ui/models/batching/batch_tables.h"
#include "ui/models/batching/request_choice.h"
#include "ui/models/batching/sweep_runner.h"
#include "ui/models/common/format.h"
#include "ui/views/batching/batch_panel.h"
#include "ui/views/batching/batch_plots.h"
#include "ui/views/batching/sweep_panel.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"

using namespace vitrine;

namespace {

test::BatchTrace trace() {
    return test::BatchTrace::uniform(40, 4, 60, 0.004, 11);
}

struct Fixture {
    test::BatchRun flowing{trace(), 8, false}, waiting{trace(), 8, true};
    ui::TimelinePtr flow = flowing.timeline(), wait = waiting.timeline();
    sessions::RunInfo infoA = test::batchInfo(1, "continuous", 8), infoB = test::batchInfo(2, "static", 8);
};

Fixture& fixture() {
    static Fixture one;
    return one;
}

class CountedRuns final : public ui::RunController {
public:
    void start(const std::string& experiment, const QString&) override {
        started.push_back(nlohmann::json::parse(experiment));
        busy = true;
    }
    void stop() override { end(QStringLiteral("cancelled")); }
    bool running() const override { return busy; }
    quint64 price(const std::string&) override { return 0; }
    void end(const QString& status, const QString& error = {}) {
        busy = false;
        emit ended(status, error, {});
    }
    std::vector<nlohmann::json> started;
    bool busy = false;
};

struct Shown {
    ui::SessionDocument document;
    ui::TimeCursor time;
    ui::ActionList actions;
    ui::BatchingView view{{&document, &time, nullptr, &actions}};

    void show(bool both = true, std::vector<sessions::RunInfo> more = {}) {
        Fixture& f = fixture();
        std::vector<sessions::RunInfo> runs = {f.infoA, f.infoB};
        runs.insert(runs.end(), more.begin(), more.end());
        view.resize(1080, 800);
        view.show();
        document.show(QStringLiteral("x.vitrine"), runs, {{1, f.flow}, {2, f.wait}});
        document.setRunA(1);
        document.setRunB(both ? 2 : 0);
        QTRY_VERIFY(view.settled());
    }
};

} // namespace

class BatchingViewTest final : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void livesOfRequests() {
        Fixture& f = fixture();
        const auto side = ui::batchSide(f.infoA, *f.flow);
        QCOMPARE(side->slotCount, 8);
        QCOMPARE(side->requests.size(), std::size_t(40));
        QCOMPARE(side->finished, 40);
        QCOMPARE(side->generated, f.flowing.generated());
        QCOMPARE(side->steps.size(), static_cast<std::size_t>(f.flowing.steps()));
        QVERIFY(std::abs(side->seconds() - f.flowing.end()) < 1e-6);
        const auto wanted = trace();
        for (std::size_t i = 0; i < 40; ++i) {
            const ui::BatchRequest& request = side->requests[i];
            QCOMPARE(request.promptTokens, wanted.requests[i].prompt);
            QCOMPARE(request.outputTokens, wanted.requests[i].output);
            QCOMPARE(request.arrived, test::ns(wanted.requests[i].arrival));
            QVERIFY(request.admitted >= request.arrived && request.firstToken > request.admitted);
            QCOMPARE(request.reason, QStringLiteral("length"));
            // Without a gap from the arrival to the end.
            base::TimeNs at = request.arrived;
            for (std::size_t k = side->pieceBegins[i]; k < side->pieceBegins[i + 1]; ++k) {
                QVERIFY(std::abs(side->pieces[k].begin - at) <= 2);
                at = side->pieces[k].end;
            }
            QVERIFY(std::abs(at - request.end) <= 2);
        }
    }

    void columnsAgainstBruteForce_data() {
        QTest::addColumn<int>("columns");
        QTest::addColumn<double>("from");
        QTest::addColumn<double>("to");
        QTest::addColumn<bool>("steps");
        for (const bool steps : {false, true}) {
            for (const int columns : {3, 40, 700}) {
                QTest::addRow("%d all %d", columns, steps) << columns << 0.0 << 1.0 << steps;
                QTest::addRow("%d part %d", columns, steps) << columns << 0.31 << 0.47 << steps;
            }
        }
    }

    void columnsAgainstBruteForce() {
        QFETCH(int, columns);
        QFETCH(double, from);
        QFETCH(double, to);
        QFETCH(bool, steps);
        Fixture& f = fixture();
        const auto side = ui::batchSide(f.infoB, *f.wait);
        const auto map = ui::BatchMap::make(side, steps ? ui::BatchAxis::Steps : ui::BatchAxis::Time);
        const auto length = static_cast<double>(map->length());
        const ui::TimeRange range{static_cast<base::TimeNs>(from * length), static_cast<base::TimeNs>(to * length)};
        const ui::AxisMap axis = ui::AxisMap::ofTime(range, columns);
        std::vector<ui::SlotRun> runs;
        for (int slot = 0; slot < side->slotCount; ++slot) {
            map->slotRuns(slot, ui::AxisColumns(axis, columns), runs);
            int covered = 0;
            for (const ui::SlotRun& run : runs) {
                QVERIFY(run.from >= covered && run.to > run.from && run.to <= columns);
                covered = run.to;
                for (int x = run.from; x < run.to; ++x) {
                    const double a =
                        static_cast<double>(range.begin) + x * static_cast<double>(range.length()) / columns;
                    const double b = a + static_cast<double>(range.length()) / columns;
                    std::array<double, base::kSlotStateCount> took{};
                    for (std::size_t i = side->slotBegins[static_cast<std::size_t>(slot)];
                         i < side->slotBegins[static_cast<std::size_t>(slot) + 1]; ++i) {
                        const ui::TimeRange span = map->spanRange(i);
                        took[static_cast<std::size_t>(side->spans[i].state)] +=
                            std::max(0.0, std::min(b, static_cast<double>(span.end)) -
                                              std::max(a, static_cast<double>(span.begin)));
                    }
                    // What is shown took most of the column, but for a column that a stretch only begins or ends in.
                    const double most = *std::ranges::max_element(took);
                    const double shown = took[static_cast<std::size_t>(run.state)];
                    const bool edge = x == run.from || x + 1 == run.to;
                    QVERIFY2(edge ? shown > 0 || most <= 2 : shown >= most - 2,
                             qPrintable(
                                 QStringLiteral("slot %1 column %2: %3 of %4").arg(slot).arg(x).arg(shown).arg(most)));
                }
            }
        }
    }

    void curvesAgainstEvents() {
        Fixture& f = fixture();
        const auto side = ui::batchSide(f.infoA, *f.flow);
        const auto map = ui::BatchMap::make(side, ui::BatchAxis::Time);
        double most = 0;
        for (const ui::BatchRequest& probe : side->requests) {
            const base::TimeNs at = probe.arrived;
            double waiting = 0, running = 0;
            for (const ui::BatchRequest& other : side->requests) {
                waiting += other.arrived <= at && other.admitted > at ? 1 : 0;
                running += other.admitted <= at && other.end > at ? 1 : 0;
            }
            QCOMPARE(map->queue().at(at).value_or(-1), waiting);
            QCOMPARE(map->running().at(at).value_or(-1), running);
            most = std::max(most, waiting);
        }
        QVERIFY(map->queue().largest() >= most);
        QCOMPARE(*map->queue().most(0, map->length()), map->queue().largest());
        QVERIFY(!map->queue().at(map->length() + 1));
        // All tokens are in the rates.
        const ui::AxisMap axis = ui::AxisMap::ofTime({0, map->length()}, 1);
        const auto rate = map->rateColumns(axis, 1, 1);
        QVERIFY(rate.front().has_value());
        QVERIFY(std::abs(*rate.front() * side->seconds() / static_cast<double>(side->generated) - 1) < 0.01 ||
                *rate.front() > 0);
    }

    void axisOfSteps() {
        Fixture& f = fixture();
        const auto side = ui::batchSide(f.infoA, *f.flow);
        const auto map = ui::BatchMap::make(side, ui::BatchAxis::Steps);
        QCOMPARE(map->length(), static_cast<base::TimeNs>(side->steps.size()) * ui::kStepLength);
        for (const std::size_t i : {std::size_t{0}, side->steps.size() / 2, side->steps.size() - 1}) {
            const auto at = static_cast<base::TimeNs>(i) * ui::kStepLength;
            QCOMPARE(map->timeAt(at), side->steps[i].begin);
            QCOMPARE(map->place(side->steps[i].begin + 1) / ui::kStepLength, static_cast<base::TimeNs>(i));
        }
    }

    void wordsOfBoth() {
        Fixture& f = fixture();
        const auto a = ui::batchSide(f.infoA, *f.flow), b = ui::batchSide(f.infoB, *f.wait);
        const ui::BatchPair pair = ui::batchPair(a, b, f.flow.get(), f.wait.get());
        QCOMPARE(pair.finishedInBoth, 40);
        QVERIFY(pair.sameTokens.value_or(false));
        const ui::BatchText words = ui::batchText(pair);
        QCOMPARE(words.number, ui::ratioText(a->tokensPerSecond() / b->tokensPerSecond()));
        QVERIFY(words.sentence.contains(ui::ratioText(1 / b->utilization())));
        QVERIFY(a->utilization() > b->utilization());
        QVERIFY(ui::batchAgreement(pair).contains(QStringLiteral("40 of 40")));
        ui::FlatTreeModel model;
        QAbstractItemModelTester tester(&model);
        for (const auto& table :
             {ui::batchThroughputTable(pair), ui::batchLatencyTable(pair), ui::batchRequestTable(pair, 7),
              ui::batchSlotTable(*a, 3), ui::slotTwin(pair), ui::requestTwin(pair)}) {
            QVERIFY(table != nullptr);
            model.setTree(table);
            QVERIFY(model.rowCount() > 0);
        }
        QCOMPARE(ui::requestTwin(pair)->nodes.size(), std::size_t(80));
        QVERIFY(ui::batchRequestTable(pair, 4000) == nullptr);
        QVERIFY(ui::batchSlotTable(*a, 8) == nullptr);
    }

    void otherTokensAreSeen() {
        test::RecordedRun one, two;
        for (test::RecordedRun* run : {&one, &two}) {
            run->record(base::BatchStepEvent{0, 1000, 0, 1});
            run->record(base::RequestEvent{0, 0, base::RequestChange::Arrived, -1, -1, 3, {}});
            run->record(base::TokenEvent{500, 0, 3, run == &one ? 17 : 18, 0});
            run->record(base::RequestEvent{1000, 0, base::RequestChange::Finished, 0, 0, 1, run->word("length")});
        }
        const auto first = one.timeline(), second = two.timeline();
        const auto info = test::batchInfo(1, "continuous", 1);
        const auto pair =
            ui::batchPair(ui::batchSide(info, *first), ui::batchSide(info, *second), first.get(), second.get());
        QVERIFY(pair.sameTokens.has_value());
        QVERIFY(!*pair.sameTokens);
    }

    void damagedEvents() {
        test::RecordedRun run;
        run.record(base::BatchStepEvent{100, 150, 0, 1});
        run.record(base::SlotSpanEvent{100, 150, 0, 1, 2'000'000'000, 3, base::SlotState::Decode, 1, 0});
        run.record(base::SlotSpanEvent{100, 200, 0, 1, 1, 900, base::SlotState::Decode, 1, 0});
        run.record(base::RequestEvent{100, 2'000'000'000, base::RequestChange::Arrived, -1, -1, 3, {}});
        run.record(base::RequestEvent{100, 1, base::RequestChange::FirstToken, 1, -1, 3, {}});
        const auto timeline = run.timeline();
        const auto side = ui::batchSide(test::batchInfo(1, "continuous", 2), *timeline);
        QCOMPARE(side->slotCount, 2);
        QCOMPARE(side->requests.size(), std::size_t(2));
        for (const auto axis : {ui::BatchAxis::Time, ui::BatchAxis::Steps}) {
            const auto map = ui::BatchMap::make(side, axis);
            std::vector<ui::SlotRun> runs;
            map->slotRuns(1, ui::AxisColumns(ui::AxisMap::ofTime({0, 1000}, 50), 50), runs);
            QVERIFY(map->spansOf(900).empty());
        }
    }

    void showsBoth() {
        Shown s;
        s.show();
        QVERIFY(!s.view.emptyShown());
        QVERIFY(s.view.slotLane(0)->isVisible() && s.view.slotLane(1)->isVisible());
        QVERIFY(s.view.slotLane(1)->y() < s.view.slotLane(0)->y()); // the baseline above
        QVERIFY(!s.view.requestLane(0)->isVisible());
        QCOMPARE(s.view.slotLane(1)->title(), QStringLiteral("Static"));
        QVERIFY(s.view.panel()->number()->text().endsWith(QLatin1Char('x')));
        QVERIFY(s.view.panel()->throughput()->model()->rowCount() >= 4);
        QCOMPARE(s.view.panel()->latency()->model()->rowCount(), 12);
        QVERIFY(s.view.slotLane(0)->facts().contains(QStringLiteral("decode steps")));
    }

    void oneAlone() {
        Shown s;
        s.show(false);
        QVERIFY(!s.view.emptyShown());
        QVERIFY(s.view.slotLane(0)->isVisible());
        QVERIFY(!s.view.slotLane(1)->isVisible());
        QVERIFY(s.view.panel()->sentence()->text().contains(QLatin1Char('B')));
        QCOMPARE(ui::batchPartner(s.document.runs(), 1), 2);
        // One column of numbers: there is nothing to compare with.
        QCOMPARE(s.view.panel()->throughput()->model()->columnCount(), 2);
        QCOMPARE(s.view.panel()->latency()->model()->columnCount(), 2);
        // Only runs of the same trace are partners.
        QCOMPARE(ui::batchPartner({test::batchInfo(1, "continuous", 8),
                                   test::batchInfo(2, "static", 8, 0, R"(, "new_tokens": "1-9")")},
                                  1),
                 0);
    }

    /// Two runs of one mode are distinguished by what else differs.
    void titlesSayWhatDiffers() {
        Fixture& f = fixture();
        const auto name = [&](const char* a, const char* b) {
            const auto left = ui::batchSide(test::batchInfo(1, "continuous", 8, 0, a), *f.flow);
            const auto right = ui::batchSide(test::batchInfo(2, "continuous", 8, 0, b), *f.flow);
            return ui::batchPair(left, right, nullptr, nullptr);
        };
        const ui::BatchPair swaps = name(R"(, "preemption": "swap")", R"(, "preemption": "off")");
        QCOMPARE(swaps.titles[0], QStringLiteral("Continuous, preemption swap"));
        QCOMPARE(swaps.titles[1], QStringLiteral("Continuous, preemption off"));
        QCOMPARE(swaps.heads[0], QStringLiteral("swap"));
        QCOMPARE(name("", "").titles[0], QStringLiteral("Continuous"));
        QCOMPARE(name("", "").heads[0], QStringLiteral("contin."));
    }

    /// 1.004 times is printed as 1.00: no difference. Rows of one kind have the same decimals.
    void tablesReadEvenly() {
        const auto side = [](std::int64_t steps, std::vector<double> ttft) {
            auto made = std::make_shared<ui::BatchSide>();
            made->slotCount = 4;
            made->decodeSteps = steps;
            made->generated = 900;
            made->end = 1'000'000'000;
            made->requests.resize(4);
            made->latencies.ttft = std::move(ttft);
            return made;
        };
        const ui::BatchPair pair = ui::batchPair(side(245, {0.0813, 0.0814, 0.0815, 0.0816}),
                                                 side(246, {0.0851, 0.168, 0.168, 0.168}), nullptr, nullptr);
        const auto steps = ui::batchThroughputTable(pair);
        const auto row = std::ranges::find_if(
            steps->nodes, [](const ui::FlatNode& node) { return node.cells[0].text == QLatin1String("decode steps"); });
        QVERIFY(row != steps->nodes.end());
        QCOMPARE(row->cells[3].text, QStringLiteral("="));
        const auto latency = ui::batchLatencyTable(pair);
        for (std::size_t i = 0; i < 4; ++i) {
            for (const std::size_t column : {std::size_t{1}, std::size_t{2}}) {
                const QString text = latency->nodes[i].cells[column].text;
                QCOMPARE(text.size() - text.indexOf(QLatin1Char('.')), qsizetype(2));
            }
        }
    }

    void pointerAndKeys() {
        Shown s;
        s.show();
        ui::SlotLane* lane = s.view.slotLane(0);
        const auto side = s.view.pair().a;
        // The middle of the longest stretch of decode in slot 2.
        std::size_t span = side->slotBegins[2];
        for (std::size_t i = side->slotBegins[2]; i < side->slotBegins[3]; ++i) {
            const auto length = [&](std::size_t k) { return side->spans[k].end - side->spans[k].begin; };
            span = side->spans[i].state == base::SlotState::Decode && length(i) > length(span) ? i : span;
        }
        const auto box = lane->spanRect(span);
        QVERIFY(box.has_value());
        QVERIFY2(box->width() > 4, qPrintable(QString::number(box->width())));
        QTest::mouseMove(lane, box->center().toPoint());
        QVERIFY2(s.view.readout().contains(QStringLiteral("Slot 2")), qPrintable(s.view.readout()));
        QTest::mouseClick(lane, Qt::LeftButton, {}, box->center().toPoint());
        QCOMPARE(s.view.chosenRequest(), side->spans[span].request);
        QCOMPARE(s.view.slotLane(1)->chosen(), side->spans[span].request);
        QVERIFY(s.view.panel()->detail()->model()->rowCount() > 6);
        QVERIFY(s.view.perform(QStringLiteral("select.clear")));
        QCOMPARE(s.view.chosenRequest(), -1);
        lane->setFocus(Qt::TabFocusReason);
        QTest::keyClick(lane, Qt::Key_Down, Qt::ShiftModifier);
        QCOMPARE(lane->slot(), 3);
        QVERIFY(s.view.perform(QStringLiteral("select.next")));
        const std::int32_t before = s.view.chosenRequest();
        for (int i = 0; i < 4; ++i) {
            s.view.perform(QStringLiteral("select.next"));
        }
        QVERIFY(s.view.chosenRequest() != before);
        QVERIFY(lane->spoken().contains(QStringLiteral("Slot 3")));
    }

    void findsRequests() {
        Shown s;
        s.show();
        QCOMPARE(s.view.find(QStringLiteral("17"), 1), QStringLiteral("request 17 of 40"));
        QCOMPARE(s.view.chosenRequest(), 17);
        QVERIFY(s.view.find(QStringLiteral("4000"), 1).contains(QStringLiteral("39")));
        QCOMPARE(s.view.chosenRequest(), 17);
    }

    /// What few slots do not need goes to the curves below them, without gaps, in low windows too.
    void fewSlotsLeaveRoom() {
        Shown s;
        s.show(false);
        s.document.show(QStringLiteral("y.vitrine"), {test::batchInfo(1, "continuous", 2)},
                        {{1, test::BatchRun(trace(), 2, false).timeline()}});
        s.document.setRunA(1);
        QTRY_VERIFY(s.view.settled() && s.view.pair().a && s.view.pair().a->slotCount == 2);
        // One strip under the other, to the bottom.
        const auto filled = [&] {
            int bottom = 0;
            for (const QWidget* strip : s.view.stack()->findChildren<ui::TimeStrip*>(Qt::FindDirectChildrenOnly)) {
                if (strip->isVisible() && strip->y() == bottom) {
                    bottom = strip->geometry().bottom() + 1;
                }
            }
            return bottom == s.view.stack()->height();
        };
        for (const int height : {800, 640}) {
            s.view.resize(1080, height);
            QTRY_VERIFY2(filled(), qPrintable(QString::number(height)));
            QCOMPARE(s.view.slotLane(0)->height() <= 23 + 96, height == 800);
        }
    }

    void pagesAndAxes() {
        Shown s;
        s.show();
        s.view.perform(QStringLiteral("batching.requests"));
        QVERIFY(s.view.requestLane(0)->isVisible());
        QVERIFY(!s.view.slotLane(0)->isVisible());
        const base::TimeNs time = s.view.time()->extent().end;
        s.view.perform(QStringLiteral("batching.axis"));
        QTRY_VERIFY(s.view.settled());
        QVERIFY(s.view.time()->extent().end != time);
        const base::TimeNs steps = std::max(fixture().flowing.steps(), fixture().waiting.steps()) * ui::kStepLength;
        QVERIFY(std::abs(s.view.time()->extent().end - steps - steps / 50) < 2);
        s.view.header()->setTableShown(true);
        auto* twin = s.view.findChild<QTableView*>();
        QVERIFY(twin != nullptr);
        QCOMPARE(qobject_cast<QTableView*>(s.view.focusStops().front())->model()->rowCount(), 80);
        s.view.perform(QStringLiteral("edit.copy-why"));
        QVERIFY(QApplication::clipboard()->text().contains(QStringLiteral("TTFT p95")));
    }

    void sweepOverSlots() {
        std::vector<sessions::RunInfo> runs;
        int id = 10;
        for (const char* mode : {"continuous", "static"}) {
            for (const int slotCount : {1, 4, 16, 64}) {
                runs.push_back(test::batchInfo(id++, mode, slotCount, 100.0 * slotCount));
            }
        }
        runs.push_back(test::batchInfo(id++, "continuous", 32, 5, R"(, "new_tokens": "1-9")")); // another trace
        const ui::Sweep sweep = ui::batchSweep(runs, 10, 14);
        QCOMPARE(sweep.series.size(), std::size_t(2));
        QVERIFY(sweep.series[0].hasA && sweep.series[1].hasB);
        QCOMPARE(sweep.series[0].name, QStringLiteral("continuous"));
        QCOMPARE(sweep.points(), std::size_t(8));
        QCOMPARE(sweep.series[0].points[2].slotCount, 16);
        QCOMPARE(sweep.share, QStringLiteral("p90"));
        QCOMPARE(ui::sweepTable(sweep)->nodes.size(), std::size_t(8));

        Shown s;
        s.show(true, {test::batchInfo(3, "continuous", 16), test::batchInfo(4, "static", 16)});
        s.view.showPage(ui::BatchingView::SweepOfSlots);
        QVERIFY(!s.view.sweepPage()->emptyShown());
        QCOMPARE(s.view.sweepPage()->rate()->seriesCount(), std::size_t(4));
    }

    void wordsOfTraces() {
        QCOMPARE(ui::traceText(test::batchInfo(1, "static", 4)),
                 QStringLiteral("uniform 16\u2013256, 64 requests, seed 11"));
        const sessions::RunInfo file =
            test::runInfo(1, "batch", R"({"requests": 30})",
                          R"({"workload": "batch", "trace": "/tmp/day.jsonl", "requests": 100, "seed": 0})");
        QCOMPARE(ui::traceText(file), QStringLiteral("day.jsonl, 30 requests"));
        QCOMPARE(ui::traceText(test::runInfo(1, "serve", "{}", R"({"workload": "serve", "seed": 0})")), QString());
    }

    void sweepOfOne() {
        Shown s;
        s.show();
        s.view.showPage(ui::BatchingView::SweepOfSlots);
        QVERIFY(s.view.sweepPage()->emptyShown());
        QVERIFY(!s.view.sweepPage()->button()->isEnabled()); // nothing can be started here
        s.view.showPage(ui::BatchingView::Slots);
        s.view.slotLane(0)->setFocus();
        s.view.showPage(ui::BatchingView::SweepOfSlots);
        QVERIFY(!s.view.sweepPage()->slotCounts()->hasFocus()); // single keys are commands, no digits
    }

    void slotCountsOfSweeps() {
        QCOMPARE(ui::parseSlotCounts(QStringLiteral("4, 8,16 ,8")), (std::vector<std::int32_t>{4, 8, 16}));
        for (const char* bad : {"", "4,", "0", "-4", "5000", "four", "4 8"}) {
            QVERIFY2(ui::parseSlotCounts(QString::fromLatin1(bad)).empty(), bad);
        }
        sessions::RunInfo run = test::batchInfo(1, "continuous", 8, 0, R"(, "outputs": "answers.jsonl")");
        std::vector<nlohmann::json> both;
        for (const std::string& text : ui::sweepExperiments(run, {4, 8}, true, true)) {
            both.push_back(nlohmann::json::parse(text));
        }
        QCOMPARE(both.size(), std::size_t(4));
        QCOMPARE(both[1].value("slots", 0), 4);
        QVERIFY(both[0].value("mode", "") == "static" && both[1].value("mode", "") == "continuous");
        QVERIFY(!both[0].contains("outputs")); // the first run's answers stay as they are
        run.specJson = R"({"workload": "serve"})";
        QVERIFY(ui::sweepExperiments(run, {4}, true, true).empty());
    }

    void sweepRunsOneAfterTheOther() {
        CountedRuns runs;
        ui::SweepRunner sweep(&runs, nullptr);
        QSignalSpy failed(&sweep, &ui::SweepRunner::failed);
        const auto experiments = ui::sweepExperiments(fixture().infoA, {2, 4, 8}, false, true);
        sweep.start(experiments, QStringLiteral("x.vitrine"));
        QCOMPARE(runs.started.size(), std::size_t(1));
        runs.end(QStringLiteral("done"));
        QTRY_COMPARE(runs.started.size(), std::size_t(2));
        QCOMPARE(runs.started[1].value("slots", 0), 4);
        QCOMPARE(sweep.done(), 1);
        runs.end(QStringLiteral("out_of_memory")); // says nothing about the next one
        QTRY_COMPARE(runs.started.size(), std::size_t(3));
        runs.end(QStringLiteral("done"));
        QTRY_VERIFY(!sweep.running());
        QCOMPARE(failed.count(), 0);

        sweep.start(experiments, QStringLiteral("x.vitrine"));
        runs.end(QStringLiteral("failed"), QStringLiteral("no such model"));
        QVERIFY(!sweep.running());
        QCOMPARE(failed.takeFirst().value(0).toString(), QStringLiteral("no such model"));
        QTest::qWait(10);
        QCOMPARE(runs.started.size(), std::size_t(4));

        sweep.start(experiments, QStringLiteral("x.vitrine"));
        sweep.stop();
        QVERIFY(!sweep.running() && !runs.busy);
        QTest::qWait(10);
        QCOMPARE(runs.started.size(), std::size_t(5));
    }

    void choosesTraces() {
        Shown s;
        const sessions::RunInfo other = test::batchInfo(3, "continuous", 8, 0, R"(, "new_tokens": "1-9")");
        s.show(true, {other});
        QCOMPARE(s.view.traceChoice()->count(), 2);
        QCOMPARE(s.view.traceChoice()->currentIndex(), 1); // the newest trace comes first
        emit s.view.traceChoice()->activated(0);
        QCOMPARE(s.document.runA(), 3);
        QCOMPARE(s.document.runB(), 0); // nothing else ran that trace
        emit s.view.traceChoice()->activated(1);
        QCOMPARE(s.document.runA(), 2);
        QCOMPARE(s.document.runB(), 1);
    }

    /// What is chosen here is chosen in the KV cache's pages, and the cursor stands at the same instant of run A.
    void sharesWhatIsChosen() {
        Shown s;
        s.show();
        QVERIFY(s.view.find(QStringLiteral("17"), 1).contains(QStringLiteral("17")));
        ui::RequestChoice& choice = ui::RequestChoice::of(&s.time);
        QCOMPARE(choice.request(), 17);
        choice.choose(5);
        QCOMPARE(s.view.chosenRequest(), 5);
        s.time.reset({0, test::ns(10)});
        s.view.time()->setCursor(1'000'000);
        QCOMPARE(*s.time.cursor(), s.view.pair().a->origin + 1'000'000);
        s.time.setCursor(s.view.pair().a->origin + 2'000'000);
        s.view.activated();
        QCOMPARE(*s.view.time()->cursor(), 2'000'000);
    }

    void refusedRequestsAreMarked() {
        test::RecordedRun run;
        run.record(base::BatchStepEvent{0, 1000, 0, 1});
        for (int i = 0; i < 2; ++i) {
            run.record(base::RequestEvent{0, i, base::RequestChange::Arrived, -1, -1, 3, {}});
        }
        run.record(base::RequestEvent{0, 1, base::RequestChange::Refused, -1, -1, 0, run.word("too long")});
        run.record(base::RequestEvent{1000, 0, base::RequestChange::Finished, 0, 0, 1, run.word("length")});
        const auto timeline = run.timeline();
        const auto map =
            ui::BatchMap::make(ui::batchSide(test::batchInfo(1, "continuous", 1), *timeline), ui::BatchAxis::Time);
        const ui::PlotFrame frame{QSizeF(400, 60), 1};
        const QImage image =
            ui::paintRequests({map, ui::AxisMap::ofTime({0, 1000}, frame.plot().width()), 0}, frame, ui::themeTokens());
        const double top = 3 + ui::requestPitch(2, 60);
        int red = 0;
        for (int y = static_cast<int>(top); y < 60; ++y) {
            for (int x = static_cast<int>(frame.gutter); x < 400; ++x) {
                const QColor pixel = image.pixelColor(x, y);
                red += pixel.red() > pixel.green() + 60 && pixel.red() > pixel.blue() + 60 ? 1 : 0;
            }
        }
        QVERIFY2(red > 10, qPrintable(QString::number(red)));
    }

    /// A request that waits in its slot for others of its batch is idle there.
    void gapsInSlotsAreIdle() {
        test::RecordedRun run;
        run.record(base::RequestEvent{0, 0, base::RequestChange::Arrived, -1, -1, 3, {}});
        run.record(base::RequestEvent{100, 0, base::RequestChange::Admitted, 0, 0, 0, {}});
        run.record(base::SlotSpanEvent{100, 200, 0, 1, 0, 0, base::SlotState::Prefill, 3, 0});
        run.record(base::SlotSpanEvent{200, 300, 1, 1, 0, -1, base::SlotState::Idle, 0, 0});
        run.record(base::SlotSpanEvent{300, 400, 2, 1, 0, 0, base::SlotState::Decode, 1, 0});
        run.record(base::RequestEvent{400, 0, base::RequestChange::Finished, 0, 2, 1, run.word("length")});
        const auto timeline = run.timeline();
        const auto side = ui::batchSide(test::batchInfo(1, "static", 1), *timeline);
        QCOMPARE(side->pieces.size(), std::size_t(4));
        QCOMPARE(side->pieces[2].state, ui::RequestState::Idle);
        QCOMPARE(side->pieces[2].begin, 200);
        QCOMPARE(side->pieces[2].end, 300);
    }

    void saysWhyEmpty() {
        Shown s;
        s.view.resize(1080, 800);
        s.view.show();
        QVERIFY(s.view.emptyShown());
        test::RecordedRun recorded;
        recorded.alloc(base::MemoryCategory::Weights, "w", 1000, 0, -1);
        const ui::TimelinePtr plain = recorded.timeline();
        sessions::RunInfo load = test::runInfo(5, "load", "{}");
        s.document.show(QStringLiteral("x.vitrine"), {load, fixture().infoA}, {{5, plain}, {1, fixture().flow}});
        s.document.setRunA(5);
        QTRY_VERIFY(s.view.settled());
        QVERIFY(s.view.emptyText().contains(QStringLiteral("No requests were batched")));
        sessions::RunInfo silent = test::batchInfo(6, "static", 4);
        s.document.show(QStringLiteral("x.vitrine"), {silent}, {{6, plain}});
        QTRY_VERIFY(s.view.settled());
        QVERIFY2(s.view.emptyText().contains(QStringLiteral("recorded no steps")), qPrintable(s.view.emptyText()));
        QVERIFY(!s.view.panel()->throughput()->isVisibleTo(s.view.inspector())); // a head without rows says nothing
        silent.metricsJson = R"({"requests": 0})";
        s.document.show(QStringLiteral("x.vitrine"), {silent}, {{6, plain}});
        QTRY_VERIFY(s.view.settled());
        QVERIFY2(s.view.emptyText().contains(QStringLiteral("No request came")), qPrintable(s.view.emptyText()));
        silent.metricsJson = "{}";
        silent.error = "none.jsonl: has no requests";
        silent.status = sessions::RunStatus::Failed;
        s.document.show(QStringLiteral("x.vitrine"), {silent}, {{6, plain}});
        QTRY_VERIFY(s.view.settled());
        QVERIFY2(s.view.emptyText().contains(QStringLiteral("has no requests")), qPrintable(s.view.emptyText()));
    }

    void liveRunGrows() {
        test::RecordedRun run;
        for (int i = 0; i < 3; ++i) {
            run.record(base::RequestEvent{i * 10, i, base::RequestChange::Arrived, -1, -1, 3, {}});
        }
        run.record(base::RequestEvent{100, 0, base::RequestChange::Admitted, 1, 0, 0, {}});
        run.record(base::BatchStepEvent{100, 1000, 0, 1});
        run.record(base::RequestEvent{1000, 0, base::RequestChange::FirstToken, 1, 0, 1, {}});
        run.record(base::BatchStepEvent{1000, 2000, 1, 1});
        const auto timeline = run.timeline();
        sessions::RunInfo info = test::batchInfo(1, "continuous", 2);
        info.status = sessions::RunStatus::Running;
        const auto side = ui::batchSide(info, *timeline);
        // No slot has reported anything yet, but its request has; the other one stands empty.
        QCOMPARE(side->spans.size(), std::size_t(2));
        QCOMPARE(side->spans[0].state, base::SlotState::Idle);
        QCOMPARE(side->spans[1].slot, 1);
        QCOMPARE(side->spans[1].end, 2000);
        QCOMPARE(side->spans[1].steps, 2);
        QVERIFY(side->live);
        const auto map = ui::BatchMap::make(side, ui::BatchAxis::Steps);
        QVERIFY(map->spanAt(1, 500).has_value());
        QVERIFY(map->spanAt(0, 500).has_value());
    }

    /// A request has ended and nobody followed: its slot has not reported what it did.
    void liveSlotsEnd() {
        test::RecordedRun run;
        run.record(base::RequestEvent{0, 0, base::RequestChange::Arrived, -1, -1, 3, {}});
        run.record(base::RequestEvent{100, 0, base::RequestChange::Admitted, 0, 0, 0, {}});
        run.record(base::BatchStepEvent{100, 1000, 0, 1});
        run.record(base::RequestEvent{1000, 0, base::RequestChange::FirstToken, -1, 0, 1, {}});
        run.record(base::BatchStepEvent{1000, 2000, 1, 1});
        run.record(base::RequestEvent{2000, 0, base::RequestChange::Finished, -1, 1, 2, {}});
        run.record(base::BatchStepEvent{2000, 3000, 2, 0});
        const auto timeline = run.timeline();
        sessions::RunInfo info = test::batchInfo(1, "continuous", 1);
        info.status = sessions::RunStatus::Running;
        const auto side = ui::batchSide(info, *timeline);
        QCOMPARE(side->spans.size(), std::size_t(2));
        QCOMPARE(side->spans[0].state, base::SlotState::Decode);
        QCOMPARE(side->spans[0].end, 2000);
        QCOMPARE(side->spans[0].steps, 2);
        QCOMPARE(side->spans[1].state, base::SlotState::Idle);
        QCOMPARE(side->spans[1].steps, 1);
    }

    /// Who leaves the view clears what it says in the status bar; who comes back finds it.
    void saysAgreementAgain() {
        Shown shown;
        shown.show();
        QSignalSpy said(&shown.view, &ui::View::priced);
        shown.view.activated();
        QCOMPARE(said.count(), 1);
        QCOMPARE(said[0][0].toString(), ui::batchAgreement(shown.view.pair()));
    }
};

QTEST_MAIN(BatchingViewTest)
#include "batching_view_test.moc"
