// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/question_thread.h"

#include <QTest>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

using namespace vitrine;

namespace {

/// Waits until it is asked to stop.
void waitForStop(const base::StopToken& stop) {
    while (!stop.stop_requested()) {
        std::this_thread::yield();
    }
}

} // namespace

class QuestionThreadTest final : public QObject {
    Q_OBJECT

private slots:
    void aNewerQuestionEndsTheOneInProgress() {
        std::promise<void> begun;
        std::promise<std::vector<int>> ended;
        std::vector<int> stopped;
        ui::QuestionThread<int> thread([&](const int& question, const base::StopToken& stop) {
            if (question == 1) {
                begun.set_value();
                waitForStop(stop);
                stopped.push_back(question);
            } else {
                stopped.push_back(question);
                ended.set_value(stopped);
            }
        });
        thread.ask(1);
        begun.get_future().wait();
        thread.ask(2);
        QCOMPARE(ended.get_future().get(), (std::vector{1, 2}));
    }

    void cancelEndsItAndTheThreadGoesOn() {
        std::promise<void> begun, ended;
        ui::QuestionThread<int> thread([&](const int& question, const base::StopToken& stop) {
            if (question == 1) {
                begun.set_value();
                waitForStop(stop);
            } else {
                ended.set_value();
            }
        });
        thread.ask(1);
        begun.get_future().wait();
        thread.cancel();
        thread.ask(2);
        ended.get_future().wait();
    }

    void itsEndStopsTheQuestionInProgress() {
        std::promise<void> begun;
        std::atomic<bool> ended = false;
        {
            ui::QuestionThread<int> thread([&](const int&, const base::StopToken& stop) {
                begun.set_value();
                waitForStop(stop);
                ended = true;
            });
            thread.ask(1);
            begun.get_future().wait();
        }
        QVERIFY(ended);
    }
};

QTEST_GUILESS_MAIN(QuestionThreadTest)
#include "question_thread_test.moc"
