// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/queue/queue_view.h"

#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/sessions/temp_folder.h"
#include "tests/ui/models/common/played_runs.h"
#include "ui/models/queue/queue_model.h"
#include "ui/views/queue/queue_panel.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/forms/chip_row.h"

using namespace vitrine;

namespace {

const QString kTune = QStringLiteral(R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:tiny-gpt-oss",
                                         "prompt_length": 32, "steps": 4, "backend": "cpu"})");

} // namespace

class QueueViewTest final : public QObject {
    Q_OBJECT

    test::TempFolder folder_;
    test::PlayedRuns runs_;
    std::unique_ptr<ui::MainWindow> window_;

    ui::QueueView* view() const { return static_cast<ui::QueueView*>(window_->view(QStringLiteral("queue"))); }
    const engine::RunQueue& queue() const { return view()->runner()->queue(); }
    std::vector<std::int64_t> order() const {
        std::vector<std::int64_t> out;
        for (const engine::QueuedRun& run : queue().runs()) {
            out.push_back(run.number);
        }
        return out;
    }
    /// Runs that wait because another run goes on.
    void addWaiting(int count) {
        runs_.busy = true;
        for (int i = 0; i < count; ++i) {
            view()->runner()->add(kTune.toStdString());
        }
        QTRY_VERIFY(view()->settled());
        QTest::qWait(20);
    }

private slots:
    void init() {
        runs_.busy = false;
        window_ = std::make_unique<ui::MainWindow>(&runs_, QString());
        window_->resize(1440, 900);
        window_->show();
        window_->openView(QStringLiteral("queue"));
    }
    void cleanup() { window_.reset(); }

    void isAPageOfTheRunView() {
        QCOMPARE(window_->currentView(), view());
        QVERIFY(window_->actionList()->action(QStringLiteral("go.run"))->isChecked());
        window_->openView(QStringLiteral("run/1"));
        QCOMPARE(window_->currentView()->id(), QStringLiteral("run"));
        QVERIFY(!window_->views().empty());
    }

    void saysThatNothingWaits() {
        QVERIFY(view()->emptyShown());
        QVERIFY(view()->emptyText().startsWith(QStringLiteral("Nothing waits.")));
    }

    void movesTheChosenRunByKeysAsByDragging() {
        addWaiting(3);
        view()->choose(3);
        QTest::keyClick(view()->table(), Qt::Key_Up, Qt::AltModifier);
        QCOMPARE(order(), (std::vector<std::int64_t>{1, 3, 2}));
        QTest::keyClick(view()->table(), Qt::Key_Down, Qt::AltModifier);
        QCOMPARE(order(), (std::vector<std::int64_t>{1, 2, 3}));
        QTest::keyClick(view()->table(), Qt::Key_Home, Qt::AltModifier);
        QCOMPARE(order(), (std::vector<std::int64_t>{3, 1, 2}));
        emit view() -> model()->moveWanted(3, 2);
        QCOMPARE(order(), (std::vector<std::int64_t>{1, 2, 3}));
    }

    void holdsBackReleasesAndRemovesByKey() {
        addWaiting(2);
        view()->choose(1);
        QTest::keyClick(view()->table(), Qt::Key_H);
        QCOMPARE(queue().find(1)->state, engine::QueueState::Paused);
        QTest::keyClick(view()->table(), Qt::Key_H);
        QCOMPARE(queue().find(1)->state, engine::QueueState::Waiting);
        QTest::keyClick(view()->table(), Qt::Key_Delete);
        QCOMPARE(order(), (std::vector<std::int64_t>{2}));
    }

    void asksBeforeItEndsARun() {
        view()->takeExperiment(kTune);
        QTRY_VERIFY(queue().running() != nullptr);
        runs_.stops = 0;
        view()->choose(1);
        QTest::keyClick(view()->table(), Qt::Key_E);
        QCOMPARE(runs_.stops, 0);
        QTRY_VERIFY(window_->focusWidget() != nullptr);
        auto buttons = view()->findChildren<QPushButton*>();
        const auto end = std::ranges::find_if(buttons, [](QPushButton* button) {
            return button->isVisible() && button->text() == QStringLiteral("End #1");
        });
        QVERIFY(end != buttons.end());
        (*end)->click();
        QCOMPARE(runs_.stops, 1);
        runs_.end(QStringLiteral("cancelled"), QString());
    }

    void putsASweepTogetherAndAddsIt() {
        addWaiting(1);
        view()->choose(1);
        QTest::keyClick(view()->table(), Qt::Key_N);
        QVERIFY(view()->panel()->drafting());
        auto* chips = view()->panel()->findChild<ui::ChipRow*>();
        QVERIFY(chips != nullptr);
        chips->field()->setText(QStringLiteral("wrong"));
        QTest::keyClick(chips->field(), Qt::Key_Return);
        QVERIFY(!chips->problem().isEmpty());
        chips->field()->setText(QStringLiteral("0.001, 0.002"));
        QTest::keyClick(chips->field(), Qt::Key_Return);
        QCOMPARE(chips->values().size(), 3);
        view()->panel()->startButton()->click();
        QVERIFY(!view()->panel()->drafting());
        QCOMPARE(queue().sweeps().size(), 1U);
        QCOMPARE(queue().runs().size(), 4U);
        QTRY_VERIFY(view()->settled());
    }
};

QTEST_MAIN(QueueViewTest)
#include "queue_view_test.moc"
