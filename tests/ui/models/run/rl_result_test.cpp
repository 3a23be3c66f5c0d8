// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the Run view says of a run of reinforcement learning.
#include "ui/models/run/rl_result.h"

#include <QTest>

#include "tests/ui/models/rl/rl_script.h"

using namespace vitrine;

class RlResultTest final : public QObject {
    Q_OBJECT

private slots:
    void saysWhatBecameOfIt() {
        const auto run = test::RlScript{}.info(1, R"({
            "rewards": [0.25, 0.5], "answer_tokens": [10, 12], "reward_source": "task sums", "rollout_weights": "bf16",
            "eval_rewards": [0.125, 0.375], "eval_reward_steps": [0, 2], "phase_seconds": {"rollout": [1.5, 1.5]},
            "peak_by_role": {"rollout": [1048576, 2097152]},
            "sampled_answers": [{"step": 1, "prompt": "1+1=", "text": "3", "reward": 0.1},
                                {"step": 2, "prompt": "2+2=", "text": "4", "reward": 1},
                                {"step": 2, "prompt": "2+2=", "text": "5", "reward": null}]})");
        const std::vector<ui::RlResultPart> parts = ui::rlResultParts(run);
        QCOMPARE(parts.size(), std::size_t(7));
        QCOMPARE(parts[0].text, QStringLiteral("2 steps, judged by task sums, sampled with bf16 weights.\n"
                                               "Evaluation: 0.125 after step 0, 0.375 after step 2.\n"
                                               "Time: rollout 3.00 s.\nPeak memory: rollout 2.0 MiB."));
        QCOMPARE(parts[1].text, QStringLiteral("Step 1: reward 0.250, answer tokens 10.0\n"
                                               "Step 2: reward 0.500, answer tokens 12.0"));
        QCOMPARE(parts[2].text, QStringLiteral("1+1="));
        QCOMPARE(parts[3].title, QStringLiteral("reward 0.10"));
        QCOMPARE(parts[3].text, QStringLiteral("3"));
        QCOMPARE(parts[6].title, QStringLiteral("no reward"));
    }

    void othersHaveNothing() {
        QVERIFY(ui::rlResultParts(test::RlScript{}.info()).empty());
        QVERIFY(ui::rlResultParts(test::runInfo(1, "generate", R"({"rewards": [1]})", "{}")).empty());
    }
};

QTEST_APPLESS_MAIN(RlResultTest)
#include "rl_result_test.moc"
