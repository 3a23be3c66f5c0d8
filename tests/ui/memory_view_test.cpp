// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The Memory view in its window, driven by real events.
#include "ui/views/memory/memory_view.h"

#include <QApplication>
#include <QDir>
#include <QLineEdit>
#include <QSet>
#include <QTest>
#include <QTreeView>
#include <QWheelEvent>

#include "tests/ui/fake_runs.h"
#include "ui/views/memory/alive_panel.h"
#include "ui/views/memory/oom_page.h"
#include "ui/views/shell/main_window.h"

using namespace vitrine;
using test::seconds;
using ui::MainWindow;
using ui::MemoryView;

class MemoryViewTest final : public QObject {
    Q_OBJECT

    std::unique_ptr<MainWindow> window_;
    std::shared_ptr<test::FakeTimeline> timeline_;

    MemoryView* view() const { return static_cast<MemoryView*>(window_->view(QStringLiteral("memory"))); }

    void picture(const QString& name) const {
        const QString folder = qEnvironmentVariable("VITRINE_TEST_PICTURES");
        if (!folder.isEmpty()) {
            QVERIFY(window_->grab().save(QDir(folder).filePath(name + QStringLiteral(".png"))));
        }
    }

    static QPoint at(const ui::Lane* lane, base::TimeNs time, int y) { return {int(lane->xOf(time)), y}; }

    void wheel(QWidget* widget, QPointF position, int turned, Qt::KeyboardModifiers modifiers = {}) const {
        QWheelEvent event(position, widget->mapToGlobal(position), {}, {0, turned}, Qt::NoButton, modifiers,
                          Qt::NoScrollPhase, false);
        QApplication::sendEvent(widget, &event);
    }

    std::uint64_t idOf(const char* name) const {
        std::uint64_t id = 0;
        const auto rows = timeline_->allocations();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            id = timeline_->text(rows[i].name) == name ? rows[i].id : id;
        }
        return id;
    }

