// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The steps of a run of reinforcement learning, from its counters and from its results.
#include "ui/models/rl/rl_run.h"

#include <QTest>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/ui/models/rl/rl_script.h"
#include "ui/models/batching/batch_runs.h"

using namespace vitrine;
using test::RlScript;

namespace {

ui::RlRunPtr runOf(const RlScript& script) {
    return ui::RlRun::make(script.info(), *script.timeline());
}

} // namespace

class RlRunTest final : public QObject {
    Q_OBJECT

private slots:
    void nothingWasRecorded() {
        const ui::RlRunPtr run = runOf({});
        QVERIFY(run->empty());
        QCOMPARE(run->lastStep(), 0);
        QVERIFY(!run->stepAt(500, ui::RlAxis::Time));
        QVERIFY(run->evaluationAt(5) == nullptr);
        QCOMPARE(run->end(ui::RlAxis::Tokens), 0);
    }

    void stepsHaveTheirOwnNumbers() {
        const RlScript script{.steps = 12, .total = 40, .evalEvery = 4};
        const ui::RlRunPtr run = runOf(script);
        QCOMPARE(run->size(), std::size_t(12));
        QCOMPARE(run->totalSteps().value(), 40);
        for (int step = 1; step <= 12; ++step) {
            const std::size_t index = run->indexOf(step).value();
            QCOMPARE(run->step(index).reward, script.reward(step));
            QCOMPARE(run->step(index).answerTokens, 50.0 + step);
            QCOMPARE(run->times(index).begin, test::ns(script.beginOf(step)));
            QCOMPARE(run->times(index).end, test::ns(script.beginOf(step) + RlScript::kStep - 0.5));
        }
        QVERIFY(!run->indexOf(0));
        QVERIFY(!run->indexOf(13));
        QCOMPARE(run->demand().answers(), 32);
    }

    /// A number that a step does not have leaves the next step's alone.
    void missingNumbersAreUnknown() {
        test::RecordedRun recorded;
        recorded.counter("rewards", 1.0, 0.25);
        recorded.counter("step_seconds", 1.0, 0.5);
        recorded.counter("step_seconds", 2.0, 0.5);
        recorded.counter("rewards", 3.0, 0.75);
        recorded.counter("step_seconds", 3.0, 0.5);
        recorded.counter("rewards", 3.9, 0.9); // of a step whose end is not known yet
        const ui::RlRunPtr run = ui::RlRun::make(RlScript{}.info(), *recorded.timeline());
        QCOMPARE(run->size(), std::size_t(3));
        QCOMPARE(run->step(0).reward, 0.25);
        QVERIFY(std::isnan(run->step(1).reward));
        QCOMPARE(run->step(2).reward, 0.75);
    }

    void aRunThatWentOn() {
        const ui::RlRunPtr run = runOf({.steps = 3, .first = 21});
        QCOMPARE(run->firstStep(), 21);
        QCOMPARE(run->lastStep(), 23);
        QCOMPARE(run->place(0, ui::RlAxis::Steps), 21 * ui::kStepLength);
    }

    void evaluations() {
        const RlScript script{.steps = 12, .evalEvery = 4};
        const ui::RlRunPtr run = runOf(script);
        QCOMPARE(run->evaluations().size(), std::size_t(3));
        QVERIFY(run->evaluationAt(3) == nullptr);
        QCOMPARE(run->evaluationAt(7)->step, 4);
        QCOMPARE(run->evaluationAt(8)->step, 8);
        QCOMPARE(run->bestEvaluation()->step, 12);
    }

