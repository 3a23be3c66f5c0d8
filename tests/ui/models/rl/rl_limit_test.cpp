// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What limits a step, what would change it, and the phases and memory that this is made of.
#include "ui/models/rl/rl_limit.h"

#include <QTest>
#include <algorithm>

#include "tests/ui/models/rl/rl_script.h"

using namespace vitrine;
using test::RlScript;

class RlLimitTest final : public QObject {
    Q_OBJECT

private slots:
    void phasesFollowEachOther() {
        const RlScript script{.steps = 3, .memory = true};
        const auto timeline = script.timeline();
        const ui::RlRunPtr run = ui::RlRun::make(script.info(), *timeline);
        const ui::RlStepMemoryPtr step = ui::rlStepMemory(timeline, *run, 1);
        QCOMPARE(step->step, 2);
        QCOMPARE(step->phases.size(), std::size_t(3));
        QCOMPARE(step->phases[0].kind, ui::RlPhaseKind::Rollout);
        QCOMPARE(step->phases[1].kind, ui::RlPhaseKind::LogProbs);
        QCOMPARE(step->phases[1].range.length(), test::ns(RlScript::kScoring));
        QCOMPARE(step->phases[2].kind, ui::RlPhaseKind::Update);
        QCOMPARE(step->phases[2].range.end, step->range.end);
        // Pages are there in the rollout and nowhere else.
        QCOMPARE(step->pool.size(), std::size_t(1));
        QCOMPARE(step->pool[0].bytes, std::uint64_t(3 << 20));
        QCOMPARE(step->peak.maxTotal, std::uint64_t(4 << 20));
        QCOMPARE(step->peakPhase, std::size_t(0));
        QCOMPARE(step->otherPeakPhase.value(), std::size_t(2));
        QCOMPARE(step->largest[static_cast<std::size_t>(base::MemoryCategory::Gradients)], std::uint64_t(1 << 20));
        QCOMPARE(step->budget.value(), std::uint64_t(1 << 23));
        QVERIFY(ui::rlStepMemory(timeline, *run, 7) == nullptr);
    }

    /// The numbers of a step come a little late, or after an evaluation, and so does what they say of its begin.
    void aRolloutThatBeganBeforeIsOfTheStep() {
        for (const double late : {0.02, 0.4}) {
            const RlScript script{.steps = 3, .memory = true, .late = late};
            const auto timeline = script.timeline();
            const ui::RlRunPtr run = ui::RlRun::make(script.info(), *timeline);
            const ui::RlStepMemoryPtr step = ui::rlStepMemory(timeline, *run, 1);
            QCOMPARE(step->phases.size(), std::size_t(3));
            QCOMPARE(step->phases[step->peakPhase].kind, ui::RlPhaseKind::Rollout);
            QCOMPARE(step->range.begin, test::ns(script.beginOf(2) - script.late));
        }
    }

    /// Weights of both roles are layers of their own, the trainer's below.
    void copiesForRolloutsAreALayer() {
        const RlScript script{.steps = 3, .memory = true, .copies = true};
        const auto timeline = script.timeline();
        const ui::RlRunPtr run = ui::RlRun::make(script.info(), *timeline);
        const ui::RlStepMemoryPtr step = ui::rlStepMemory(timeline, *run, 1);
        const auto bytesOf = [](const std::vector<ui::RlStepPart>& parts, const QString& name) {
            const auto found =
                std::ranges::find_if(parts, [&](const ui::RlStepPart& part) { return part.layer.name == name; });
            return found == parts.end() ? std::uint64_t{0} : found->bytes;
        };
        QCOMPARE(bytesOf(step->most, QStringLiteral("trainer weights")), std::uint64_t(1 << 20));
        QCOMPARE(bytesOf(step->most, QStringLiteral("rollout weights")), std::uint64_t(1 << 18));
        const auto training = ui::rlStepParts(*step, step->range.end - 1);
        QCOMPARE(bytesOf(training, QStringLiteral("rollout weights")), std::uint64_t(0));
        QCOMPARE(bytesOf(training, QStringLiteral("trainer weights")), std::uint64_t(1 << 20));
        // When the sampler sleeps, its pages and copies are gone.
        QCOMPARE(ui::rlLargestText(*step, step->afterSleep().value(), 3),
                 QStringLiteral("trainer weights 1.0\u00A0MiB"));
        QCOMPARE(ui::rlLargestText(*step, step->peak.maxTime, 1), QStringLiteral("kv_cache 3.0\u00A0MiB"));
        // Without copies there is one layer.
        const RlScript plain{.steps = 3, .memory = true};
        const ui::RlStepMemoryPtr one = ui::rlStepMemory(plain.timeline(), *run, 1);
        QCOMPARE(bytesOf(one->most, QStringLiteral("weights")), std::uint64_t(1 << 20));
    }

