// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/queue/queue_runner.h"

#include <QSignalSpy>
#include <QTest>
#include <nlohmann/json.hpp>

#include "sessions/session_file.h"
#include "tests/sessions/temp_folder.h"
#include "tests/ui/models/common/played_runs.h"
#include "ui/models/common/format.h"

using namespace vitrine;
using engine::QueueState;

namespace {

const std::string kTune = R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:tiny-gpt-oss",
                              "prompt_length": 32, "steps": 4, "backend": "cpu"})";

engine::SweepPlan ranks() {
    engine::SweepPlan plan;
    plan.name = "ranks";
    plan.base = kTune;
    plan.options = {{"rank", {"2", "4", "8"}}};
    plan.rule = engine::StopRule{0.1, 2};
    return plan;
}

/// One GPU whose memory a test sets.
class OneGpu final : public ui::DeviceFeed {
public:
    std::vector<ui::DeviceEntry> devices() const override {
        return {{QStringLiteral("cuda"), 0, QStringLiteral("NVIDIA H200"), {}}};
    }
    std::optional<ui::DeviceReading> reading(int) const override { return now; }
    void watch(const std::set<int>&) override {}
    QStringList notes() const override { return {}; }

    ui::DeviceReading now;
};

constexpr std::uint64_t kMiB = 1ULL << 20;

} // namespace

class QueueRunnerTest final : public QObject {
    Q_OBJECT

    test::TempFolder folder_;
    test::PlayedRuns runs_;

    QueueState stateOf(const ui::QueueRunner& queue, std::int64_t number) { return queue.queue().find(number)->state; }

    /// Ends the run that is going on with evaluations at steps 2 and 4.
    void endWith(double loss) {
        runs_.end(
            QStringLiteral("done"), {},
            QStringLiteral(R"({"eval_steps": [2, 4], "eval_losses": [%1, %1], "losses": [1, 1, 1, 1], "steps": 4})")
                .arg(loss));
    }

private slots:
    void init() {
        runs_.busy = false;
        runs_.stops = 0;
    }

    void runsOneAfterTheOther() {
        ui::SessionDocument document;
        ui::QueueRunner queue(&document, &runs_, nullptr);
        queue.addSweep(ranks());
        for (std::int64_t number = 1; number <= 3; ++number) {
            QTRY_COMPARE(stateOf(queue, number), QueueState::Running);
            QCOMPARE(runs_.asked["rank"].get<int>(), number == 1 ? 2 : number == 2 ? 4 : 8);
            endWith(1.5);
            QCOMPARE(stateOf(queue, number), QueueState::Finished);
        }
        QVERIFY(!runs_.busy);
    }

    void memoryThatAFailedRunKeepsPausesTheQueue() {
        ui::SessionDocument document;
        OneGpu gpu;
        gpu.now.used = 1000 * kMiB;
        gpu.now.own = 100 * kMiB;
        ui::QueueRunner queue(&document, &runs_, nullptr, &gpu);
        queue.setSettleTime(1);
        queue.addSweep(ranks());
        QTRY_COMPARE(stateOf(queue, 1), QueueState::Running);
        gpu.now.used = 1064 * kMiB; // as much as may stay
        gpu.now.own = 164 * kMiB;
        runs_.end(QStringLiteral("failed"), QStringLiteral("the device was lost"));
        QTRY_COMPARE(stateOf(queue, 2), QueueState::Running);
        gpu.now.used = 1100 * kMiB;
        gpu.now.own = 200 * kMiB;
        runs_.end(QStringLiteral("failed"), QStringLiteral("the device was lost"));
        QTRY_VERIFY(queue.queue().paused());
        QCOMPARE(QString::fromStdString(queue.queue().pauseReason()),
                 ui::bytesText(100 * kMiB) + QStringLiteral(" of the H200 are still held by the runs of this program"));
        QCOMPARE(stateOf(queue, 3), QueueState::Waiting);
        queue.resume(); // somebody has looked
        QTRY_COMPARE(stateOf(queue, 3), QueueState::Running);
        gpu.now.own = 100 * kMiB;
        gpu.now.used = 1200 * kMiB;
        runs_.end(QStringLiteral("failed"), QStringLiteral("the device was lost"));
        QTRY_VERIFY(QString::fromStdString(queue.queue().pauseReason()).contains(QLatin1String("other programs")));
    }

    void endsWhatTheRuleEnds() {
        ui::SessionDocument document;
        ui::QueueRunner queue(&document, &runs_, nullptr);
        queue.addSweep(ranks());
        QTRY_COMPARE(stateOf(queue, 1), QueueState::Running);
        endWith(1.5);
        QTRY_COMPARE(stateOf(queue, 2), QueueState::Running);
        emit runs_.metric(QStringLiteral("eval_step"), 2);
        emit runs_.metric(QStringLiteral("eval_loss"), 1.55);
        QCOMPARE(runs_.stops, 0);
        emit runs_.metric(QStringLiteral("eval_step"), 4);
        emit runs_.metric(QStringLiteral("eval_loss"), 1.7);
        QCOMPARE(runs_.stops, 1);
        runs_.end(QStringLiteral("cancelled"), QStringLiteral("stopped"), QStringLiteral("{}"));
        QCOMPARE(stateOf(queue, 2), QueueState::EndedByRule);
        QVERIFY(!queue.queue().find(2)->reason.empty());
        QTRY_COMPARE(stateOf(queue, 3), QueueState::Running);
        runs_.end(QStringLiteral("cancelled"), QStringLiteral("stopped"), QStringLiteral("{}"));
        QCOMPARE(stateOf(queue, 3), QueueState::EndedByUser);
    }

