// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_run.h"

#include <QTest>

#include "tests/ui/models/finetune/training_script.h"
#include "ui/models/finetune/training_columns.h"

using namespace vitrine;
using test::TrainingScript;

namespace {

ui::TrainingRunPtr runOf(const TrainingScript& script, double smoothing = 0.9, const std::string& options = {}) {
    return ui::TrainingRun::make(script.info(1, options), *script.timeline(), smoothing);
}

base::TimeNs place(int step) {
    return step * ui::kStepLength;
}

} // namespace

class TrainingRunTest final : public QObject {
    Q_OBJECT

private slots:
    void withoutSteps() {
        const auto run = runOf({.steps = 0, .total = 50});
        QVERIFY(run->empty());
        QCOMPARE(*run->totalSteps(), std::int64_t(50));
        QVERIFY(!run->rest());
        QVERIFY(!run->notFinite());
        QVERIFY(!run->stepAt(0));
        QVERIFY(!run->timesOf(0, place(9)));
        QCOMPARE(*run->trainedParameters(), std::uint64_t(1000));
        const TrainingScript script{.steps = 0, .total = 50};
        const auto stack =
            ui::TrainingColumns().stack(*run, *script.timeline(), ui::AxisMap::ofTime({0, place(5)}, 100), 100);
        QCOMPARE(stack->columns.size(), std::size_t(100));
        QVERIFY(!stack->columns[50].present);
    }

    void twoSteps() {
        const TrainingScript script{.steps = 2};
        const auto run = runOf(script, 0.9);
        QCOMPARE(run->firstStep(), std::int64_t(1));
        QCOMPARE(run->lastStep(), std::int64_t(2));
        QCOMPARE(run->loss().value(1), script.loss(2));
        // The first smoothed value is the first loss: nothing draws it to 0.
        QVERIFY(std::abs(run->smoothed().value(0) - script.loss(1)) < 1e-12);
        const double second = (0.1 * script.loss(2) + 0.09 * script.loss(1)) / 0.19;
        QVERIFY(std::abs(run->smoothed().value(1) - second) < 1e-12);
        QVERIFY(std::abs(run->speed().value(0) - 100 / 0.09) < 1e-3);
        QVERIFY(!run->rest());
        QCOMPARE(run->tokens(), std::int64_t(200));
    }

    void evaluationsAndCheckpoints() {
        const TrainingScript script{.steps = 60, .evalEvery = 20, .saveEvery = 10, .keep = 3};
        const auto run = runOf(script, 0.9, R"(, "clip_norm": 1)");
        QCOMPARE(run->evaluations().size(), std::size_t(3));
        QCOMPARE(run->evaluations().value(0), script.loss(20) + 0.1);
        const auto& saved = run->checkpoints();
        QCOMPARE(saved.size(), std::size_t(6));
        QVERIFY(!saved[2].kept && saved[3].kept);
        QVERIFY(saved[5].newest && saved[5].best && !saved[4].newest);
        QVERIFY(!saved[0].evalLoss); // before the first evaluation
        QCOMPARE(*saved[4].evalLoss, script.loss(40) + 0.1);
        QCOMPARE(*run->clipNorm(), 1.0);
        QCOMPARE(run->clippedSteps(), std::int64_t(1));
    }

    void forecast() {
        QVERIFY(!runOf({.steps = 19, .total = 100})->rest());
        const auto rest = runOf({.steps = 60, .total = 100, .evalEvery = 20})->rest();
        QVERIFY(rest);
        QCOMPARE(rest->steps, std::int64_t(40));
        QCOMPARE(rest->evaluations, std::int64_t(2));
        QVERIFY(std::abs(rest->stepSeconds - 0.09) < 1e-6);
        QVERIFY(std::abs(rest->seconds - (40 * 0.09 + 2 * 0.005)) < 1e-6);
        QVERIFY(!runOf({.steps = 60})->rest()); // all are done
    }

    void resumed() {
        const auto run = runOf({.steps = 10, .total = 210, .first = 201});
        QCOMPARE(*run->resumedFrom(), std::int64_t(200));
        QCOMPARE(run->firstStep(), std::int64_t(201));
        QCOMPARE(*run->stepAt(place(203)), std::size_t(2));
    }

