// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// How long one frame of the Memory view takes in software rendering. It prints times and asserts none: machines differ.
// VITRINE_FRAME_EVENTS=10000000 makes it the size that the design speaks of; the default keeps the suite quick.
#include <QElapsedTimer>
#include <QTest>

#include "profiler/memory_timeline.h"
#include "profiler/recorder.h"
#include "tests/ui/fake_runs.h"
#include "ui/models/time_cursor.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"

using namespace vitrine;

class FrameTimeTest final : public QObject {
    Q_OBJECT

    static ui::TimelinePtr manyEvents(std::uint64_t events) {
        profiler::Recorder recorder;
        profiler::MemoryTimelineBuilder builder;
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
        const ui::TimelinePtr timeline = manyEvents(given && wanted > 0 ? std::uint64_t(wanted) : 100'000);
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
            const auto length = static_cast<base::TimeNs>(double(timeline->end()) * part);
            time.setRange({timeline->end() / 3, timeline->end() / 3 + length});
            QElapsedTimer clock;
            clock.start();
            const QImage frame = stack.grab().toImage();
            const double whole = double(clock.nsecsElapsed()) / 1e6;
            QTRY_VERIFY_WITH_TIMEOUT(!shapes->waiting(), 120'000);
            qInfo("%llu events, %5.1f %% of the run: frame %.1f ms, stack %.1f ms, allocations %.1f ms",
                  static_cast<unsigned long long>(timeline->events()), part * 100, whole, layers->lastPictureMs(),
                  shapes->lastPictureMs());
            QVERIFY(!frame.isNull() && layers->model() && layers->model()->largestTotal() > 0);
        }
    }

    void stackLayoutDoesNotHoldTheWindow() {
        // The first Stack layout of a large run is placed by another thread: the window goes on meanwhile.
        bool given = false;
        const int wanted = qEnvironmentVariableIntValue("VITRINE_FRAME_EVENTS", &given);
        const ui::TimelinePtr timeline = manyEvents(given && wanted > 0 ? std::uint64_t(wanted) : 200'000);
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
        const double asked = double(clock.nsecsElapsed()) / 1e6;
        QVERIFY(shapes->waiting());
        double longest = 0;
        QString told;
        while (shapes->waiting()) {
            clock.restart();
            QCoreApplication::processEvents(QEventLoop::AllEvents);
            stack.grab();
            longest = std::max(longest, double(clock.nsecsElapsed()) / 1e6);
            told = shapes->facts().contains(QStringLiteral("Stacking")) ? shapes->facts() : told;
        }
        qInfo("%llu events: asking %.1f ms, longest turn of the event loop %.1f ms; %s",
              static_cast<unsigned long long>(timeline->events()), asked, longest, qPrintable(told));
        QCOMPARE(timeline->stackedPart(), 1.0);
        QVERIFY(shapes->drawn().shapes + shapes->drawn().small > 0);
    }
};

QTEST_MAIN(FrameTimeTest)
#include "frame_time_test.moc"