    void placesOnEachAxis() {
        const ui::RlRunPtr run = runOf({.steps = 5});
        QCOMPARE(run->place(1, ui::RlAxis::Steps), 2 * ui::kStepLength);
        QCOMPARE(run->place(1, ui::RlAxis::Time), test::ns(2 * RlScript::kStep - 0.5));
        QCOMPARE(run->place(1, ui::RlAxis::Tokens), 2 * 600 * ui::kSampledTokenLength);
        for (const auto axis : {ui::RlAxis::Steps, ui::RlAxis::Time, ui::RlAxis::Tokens}) {
            for (std::size_t i = 0; i < run->size(); ++i) {
                QCOMPARE(run->stepAt(run->place(i, axis), axis).value(), i);
                QCOMPARE(run->stepAt(run->place(i, axis) + 100, axis).value(), i);
            }
            QCOMPARE(run->stepAt(0, axis).value(), std::size_t(0));
            QCOMPARE(run->stepAt(run->end(axis) * 2, axis).value(), run->size() - 1);
        }
    }

    /// Without the profile there are the lists of the results.
    void fromResults() {
        const RlScript script{.steps = 3};
        std::vector<engine::RlStep> steps;
        for (int step = 1; step <= 3; ++step) {
            steps.push_back(script.numbers(step));
        }
        steps[1].reward = std::nan("");
        nlohmann::json metrics;
        engine::addRlResults(metrics, steps);
        metrics["eval_rewards"] = {0.1, 0.4};
        metrics["eval_reward_steps"] = {0, 2};
        const ui::RlRunPtr run = ui::RlRun::make(script.info(1, metrics.dump()), *test::RecordedRun().timeline());
        QVERIFY(!run->recorded());
        QCOMPARE(run->size(), std::size_t(3));
        QCOMPARE(run->step(0).reward, script.reward(1));
        QVERIFY(std::isnan(run->step(1).reward));
        QCOMPARE(run->step(2).rolloutSeconds, RlScript::kRollout);
        QCOMPARE(run->times(2).begin, test::ns(2 * 9.5));
        QCOMPARE(run->evaluationAt(2)->reward, 0.4);
        QCOMPARE(run->totalSteps().value(), 3);
    }

    void resultsThatAreNone() {
        for (const char* metrics :
             {"", "[]", "{\"rewards\": 3}", "{\"phase_seconds\": []}", "{\"rewards\": [\"x\"]}"}) {
            const ui::RlRunPtr run = ui::RlRun::make(RlScript{}.info(1, metrics), *test::RecordedRun().timeline());
            QVERIFY(run->size() <= 1);
        }
    }

    /// The Batching view shows rollouts, but nobody asked for them: there is no trace of requests.
    void rolloutsReplyToNoTrace() {
        QVERIFY(ui::isBatchRun(RlScript{}.info()));
        QVERIFY(!ui::repliesToTrace(RlScript{}.info()));
        QVERIFY(ui::repliesToTrace(test::runInfo(1, "batch", "{}")));
        QVERIFY(!ui::repliesToTrace(test::runInfo(1, "generate", "{}")));
    }

    /// Answers that were given have no step_seconds: each update is a step.
    void givenAnswers() {
        test::RecordedRun recorded;
        for (int step = 1; step <= 2; ++step) {
            recorded.record(base::TrainingStepEvent{test::ns(step), test::ns(step + 0.5), step, 10, 0.5, 1e-4, 1});
            recorded.counter("kl", step + 0.6, 0.1 * step);
        }
        sessions::RunInfo info = RlScript{}.info();
        info.specJson = R"({"vitrine": 1, "workload": "rl", "model": "m", "rollouts": "a.safetensors"})";
        const ui::RlRunPtr run = ui::RlRun::make(info, *recorded.timeline());
        QCOMPARE(run->size(), std::size_t(2));
        QCOMPARE(run->step(0).kl, 0.1);
        QCOMPARE(run->step(1).kl, 0.2);
        QCOMPARE(run->step(1).seconds, 0.5);
        QVERIFY(std::isnan(run->step(0).reward));
        QCOMPARE(run->demand().answers(), 0);
    }
};

QTEST_GUILESS_MAIN(RlRunTest)
#include "rl_run_test.moc"