    void changedCodes() {
        const auto run = runOf({.steps = 3, .first = 11, .codes = 0.5});
        QCOMPARE(run->codesChanged().size(), std::size_t(3));
        QCOMPARE(run->codesChanged().place(0), place(11));
        QCOMPARE(*run->codesChanged(1), 0.25);
        QVERIFY(runOf({.steps = 3})->codesChanged().empty());
        QVERIFY(!runOf({.steps = 3})->codesChanged(1));
    }

    /// The newest step of a run that goes on is recorded before its codes are counted.
    void codesThatAreNotCountedYet() {
        const TrainingScript script{.steps = 2, .codes = 0.5};
        test::RecordedRun recorded;
        script.record(recorded);
        TrainingScript{.steps = 3}.recordStep(recorded, 3);
        const auto run = ui::TrainingRun::make(script.info(), *recorded.timeline(), 0);
        QCOMPARE(run->steps().size(), std::size_t(3));
        QVERIFY(run->codesChanged(1) && !run->codesChanged(2));
    }

    void stepsOfTheResultsWhereNoneWereRecorded() {
        const char* results = R"({"steps": 12, "tokens": 300, "trained_parameters": 77, "losses": [3, 2, null],
            "learning_rates": [0.1, 0.2, 0.3], "grad_norms": [1, 2, 3], "step_seconds": [0.5, 0.25, 0.25],
            "codes_changed": [0.03, 0.02, 0.01],
            "eval_steps": [11], "eval_losses": [2.5]})";
        const sessions::RunInfo info =
            test::runInfo(1, "finetune", results, R"({"vitrine": 1, "workload": "finetune", "model": "m/tiny"})");
        const auto run = ui::TrainingRun::make(info, *test::RecordedRun().timeline(), 0);
        QCOMPARE(run->firstStep(), 10); // it went on after step 9
        QCOMPARE(run->lastStep(), 12);
        QCOMPARE(run->elapsedSeconds(), 1.0);
        QCOMPARE(run->speed().value(0), 200.0);
        QCOMPARE(run->rate().value(1), 0.2);
        QCOMPARE(*run->codesChanged(2), 0.01);
        QCOMPARE(run->evaluations().size(), std::size_t(1));
        QCOMPARE(*run->trainedParameters(), std::uint64_t(77));
        QVERIFY(run->notFinite());
    }

    void whatIsNoNumber() {
        const TrainingScript script{.steps = 5, .endsInNan = true};
        const auto run = runOf(script);
        QVERIFY(run->notFinite());
        QVERIFY(std::isnan(run->loss().value(4)));
        QVERIFY(std::isfinite(run->smoothed().value(3)));
        QCOMPARE(run->loss().span()->first, script.loss(4));
    }

    void memoryOfEachStep() {
        const TrainingScript script{.steps = 4, .memory = true};
        const auto timeline = script.timeline();
        const auto run = ui::TrainingRun::make(script.info(), *timeline, 0);
        const auto times = run->timesOf(place(2), place(2) + 1);
        QVERIFY(times);
        QCOMPARE(times->begin, test::ns(script.beginOf(2)));
        QCOMPARE(*run->placeOf(times->begin + 1), place(2));
        // 40 columns a step: step 2 is shown from 1.5 to 2.5.
        const auto stack = ui::TrainingColumns().stack(*run, *timeline, ui::AxisMap::ofTime({0, place(5)}, 200), 200);
        const auto gradients = static_cast<std::size_t>(base::MemoryCategory::Gradients);
        QCOMPARE(stack->value(40, gradients), std::uint64_t(4096));
        QCOMPARE(stack->value(80, gradients), std::uint64_t(8192));
        QCOMPARE(stack->columns[80].total, std::uint64_t((1 << 20) + 8192));
        QVERIFY(!stack->columns[5].present && !stack->columns[195].present);
        // Two columns for all of them: each shows its highest step.
        const auto coarse = ui::TrainingColumns().stack(*run, *timeline, ui::AxisMap::ofTime({0, place(5)}, 2), 2);
        QCOMPARE(coarse->value(0, gradients), std::uint64_t(8192));
    }

    void hundredThousandSteps() {
        const auto run = runOf({.steps = 100'000, .evalEvery = 1000});
        QCOMPARE(run->steps().size(), std::size_t(100'000));
        const auto axis = ui::AxisMap::ofTime({0, place(100'000)}, 960);
        QVERIFY(run->loss().samples(axis, 960).size() <= 962);
        QCOMPARE(run->evaluations().size(), std::size_t(100));
    }
};

QTEST_GUILESS_MAIN(TrainingRunTest)
#include "training_run_test.moc"
