// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// How long one frame of the Memory view takes in software rendering. It prints times and asserts none: machines differ.
// VITRINE_FRAME_EVENTS=10000000 makes it the size that the design speaks of; the default keeps the suite quick.
#include <QElapsedTimer>
#include <QTest>

#include "profiler/record/recorder.h"
#include "profiler/timeline/run_timeline.h"
#include "tests/ui/models/common/fake_runs.h"
#include "tests/ui/models/session/recorded_run.h"
#include "ui/models/batching/batch_map.h"
#include "ui/models/common/time_cursor.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/slot_painter.h"

using namespace vitrine;

class FrameTimeTest final : public QObject {
    Q_OBJECT

    static ui::TimelinePtr manyEvents(std::uint64_t events) {
        profiler::Recorder recorder;
        profiler::RunTimelineBuilder builder;
        const base::StringId name = recorder.intern("layers.0.mlp.gate_up");
        std::uint64_t id = 0;
        for (std::uint64_t i = 0; i < events; ++i) {
            const auto time = static_cast<base::TimeNs>(i * 1000);
            if (i % 2 == 0 || id <= 64) {
                base::AllocationEvent event;
                event.time = time;
                event.id = ++id;
                event.address = (id % 4096) << 22;
                event.bytes = 1024 + (i * 2654435761u) % (1u << 22);
                event.category = static_cast<base::MemoryCategory>(1 + id % 9);
                event.name = name;
                recorder.record(event);
            } else {
                recorder.record(base::FreeEvent{time, id - 64});
            }
            if (i % 200'000 == 199'999) {
                for (const base::ColumnChunk& chunk : recorder.drain()) {
                    builder.add(chunk);
                }
            }
        }
        for (const base::ColumnChunk& chunk : recorder.finish()) {
            builder.add(chunk);
        }
        return builder.snapshot();
    }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void frames() {
        bool given = false;
        const int wanted = qEnvironmentVariableIntValue("VITRINE_FRAME_EVENTS", &given);
        const ui::TimelinePtr timeline = manyEvents(given && wanted > 0 ? static_cast<std::uint64_t>(wanted) : 100'000);
        ui::TimeCursor time;
        time.reset({timeline->begin(), timeline->end()});
        ui::LaneStack stack(&time, ui::LaneStack::AllStrips, nullptr);
        auto* layers = new ui::StackLane(QStringLiteral("stack"), &time, &stack);
        auto* shapes = new ui::AllocationLane(QStringLiteral("allocations"), &time, &stack);
        stack.addLane(layers);
        stack.addLane(shapes);
        stack.resize(1000, 780);
        stack.show();
        stack.setTimeline(timeline);
        layers->setTimeline(timeline);
        shapes->setTimeline(timeline);
        QTRY_VERIFY_WITH_TIMEOUT(!shapes->waiting(), 120'000);
        for (const double part : {1.0, 0.5, 0.1, 0.001}) {
            const auto length = static_cast<base::TimeNs>(static_cast<double>(timeline->end()) * part);
            time.setRange({timeline->end() / 3, timeline->end() / 3 + length});
            QElapsedTimer clock;
            clock.start();
            const QImage frame = stack.grab().toImage();
            const double whole = static_cast<double>(clock.nsecsElapsed()) / 1e6;
            QTRY_VERIFY_WITH_TIMEOUT(!shapes->waiting(), 120'000);
            qInfo("%llu events, %5.1f %% of the run: frame %.1f ms, stack %.1f ms, allocations %.1f ms",
                  static_cast<unsigned long long>(timeline->memory().events()), part * 100, whole,
                  layers->lastPictureMs(), shapes->lastPictureMs());
            QVERIFY(!frame.isNull() && layers->model() && layers->model()->largestTotal() > 0);
        }
    }

    void batchFrames() {
        // A thousand requests over many steps in 128 slots, each with a prompt, an answer and an idle step.
        bool given = false;
        const int wanted = qEnvironmentVariableIntValue("VITRINE_FRAME_STEPS", &given);
        const int steps = given && wanted > 0 ? wanted : 10'000;
        constexpr int kSlots = 128, kRequests = 1000;
        test::RecordedRun run;
        for (int i = 0; i < steps; ++i) {
            base::BatchStepEvent step;
            step.begin = i * 1000;
            step.end = step.begin + 1000;
            step.index = i;
            step.sampled = kSlots;
            step.usedPages = 500 + i % 97;
            run.record(step);
        }
        // Two hundred stretches for each request: many to a column of pixels.
        constexpr int kRounds = kRequests / kSlots + 1, kStretches = 100;
        const int each = std::max(2, steps / kRounds / kStretches);
        for (int i = 0; i < kRequests; ++i) {
            run.record(base::RequestEvent{0, i, base::RequestChange::Arrived, -1, -1, 100, {}});
        }
        for (int at = 0; at < kRounds * kStretches; ++at) {
            for (int slot = 0; slot < kSlots; ++slot) {
                const int request = at / kStretches * kSlots + slot, from = at * each;
                if (request >= kRequests) {
                    continue;
                }
                if (at % kStretches == 0) {
                    run.record(
                        base::RequestEvent{from * 1000, request, base::RequestChange::Admitted, slot, from, 0, {}});
                }
                run.record(base::SlotSpanEvent{from * 1000, (from + 1) * 1000, from, 1, slot, request,
                                               base::SlotState::Prefill, 1, 0});
                run.record(base::SlotSpanEvent{(from + 1) * 1000, (from + each) * 1000, from + 1, each - 1, slot,
                                               request, base::SlotState::Decode, each - 1, 0});
            }
        }
        const auto timeline = run.timeline();
        QElapsedTimer clock;
        clock.start();
        const auto side = ui::batchSide(test::runInfo(1, "batch", R"({"mode": "continuous"})"), *timeline);
        const auto map = ui::BatchMap::make(side, ui::BatchAxis::Time);
        qInfo("%zu spans, %zu steps: made in %.1f ms by another thread", side->spans.size(), side->steps.size(),
              static_cast<double>(clock.nsecsElapsed()) / 1e6);
        for (const double part : {1.0, 0.3, 0.01}) {
            const auto length = static_cast<base::TimeNs>(static_cast<double>(map->length()) * part);
            const ui::AxisMap axis = ui::AxisMap::ofTime({map->length() / 3, map->length() / 3 + length}, 1300);
            const ui::PlotFrame frame{QSizeF(1360, 220), 2};
            clock.restart();
            const QImage image = ui::paintSlots({map, axis, std::nullopt}, frame, ui::themeTokens());
            const double painted = static_cast<double>(clock.nsecsElapsed()) / 1e6;
            clock.restart();
            const QImage rows = ui::paintRequests({map, axis, 0}, frame, ui::themeTokens());
            const double listed = static_cast<double>(clock.nsecsElapsed()) / 1e6;
            clock.restart();
            const auto pages = map->usedPages().columns(axis, 2600);
            const auto rate = map->rateColumns(axis, 2600, 80);
            qInfo("%5.1f %% of the run: slots %.1f ms, requests %.1f ms, two curves %.1f ms", part * 100, painted,
                  listed, static_cast<double>(clock.nsecsElapsed()) / 1e6);
            QVERIFY(!image.isNull() && !rows.isNull() && pages.size() == rate.size());
        }
    }

    void stackLayoutDoesNotHoldTheWindow() {
        // The first Stack layout of a large run is placed by another thread: the window goes on meanwhile.
        bool given = false;
        const int wanted = qEnvironmentVariableIntValue("VITRINE_FRAME_EVENTS", &given);
        const ui::TimelinePtr timeline = manyEvents(given && wanted > 0 ? static_cast<std::uint64_t>(wanted) : 200'000);
        ui::TimeCursor time;
        time.reset({timeline->begin(), timeline->end()});
        ui::LaneStack stack(&time, ui::LaneStack::WithRuler, nullptr);
        auto* shapes = new ui::AllocationLane(QStringLiteral("allocations"), &time, &stack);
        stack.addLane(shapes);
        stack.resize(1000, 400);
        stack.show();
        shapes->setByAddress(false);
        shapes->setTimeline(timeline);
        QElapsedTimer clock;
        clock.start();
        stack.grab(); // asks for the picture
        const double asked = static_cast<double>(clock.nsecsElapsed()) / 1e6;
        QVERIFY(shapes->waiting());
        double longest = 0;
        QString stacking;
        while (shapes->waiting()) {
            clock.restart();
            QCoreApplication::processEvents(QEventLoop::AllEvents);
            stack.grab();
            longest = std::max(longest, static_cast<double>(clock.nsecsElapsed()) / 1e6);
            stacking = shapes->facts().contains(QStringLiteral("Stacking")) ? shapes->facts() : stacking;
        }
        qInfo("%llu events: asking %.1f ms, longest turn of the event loop %.1f ms; %s",
              static_cast<unsigned long long>(timeline->memory().events()), asked, longest, qPrintable(stacking));
        QCOMPARE(timeline->memory().stackedPart(), 1.0);
        QVERIFY(shapes->drawn().shapes + shapes->drawn().small > 0);
    }
};

QTEST_MAIN(FrameTimeTest)
#include "frame_time_test.moc"