private slots:
    void initTestCase() { ui::Theme::instance().install(); }

    void init() {
        ui::Theme::instance().setMode(ui::Theme::Mode::Dark);
        timeline_ = test::makeOutOfMemoryRun();
        window_ = std::make_unique<MainWindow>(nullptr, QString());
        window_->resize(1440, 900);
        window_->show();
        window_->document()->show(QStringLiteral("long-context.vitrine"),
                                  {test::runInfo(1, "qlora-96k", sessions::RunStatus::OutOfMemory)}, {{1, timeline_}});
        QTRY_VERIFY(view()->settled());
    }

    void cleanup() { window_.reset(); }

    void wheelZoomsAtThePointer() {
        ui::StackLane* lane = view()->stackLane();
        ui::TimeCursor* time = window_->timeCursor();
        const base::TimeNs anchor = seconds(5);
        const QPointF position(lane->xOf(anchor), 100);
        const base::TimeNs before = time->range().length();
        wheel(lane, position, 120);
        QVERIFY(time->range().length() < before);
        QVERIFY(std::abs(lane->xOf(anchor) - position.x()) < 1.0);
        const base::TimeNs zoomed = time->range().length();
        wheel(lane, position, 15); // an eighth of a notch
        QVERIFY(time->range().length() < zoomed && time->range().length() > zoomed * 0.95);
        const ui::TimeRange range = time->range();
        wheel(lane, position, -120, Qt::ShiftModifier);
        QCOMPARE(time->range().length(), range.length());
        QVERIFY(time->range().begin > range.begin);
    }

    void keysZoomPanAndGoBack() {
        ui::StackLane* lane = view()->stackLane();
        ui::TimeCursor* time = window_->timeCursor();
        lane->setFocus();
        const ui::TimeRange all = time->range();
        QTest::keyClick(lane, Qt::Key_W);
        QVERIFY(time->range().length() < all.length());
        const ui::TimeRange zoomed = time->range();
        QTest::keyClick(lane, Qt::Key_D);
        QVERIFY(time->range().begin > zoomed.begin);
        QTest::keyClick(lane, Qt::Key_Left);
        QCOMPARE(time->range().length(), zoomed.length());
        QTest::keyClick(lane, Qt::Key_Home);
        QCOMPARE(time->range(), all);
        QTest::keyClick(lane, Qt::Key_Backspace);
        QVERIFY(time->range() != all);
        QTest::keyClick(lane, Qt::Key_S);
        QTest::keyClick(lane, Qt::Key_S);
        QCOMPARE(time->range(), all); // not beyond the run
    }

    void keysByPlaceNotByLetter() {
        // On a French keyboard the place of W sends Z.
        ui::StackLane* lane = view()->stackLane();
        const base::TimeNs before = window_->timeCursor()->range().length();
        QKeyEvent place(QEvent::KeyPress, Qt::Key_Z, Qt::NoModifier, 25, 0, 0, QStringLiteral("z"));
        QApplication::sendEvent(lane, &place);
        QVERIFY(window_->timeCursor()->range().length() < before);
        const base::TimeNs now = window_->timeCursor()->range().length();
        QKeyEvent letter(QEvent::KeyPress, Qt::Key_W, Qt::NoModifier, 52, 0, 0, QStringLiteral("w"));
        QApplication::sendEvent(lane, &letter);
        QCOMPARE(window_->timeCursor()->range().length(), now);
    }

    void dragMeasures() {
        ui::StackLane* lane = view()->stackLane();
        ui::TimeCursor* time = window_->timeCursor();
        QTest::mousePress(lane, Qt::LeftButton, {}, at(lane, seconds(8), 50));
        QTest::mouseMove(lane, at(lane, seconds(9), 60));
        QTest::mouseMove(lane, at(lane, seconds(10), 60));
        QTest::mouseRelease(lane, Qt::LeftButton, {}, at(lane, seconds(10), 60));
        QVERIFY(time->measured());
        QVERIFY(std::abs(time->measured()->begin - seconds(8)) < seconds(0.02));
        QVERIFY(std::abs(time->measured()->end - seconds(10)) < seconds(0.02));
        QVERIFY(view()->readout().startsWith(QStringLiteral("Range ")));
        // An edge can be dragged; dragging it over the other one swaps them.
        QTest::mousePress(lane, Qt::LeftButton, {}, at(lane, time->measured()->end, 50));
        QTest::mouseMove(lane, at(lane, seconds(7), 60));
        QTest::mouseRelease(lane, Qt::LeftButton, {}, at(lane, seconds(7), 60));
        QVERIFY(std::abs(time->measured()->begin - seconds(7)) < seconds(0.03));
        QVERIFY(std::abs(time->measured()->end - seconds(8)) < seconds(0.03));
        // F centres, F again fits, Enter narrows, Esc clears.
        QTest::keyClick(lane, Qt::Key_F);
        QTest::keyClick(lane, Qt::Key_F);
        QCOMPARE(time->range(), *time->measured());
        QTest::keyClick(lane, Qt::Key_Home);
        QTest::keyClick(lane, Qt::Key_Return);
        QCOMPARE(time->filters().size(), std::size_t(1));
        QTest::keyClick(lane, Qt::Key_Home);
        QCOMPARE(time->range(), time->filters().front().range); // zoom and filter are two things
        QTest::keyClick(lane, Qt::Key_Escape);
        QVERIFY(!time->measured());
    }

    void middleDragPans() {
        ui::StackLane* lane = view()->stackLane();
        ui::TimeCursor* time = window_->timeCursor();
        time->setRange({seconds(4), seconds(8)});
        const QPoint from(500, 80);
        QTest::mousePress(lane, Qt::MiddleButton, {}, from);
        QTest::mouseMove(lane, from + QPoint(-100, 0));
        QTest::mouseRelease(lane, Qt::MiddleButton, {}, from + QPoint(-100, 0));
        QVERIFY(time->range().begin > seconds(4));
        QCOMPARE(time->range().length(), seconds(8) - seconds(4));
        QVERIFY(!time->measured());
    }

    void peaks() {
        ui::StackLane* lane = view()->stackLane();
        ui::TimeCursor* time = window_->timeCursor();
        lane->setFocus();
        const auto highest = timeline_->peak(0, timeline_->end() + 1);
        QTest::keyClick(lane, Qt::Key_P);
        QVERIFY(time->cursor());
        QCOMPARE(*time->cursor(), highest.maxTime);
        QTest::keyClick(lane, Qt::Key_P);
        QVERIFY(*time->cursor() > highest.maxTime);
        QTest::keyClick(lane, Qt::Key_P, Qt::ShiftModifier);
        QCOMPARE(*time->cursor(), highest.maxTime);
        time->setRange({seconds(9), seconds(9.5)});
        QTest::keyClick(lane, Qt::Key_P, Qt::ShiftModifier);
        QVERIFY(time->range().contains(*time->cursor())); // it scrolls
    }

    void whyOutOfMemoryOpensAndCloses() {
        QTest::keyClick(view()->stackLane(), Qt::Key_O);
        QVERIFY(view()->oomShown());
        QVERIFY(view()->oomPage()->sentence().startsWith(QStringLiteral("Step 3 asked for 36.82")));
        QVERIFY(view()->oomPage()->holders()->model()->rowCount() >= 6);
        QTest::keyClick(view()->oomPage(), Qt::Key_Escape);
        QVERIFY(!view()->oomShown());
    }

    void clickPinsAnAllocation() {
        ui::AllocationLane* lane = view()->allocationLane();
        lane->grab(); // paints, so that there is something to hit
        ui::TimeCursor* time = window_->timeCursor();
        const std::uint64_t id = idOf("logits");
        QRectF rect;
        for (const ui::AllocationHit& hit : lane->drawn().hits) {
            rect = timeline_->allocations()[hit.row].id == id ? hit.rect : rect;
        }
        QVERIFY(rect.width() > 4);
        const QPoint middle = rect.center().toPoint() + QPoint(0, ui::Lane::kHeaderHeight);
        QTest::mouseMove(lane, middle);
        QTest::mouseClick(lane, Qt::LeftButton, {}, middle);
        QCOMPARE(time->selection().allocation, id);
        QTRY_VERIFY(view()->alive()->pinned()->asText().contains(QStringLiteral("39,535,509,504")));
        QVERIFY(view()->alive()->pinned()->asText().contains(QStringLiteral("never")));
        QTRY_VERIFY(!view()->alive()->waiting());
        QCOMPARE(view()->alive()->tree()->currentIndex().data(ui::KeyRole).toULongLong(), id);
        QTest::keyClick(lane, Qt::Key_Comma);
        QVERIFY(time->selection().allocation != id && time->selection().allocation != 0);
        QTest::keyClick(lane, Qt::Key_Period);
        QCOMPARE(time->selection().allocation, id);
    }

    void aliveFollowsTheCursor() {
        QTest::mouseClick(view()->stackLane(), Qt::LeftButton, {}, at(view()->stackLane(), seconds(10.93), 100));
        QTRY_VERIFY(view()->settled());
        const ui::FlatTreeModel* model = view()->alive()->model();
        QCOMPARE(model->index(0, 0).data().toString(), QStringLiteral("logits"));
        QCOMPARE(model->index(0, 1).data().toString(), QStringLiteral("36.82\u00A0GiB"));
        QVERIFY(view()->stackLane()->spoken().contains(QStringLiteral("logits 36.82")));
    }

    void findGoesThroughAllocations() {
        QTest::keyClick(view()->stackLane(), Qt::Key_Slash);
        QLineEdit* field = window_->searchField();
        QTRY_VERIFY(field->hasFocus());
        QTest::keyClicks(field, QStringLiteral(">30GiB"));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(window_->timeCursor()->selection().allocation, idOf("logits"));
        QTest::keyClick(field, Qt::Key_Escape);
        QVERIFY(field->text().isEmpty());
    }

    void legendIsolates() {
        ui::Legend* legend = view()->stack()->legend();
        legend->grab();
        legend->setFocus();
        QTest::keyClick(legend, Qt::Key_Space);
        QCOMPARE(legend->only().size(), std::size_t(1));
        QTest::keyClick(legend, Qt::Key_Space);
        QVERIFY(legend->only().empty());
    }

    void groupsAreOneThing() {
        view()->header()->findChildren<ui::SegmentedControl*>().value(0)->setCurrent(1);
        QTRY_VERIFY(view()->settled());
        QTRY_VERIFY(view()->stackLane()->model()->layers.front().name.startsWith(QStringLiteral("layer")) ||
                    view()->stackLane()->model()->layers.front().name == QStringLiteral("outside layers"));
        QVERIFY(view()->alive()->model()->rowCount() > 10);
    }

    void eventsAxisAndTable() {
        view()->header()->findChildren<ui::SegmentedControl*>().value(1)->setCurrent(1);
        QCOMPARE(view()->stack()->axis().kind(), ui::AxisKind::Events);
        view()->grab();
        view()->header()->setTableShown(true);
        QTRY_VERIFY(view()->settled());
        auto* table = view()->findChild<QTreeView*>(QString(), Qt::FindDirectChildrenOnly);
        QVERIFY(table != nullptr);
        QTRY_COMPARE(table->model()->rowCount(), int(timeline_->allocations().size()));
    }

    void tabReachesEverything() {
        // Keyboard alone: F6 goes through all parts and comes back.
        QSet<QWidget*> seen;
        view()->stackLane()->setFocus();
        for (int i = 0; i < 12; ++i) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_F6);
            seen << QApplication::focusWidget();
        }
        QVERIFY2(seen.size() >= 6, qPrintable(QString::number(seen.size())));
        QVERIFY(seen.contains(view()->stackLane()));
        QVERIFY(seen.contains(view()->allocationLane()));
    }

    void narrowWindow() {
        window_->resize(1024, 700);
        QTest::qWait(20);
        QTRY_VERIFY(view()->settled());
        const ui::StackLane* lane = view()->stackLane();
        QVERIFY2(lane->width() >= 900 && lane->height() >= 300,
                 qPrintable(QStringLiteral("%1x%2").arg(lane->width()).arg(lane->height())));
        QTest::qWait(50);
        picture(QStringLiteral("memory-1024"));
        view()->perform(QStringLiteral("go.oom"));
        QTest::qWait(50);
        picture(QStringLiteral("why-oom-1024"));
    }

    void emptyAndBrokenRuns() {
        auto nothing = std::make_shared<test::FakeTimeline>();
        nothing->finish(0);
        window_->document()->show(QStringLiteral("x"), {test::runInfo(1, "x", sessions::RunStatus::Done)},
                                  {{1, nothing}});
        QVERIFY(view()->emptyText().contains(QStringLiteral("no memory events")));
        window_->document()->show(QStringLiteral("x"), {}, {});
        QVERIFY(!view()->emptyText().isEmpty());
        window_->document()->close();
        QVERIFY(view()->emptyText().contains(QStringLiteral("No session")));
        for (const char* key : {"go.peak-next", "go.oom", "select.next", "zoom.fit", "edit.copy-why", "view.table"}) {
            view()->perform(QString::fromLatin1(key)); // nothing to do, nothing breaks
        }
    }

    void pictures() {
        for (const bool dark : {true, false}) {
            ui::Theme::instance().setMode(dark ? ui::Theme::Mode::Dark : ui::Theme::Mode::Light);
            const QString suffix = dark ? QStringLiteral("-dark") : QStringLiteral("-light");
            window_->timeCursor()->setRange({seconds(2.42), seconds(11.08)});
            window_->timeCursor()->setMeasured(ui::TimeRange{seconds(7.99), seconds(10.78)});
            window_->timeCursor()->setCursor(seconds(10.93));
            const auto rows = timeline_->allocations();
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (timeline_->text(rows[i].name) == "logits") {
                    window_->timeCursor()->select({rows[i].id, 0}); // the last one stays
                }
            }
            QTest::qWait(50);
            QTRY_VERIFY(view()->settled());
            QTest::qWait(50);
            picture(QStringLiteral("memory") + suffix);
            view()->perform(QStringLiteral("go.oom"));
            QTest::qWait(50);
            picture(QStringLiteral("why-oom") + suffix);
            view()->perform(QStringLiteral("select.clear"));
        }
    }
};

QTEST_MAIN(MemoryViewTest)
#include "memory_view_test.moc"
