// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/sweep/run_queue.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "engine/workload/sweep/sweep_table.h"

namespace vitrine::engine {
namespace {

using enum QueueState;

constexpr std::int64_t kNow = 1'000'000;

QueuedRun named(const std::string& name) {
    QueuedRun run;
    run.name = name;
    run.spec = R"({"vitrine":1,"workload":"finetune"})";
    return run;
}

QueuePrice priceOf(double seconds, bool fits = true) {
    QueuePrice price;
    price.fits = fits;
    price.seconds = seconds;
    return price;
}

RunQueue queueOf(int runs) {
    RunQueue queue;
    for (int i = 0; i < runs; ++i) {
        queue.add(named("run"));
    }
    return queue;
}

void startAndEnd(RunQueue& queue, QueueState state) {
    const std::int64_t number = queue.next().value();
    ASSERT_TRUE(queue.start(number, kNow));
    ASSERT_TRUE(queue.end(number, state, "", kNow + 1));
}

std::vector<std::int64_t> order(const RunQueue& queue) {
    std::vector<std::int64_t> out;
    for (const QueuedRun& run : queue.runs()) {
        out.push_back(run.number);
    }
    return out;
}

/// Brings run 1 of a fresh queue into a state.
RunQueue inState(QueueState state) {
    RunQueue queue = queueOf(2);
    switch (state) {
    case Waiting:
        break;
    case DoesNotFit:
        queue.setPrice(1, priceOf(1, false));
        break;
    case Paused:
        queue.hold(1);
        break;
    case Running:
        queue.start(1, kNow);
        break;
    default:
        queue.start(1, kNow);
        queue.end(1, state, "", kNow);
    }
    EXPECT_EQ(queue.find(1)->state, state);
    return queue;
}

TEST(RunQueue, GoesFromEachStateOnlyWhereItMay) {
    for (int from = 0; from < kQueueStates; ++from) {
        const auto before = static_cast<QueueState>(from);
        const auto reached = [&](const auto& act) {
            RunQueue queue = inState(before);
            const bool did = act(queue);
            const QueueState after = queue.find(1)->state;
            EXPECT_TRUE(after == before || canBecome(before, after)) << from;
            EXPECT_TRUE(did || after == before) << "what is refused changes nothing";
            return after;
        };
        EXPECT_EQ(reached([](RunQueue& q) { return q.start(1, kNow); }), before == Waiting ? Running : before);
        EXPECT_EQ(reached([](RunQueue& q) { return q.hold(1); }),
                  before == Waiting || before == DoesNotFit ? Paused : before);
        EXPECT_EQ(reached([](RunQueue& q) { return q.release(1); }), before == Paused ? Waiting : before);
        EXPECT_EQ(reached([](RunQueue& q) { return q.setPrice(1, priceOf(1, false)); }),
                  before == Waiting ? DoesNotFit : before);
        EXPECT_EQ(reached([](RunQueue& q) { return q.setPrice(1, priceOf(1, true)); }),
                  before == DoesNotFit ? Waiting : before);
        for (const QueueState end : {Finished, EndedByRule, Failed, EndedByUser}) {
            const bool may = before == Running || (before == Paused && end == EndedByUser);
            EXPECT_EQ(reached([&](RunQueue& q) { return q.end(1, end, "", kNow); }), may ? end : before);
        }
        for (const QueueState notAnEnd : {Waiting, Running, DoesNotFit, Paused}) {
            EXPECT_EQ(reached([&](RunQueue& q) { return q.end(1, notAnEnd, "", kNow); }), before);
        }
        EXPECT_EQ(reached([](RunQueue& q) { return q.recover(), true; }), before == Running ? Paused : before);
    }
}

TEST(RunQueue, NeverRunsTwoAtOnceWhateverIsAsked) {
    std::mt19937 random(7); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same every time
    RunQueue queue = queueOf(6);
    for (int i = 0; i < 5000; ++i) {
        const std::int64_t number = 1 + random() % 8;
        switch (random() % 9) {
        case 0:
            queue.start(number, kNow);
            break;
        case 1:
            queue.end(number, static_cast<QueueState>(random() % kQueueStates), "", kNow);
            break;
        case 2:
            queue.hold(number);
            break;
        case 3:
            queue.release(number);
            break;
        case 4:
            queue.setPrice(number, priceOf(1, random() % 2 == 0));
            break;
        case 5:
            queue.move(number, random() % 8);
            break;
        case 6:
            queue.edit(number, "{}");
            break;
        case 7:
            queue.add(named("more"));
            break;
        default:
            queue.recover();
            queue.resume();
        }
        ASSERT_LE(std::ranges::count(queue.runs(), Running, &QueuedRun::state), 1);
        const auto next = queue.next();
        ASSERT_TRUE(!next || queue.find(*next)->state == Waiting);
    }
}

TEST(RunQueue, HoldsBackWhatDoesNotFitAndGoesOn) {
    RunQueue queue = queueOf(2);
    queue.setPrice(1, priceOf(10, false));
    EXPECT_EQ(queue.next(), 2);
    queue.edit(1, "{}");
    EXPECT_EQ(queue.next(), 1) << "with other settings it is back at its place";
}

TEST(RunQueue, GivesARunThatCannotBePlannedItsTurn) {
    RunQueue queue = queueOf(1);
    QueuePrice price = priceOf(0, false);
    price.error = "this workload has no plan";
    queue.setPrice(1, price);
    EXPECT_EQ(queue.next(), 1);
}

TEST(RunQueue, GoesOnAfterAFailureOnlyWhereAsked) {
    RunQueue queue = queueOf(2);
    startAndEnd(queue, Failed);
    EXPECT_EQ(queue.next(), 2);
    RunQueue careful = queueOf(2);
    careful.setGoOnAfterFailure(false);
    startAndEnd(careful, Failed);
    EXPECT_TRUE(careful.paused());
    EXPECT_FALSE(careful.next());
    careful.resume();
    EXPECT_EQ(careful.next(), 2);
}

TEST(RunQueue, PausesAfterThreeFailuresInARow) {
    RunQueue queue = queueOf(8);
    startAndEnd(queue, Failed);
    startAndEnd(queue, Failed);
    startAndEnd(queue, Finished);
    startAndEnd(queue, Failed);
    startAndEnd(queue, Failed);
    EXPECT_FALSE(queue.paused()) << "one that finished lies between them";
    startAndEnd(queue, Failed);
    EXPECT_TRUE(queue.paused());
}

TEST(RunQueue, PausesAfterTheRunningOne) {
    RunQueue queue = queueOf(2);
    queue.start(1, kNow);
    queue.pauseAfterRun(true);
    EXPECT_FALSE(queue.paused());
    queue.end(1, Finished, "", kNow);
    EXPECT_TRUE(queue.paused());
    queue.resume();
    queue.pauseAfterRun(true);
    EXPECT_TRUE(queue.paused()) << "nothing runs: at once";
}

TEST(RunQueue, OffersTheInterruptedRunAndStartsNothing) {
    RunQueue queue = queueOf(2);
    queue.start(1, kNow);
    queue.find(1)->step = 268;
    RunQueue again = RunQueue::read(queue.toJson().dump()).value();
    again.recover();
    EXPECT_EQ(again.find(1)->state, Paused);
    EXPECT_TRUE(again.find(1)->interrupted);
    EXPECT_EQ(again.find(1)->step, 268);
    EXPECT_FALSE(again.next());
    again.resume();
    EXPECT_EQ(again.next(), 2) << "the rest goes on without it";
    again.release(1);
    EXPECT_EQ(again.next(), 1);
}

TEST(RunQueue, MovesOnlyWhatHasNotBegun) {
    RunQueue queue = queueOf(4);
    queue.start(1, kNow);
    EXPECT_FALSE(queue.move(1, 0));
    EXPECT_TRUE(queue.move(4, 0));
    EXPECT_EQ(order(queue), (std::vector<std::int64_t>{1, 4, 2, 3}));
    EXPECT_TRUE(queue.move(4, 99));
    EXPECT_EQ(order(queue), (std::vector<std::int64_t>{1, 2, 3, 4}));
    EXPECT_FALSE(queue.remove(1));
    EXPECT_TRUE(queue.remove(3));
}

TEST(RunQueue, ItsClockIsTheSumOfPlannedTimesAfterEveryMove) {
    RunQueue queue = queueOf(4);
    for (std::int64_t i = 1; i <= 4; ++i) {
        queue.setPrice(i, priceOf(100.0 * static_cast<double>(i)));
    }
    queue.start(1, kNow);
    queue.move(4, 0);
    const std::vector<QueueTime> times = queue.clock(kNow + 30'000);
    ASSERT_EQ(times.size(), 4U);
    EXPECT_EQ(times[0].endMs, kNow + 100'000);
    EXPECT_EQ(times[1].number, 4);
    EXPECT_EQ(times[1].endMs, kNow + 500'000);
    EXPECT_EQ(times[3].endMs, kNow + 1'000'000);
    queue.setPrice(2, priceOf(0));
    EXPECT_TRUE(queue.clock(kNow)[1].known);
    EXPECT_FALSE(queue.clock(kNow)[2].known) << "no planned time";
    EXPECT_FALSE(queue.clock(kNow)[3].known) << "it begins after one without";
}

SweepPlan ratePlan() {
    SweepPlan plan;
    plan.name = "rates";
    plan.base = R"({"vitrine": 1, "workload": "finetune", "model": "synthetic:tiny-gpt-oss", "prompt_length": 64})";
    plan.options = {{"lr", {"1e-4", "2e-4", "4e-4"}}};
    plan.rule = StopRule{0.1, 150};
    return plan;
}

TEST(StopRule, EndsARunThatIsAboveTheBestAtTheSameStepAndNotBefore) {
    RunQueue queue;
    queue.addSweep(ratePlan());
    queue.find(1)->evaluations = {{100, 1.5}, {150, 1.25}, {200, 1.0}};
    const auto verdict = [&](std::vector<QueueEvaluation> evaluations) {
        queue.find(2)->evaluations = std::move(evaluations);
        return queue.verdict(2);
    };
    EXPECT_FALSE(verdict({{100, 9.0}})->ends) << "before the first step of the rule";
    EXPECT_FALSE(verdict({{150, 1.25 + 0.09375}})->ends);
    EXPECT_FALSE(verdict({{150, 1.349}})->ends);
    EXPECT_TRUE(verdict({{150, 1.36}})->ends);
    EXPECT_FALSE(verdict({{175, 9.0}})) << "no other run was evaluated there";
    EXPECT_EQ(verdict({{200, 1.36}})->bestNumber, 1);
    queue.find(3)->evaluations = {{200, 1.3}};
    EXPECT_NEAR(verdict({{200, 1.36}})->behind, 0.36, 1e-12);
    queue.setRule("rates", std::nullopt);
    EXPECT_FALSE(verdict({{200, 9.0}})->ends);
}

SweepPlan rewardPlan() {
    SweepPlan plan = ratePlan();
    plan.base = R"({"vitrine": 1, "workload": "rl", "model": "synthetic:tiny-gpt-oss", "prompt_length": 64})";
    return plan;
}

TEST(StopRule, EndsARunWhoseRewardIsBelowTheBest) {
    RunQueue queue;
    queue.addSweep(rewardPlan());
    queue.find(1)->evaluations = {{150, 0.5}, {200, 0.5}};
    queue.find(3)->evaluations = {{200, 0.75}};
    queue.find(2)->evaluations = {{150, 0.45}};
    EXPECT_FALSE(queue.verdict(2)->ends);
    queue.find(2)->evaluations = {{150, 0.9}};
    EXPECT_FALSE(queue.verdict(2)->ends) << "a higher reward is better";
    queue.find(2)->evaluations = {{200, 0.6}};
    EXPECT_TRUE(queue.verdict(2)->ends);
    EXPECT_EQ(queue.verdict(2)->bestNumber, 3);
    EXPECT_NEAR(queue.verdict(2)->behind, 0.15, 1e-12);
}

TEST(RunQueue, GivesASecondSweepOfOneNameAnother) {
    RunQueue queue;
    EXPECT_EQ(queue.addSweep(ratePlan()), "rates");
    EXPECT_EQ(queue.addSweep(ratePlan()), "rates 2");
    EXPECT_EQ(queue.runsOf("rates").size(), 3U);
    EXPECT_EQ(queue.runsOf("rates 2").front()->number, 4);
}

TEST(RunQueue, ComesBackFromItsJson) {
    RunQueue queue;
    queue.addSweep(ratePlan());
    queue.setPrice(2, priceOf(30, false));
    queue.start(1, kNow);
    queue.find(1)->evaluations = {{5, 1.5}};
    queue.find(1)->value = 1.25;
    const RunQueue again = RunQueue::read(queue.toJson().dump()).value();
    EXPECT_EQ(again.runs(), queue.runs());
    EXPECT_EQ(again.sweeps().size(), 1U);
    EXPECT_FALSE(RunQueue::read("{}"));
    EXPECT_FALSE(RunQueue::read("nonsense"));
    EXPECT_FALSE(RunQueue::read(R"({"queue": 1})"));
}

TEST(SweepTable, ComparesAtTheSameStepAndGivesWaitingRunsNoValue) {
    RunQueue queue;
    queue.addSweep(ratePlan());
    queue.start(1, kNow);
    queue.find(1)->evaluations = {{100, 1.6}, {200, 1.5}};
    queue.end(1, EndedByRule, "", kNow);
    queue.start(2, kNow);
    queue.find(2)->evaluations = {{100, 1.5}, {200, 1.4}, {400, 1.25}};
    queue.find(2)->step = 400;
    queue.end(2, Finished, "", kNow);
    const SweepTable table = sweepTable(queue, "rates");
    ASSERT_EQ(table.rows.size(), 3U);
    EXPECT_EQ(table.rows[0].number, 2);
    EXPECT_TRUE(table.rows[0].best);
    EXPECT_NEAR(table.rows[1].behindBest.value(), 0.1, 1e-12) << "against 1.4, which is the other run's at step 200";
    EXPECT_FALSE(table.rows[2].value);
    EXPECT_FALSE(table.rows[2].behindBest);
    EXPECT_EQ(table.done, 2U);
    EXPECT_EQ(sweepSentence(queue, "rates"), "lr 2e-4 is best so far: evaluation loss 1.250 after 400 steps.");
}

TEST(SweepTable, TheHighestRewardIsTheBest) {
    RunQueue queue;
    queue.addSweep(rewardPlan());
    for (const auto& [number, reward] : {std::pair{1, 0.25}, {2, 0.75}, {3, 0.5}}) {
        queue.start(number, kNow);
        queue.find(number)->evaluations = {{20, reward}};
        queue.find(number)->step = 20;
        queue.end(number, Finished, "", kNow);
    }
    const SweepTable table = sweepTable(queue, "rates");
    EXPECT_EQ(table.rows[0].number, 2);
    EXPECT_EQ(table.rows[2].number, 1);
    EXPECT_NEAR(table.rows[1].behindBest.value(), 0.25, 1e-12);
    EXPECT_EQ(sweepSentence(queue, "rates"),
              "lr 2e-4 is best: evaluation reward 0.750 after 20 steps, 0.250 above the next.");
}

TEST(SweepTable, UsesTheLastLossWhereNothingIsEvaluated) {
    RunQueue queue;
    queue.addSweep(ratePlan());
    for (const auto& [number, loss] : {std::pair{1, 2.0}, {2, 1.5}, {3, 1.75}}) {
        queue.start(number, kNow);
        queue.find(number)->value = loss;
        queue.find(number)->step = 20;
        queue.end(number, Finished, "", kNow);
    }
    EXPECT_EQ(sweepSentence(queue, "rates"), "lr 2e-4 is best: loss 1.500 after 20 steps, 0.250 below the next.");
    EXPECT_NEAR(sweepTable(queue, "rates").rows.back().behindBest.value(), 0.5, 1e-12);
}

TEST(RunQueue, BringsBackOnlyWhatWasLost) {
    RunQueue queue = queueOf(2);
    for (const std::int64_t number : {1, 2}) {
        queue.start(number, kNow);
        queue.end(number, QueueState::Failed, "it failed", kNow);
    }
    queue.find(1)->lost = true;
    auto again = RunQueue::read(queue.toJson().dump());
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(again->bringBack(1));
    EXPECT_FALSE(again->bringBack(2)) << "it would fail again";
    EXPECT_EQ(again->find(1)->state, QueueState::Paused);
    EXPECT_TRUE(again->find(1)->interrupted);
    EXPECT_FALSE(again->find(1)->lost);
    EXPECT_EQ(again->find(1)->reason, "");
    EXPECT_TRUE(again->release(1));
}

} // namespace
} // namespace vitrine::engine