    void waitsForARunThatSomebodyElseStarted() {
        ui::SessionDocument document;
        ui::QueueRunner queue(&document, &runs_, nullptr);
        runs_.busy = true;
        const std::int64_t number = queue.add(kTune);
        QTRY_VERIFY(queue.queue().find(number)->price.has_value());
        QTest::qWait(20);
        QCOMPARE(stateOf(queue, number), QueueState::Waiting);
        runs_.end(QStringLiteral("done"), {});
        QTRY_COMPARE(stateOf(queue, number), QueueState::Running);
        runs_.end(QStringLiteral("failed"), QStringLiteral("it broke"), QStringLiteral("{}"));
        QCOMPARE(stateOf(queue, number), QueueState::Failed);
        QCOMPARE(queue.queue().find(number)->reason, std::string("it broke"));
    }

    void holdsBackWhatDoesNotFitUntilItIsChanged() {
        ui::SessionDocument document;
        ui::QueueRunner queue(&document, &runs_, nullptr);
        nlohmann::json large = nlohmann::json::parse(kTune);
        large["vram_budget"] = 262144;
        const std::int64_t number = queue.add(large.dump());
        QTRY_COMPARE(stateOf(queue, number), QueueState::DoesNotFit);
        QVERIFY(!runs_.busy);
    }

    void bringsBackARunWhoseProcessWasLost() {
        ui::SessionDocument document;
        ui::QueueRunner queue(&document, &runs_, nullptr);
        QSignalSpy said(&queue, &ui::QueueRunner::said);
        queue.addSweep(ranks());
        QTRY_COMPARE(stateOf(queue, 1), QueueState::Running);
        const QString lost = QStringLiteral(R"({"error": {"kind": "device_fault", "message": "gone"}})");
        runs_.end(QStringLiteral("failed"), QStringLiteral("the worker process was killed"), lost);
        QTRY_COMPARE(stateOf(queue, 1), QueueState::Running);
        QCOMPARE(said.front().front().toString(),
                 QStringLiteral("The process of #1 was lost, so it has written no checkpoint and begins again"));
        runs_.end(QStringLiteral("failed"), QStringLiteral("the worker process was killed"), lost);
        QCOMPARE(stateOf(queue, 1), QueueState::Failed);
        QTRY_COMPARE(stateOf(queue, 2), QueueState::Running);
        runs_.end(QStringLiteral("done"), {});
        QTRY_COMPARE(stateOf(queue, 3), QueueState::Running);
        runs_.end(QStringLiteral("done"), {});
    }

    /// The program was killed before the run's first checkpoint: the run's own files are in the folder.
    void beginsAnInterruptedRunAgainOverWhatItLeft() {
        const std::string path = folder_.file("killed.vitrine");
        nlohmann::json spec = nlohmann::json::parse(kTune);
        spec["output"] = folder_.file("out");
        {
            engine::RunQueue left;
            engine::QueuedRun run;
            run.spec = spec.dump();
            left.add(std::move(run));
            left.start(1, 1);
            const auto file = sessions::SessionFile::open(path, sessions::OpenMode::CreateOrOpen);
            sessions::RunInfo record;
            record.specJson = spec.dump(2);
            const sessions::RunId id = file->createRun(record);
            file->finishRun(id, sessions::RunStatus::Interrupted, "{}", "");
            file->putSessionText("queue", left.toJson().dump());
        }
        ui::SessionDocument document;
        ui::QueueRunner queue(&document, &runs_, nullptr);
        document.open(QString::fromStdString(path));
        QTRY_COMPARE(queue.queue().runs().size(), 1U);
        queue.goOnWith(1, true);
        QTRY_COMPARE(stateOf(queue, 1), QueueState::Running);
        QCOMPARE(runs_.asked.value("overwrite", false), true);
        runs_.end(QStringLiteral("done"), {});
    }

    void keepsTheQueueAndStartsNothingWhenItComesBack() {
        const std::string path = folder_.file("queue.vitrine");
        sessions::SessionFile::open(path, sessions::OpenMode::CreateOrOpen);
        const auto opened = [&](ui::SessionDocument& document) {
            QSignalSpy spy(&document, &ui::SessionDocument::opened);
            document.open(QString::fromStdString(path));
            return spy.wait();
        };
        {
            ui::SessionDocument document;
            ui::QueueRunner queue(&document, &runs_, nullptr);
            QVERIFY(opened(document));
            QTest::qWait(50);
            queue.addSweep(ranks());
            QTRY_COMPARE(stateOf(queue, 1), QueueState::Running);
            QTest::qWait(50);
        }
        runs_.busy = false; // the program ended
        ui::SessionDocument document;
        ui::QueueRunner queue(&document, &runs_, nullptr);
        QVERIFY(opened(document));
        QTRY_COMPARE(queue.queue().runs().size(), 3U);
        QCOMPARE(stateOf(queue, 1), QueueState::Paused);
        QVERIFY(queue.queue().find(1)->interrupted);
        QTest::qWait(50);
        QVERIFY(!runs_.busy);
        queue.resume();
        QTRY_COMPARE(stateOf(queue, 2), QueueState::Running);
        QSignalSpy said(&queue, &ui::QueueRunner::said);
        queue.goOnWith(1, false); // its runs have no output
        QTRY_COMPARE(stateOf(queue, 1), QueueState::Waiting);
        QCOMPARE(said.front().front().toString(), QStringLiteral("#1 has written no checkpoint and begins again"));
        runs_.end(QStringLiteral("done"), {});
        QTRY_COMPARE(stateOf(queue, 1), QueueState::Running);
        runs_.end(QStringLiteral("done"), {});
    }
};

QTEST_GUILESS_MAIN(QueueRunnerTest)
#include "queue_runner_test.moc"