    void theLastAnswersAreWaitedFor() {
        const RlScript script{.steps = 2};
        const auto timeline = script.timeline();
        const ui::RlRunPtr run = ui::RlRun::make(script.info(), *timeline);
        const auto limit = ui::rlLimit(*run, 1, ui::rlStepMemory(timeline, *run, 1).get());
        QCOMPARE(limit->kind, ui::RlLimitKind::LastAnswers);
        QCOMPARE(limit->answers, 1);
        QCOMPARE(limit->of, 32);
        QCOMPARE(limit->seconds, RlScript::kTail);
        QCOMPARE(limit->tokens, 2);
        const QString sentence = ui::limitSentence(*limit);
        QVERIFY2(sentence.contains(QStringLiteral("1 of 32 answers")), qPrintable(sentence));
        const auto change = ui::limitChange(*limit, script.info().specJson, "{}");
        QCOMPARE(change->key, std::string("partial_tokens"));
        QVERIFY(change->experimentJson.find("\"partial_tokens\": 16") != std::string::npos ||
                change->experimentJson.find("\"partial_tokens\":16") != std::string::npos);
        QVERIFY2(change->words.contains(QStringLiteral("5.50")), qPrintable(change->words));
    }

    /// Without steps of the sampler, the largest part of the step.
    void theLargestPart() {
        const RlScript script{.steps = 2, .scopes = false};
        const auto timeline = script.timeline();
        const ui::RlRunPtr run = ui::RlRun::make(script.info(), *timeline);
        const auto limit = ui::rlLimit(*run, 1, ui::rlStepMemory(timeline, *run, 1).get());
        QCOMPARE(limit->kind, ui::RlLimitKind::Rollout);
        QCOMPARE(limit->seconds, RlScript::kRollout);
        QVERIFY(!ui::limitChange(*limit, script.info().specJson, "{}")); // all answers have a slot
    }

    /// A run chooses by itself whether it computes layers twice.
    void trainingIsFasterOnlyWhereLayersAreComputedTwice() {
        ui::RlLimit limit;
        limit.kind = ui::RlLimitKind::Train;
        limit.seconds = 6;
        limit.stepSeconds = 10;
        const std::string spec = RlScript{}.info().specJson;
        QVERIFY(!ui::limitChange(limit, spec, R"({"checkpoint": "none"})"));
        QVERIFY(!ui::limitChange(limit, spec, ""));
        QCOMPARE(ui::limitChange(limit, spec, R"({"checkpoint": "layer"})")->key, std::string("checkpoint"));
    }

    void nothingIsKnown() {
        test::RecordedRun recorded;
        recorded.counter("step_seconds", 1.0, 0.5);
        const ui::RlRunPtr run = ui::RlRun::make(RlScript{}.info(), *recorded.timeline());
        QVERIFY(!ui::rlLimit(*run, 0, nullptr));
        QVERIFY(!ui::limitChange({}, "no experiment", "{}"));
    }
};

QTEST_GUILESS_MAIN(RlLimitTest)
#include "rl_limit_test.moc"
