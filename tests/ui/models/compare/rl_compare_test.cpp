// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Two runs of reinforcement learning, aligned by step.
#include "ui/models/compare/rl_compare.h"

#include <QTest>
#include <algorithm>

#include "tests/ui/models/rl/rl_script.h"

using namespace vitrine;
using test::RlScript;

namespace {

ui::RlRunPtr runOf(const RlScript& script) {
    return ui::RlRun::make(script.info(), *script.timeline());
}

const ui::FlatNode* rowNamed(const ui::FlatTree& table, const QString& name) {
    const auto found =
        std::ranges::find_if(table.nodes, [&](const ui::FlatNode& node) { return node.cells.front().text == name; });
    return found == table.nodes.end() ? nullptr : &*found;
}

} // namespace

class RlCompareTest final : public QObject {
    Q_OBJECT

private slots:
    void stepsThatBothHave() {
        const auto steps = ui::RlCommonSteps::of(*runOf({.steps = 40}), *runOf({.steps = 30, .first = 5}));
        QCOMPARE(steps.first, 5);
        QCOMPARE(steps.last, 34);
        QCOMPARE(steps.tail, 32);
        QVERIFY(ui::RlCommonSteps::of(*runOf({.steps = 4}), *runOf({.steps = 4, .first = 5})).none());
        QVERIFY(ui::RlCommonSteps::of(*runOf({}), *runOf({.steps = 4})).none());
    }

    void theTableHasTheLastStepAndMeans() {
        const ui::RlRunPtr a = runOf({.steps = 40}), b = runOf({.steps = 30, .difference = 0.019});
        const ui::FlatTreePtr table = ui::rlCompareTable(*a, *b);
        QCOMPARE(table->columns.size(), std::size_t(7));
        QCOMPARE(table->columns[1].title, QStringLiteral("A, step 30"));
        const ui::FlatNode* difference = rowNamed(*table, QStringLiteral("Log-probability difference"));
        QVERIFY(difference != nullptr);
        QCOMPARE(difference->cells[1].text, QStringLiteral("0.0030"));
        QCOMPARE(difference->cells[2].text, QStringLiteral("0.0190"));
        QCOMPARE(difference->cells[3].text, QStringLiteral("▲ +0.0160"));
        QCOMPARE(difference->cells[3].delta.value(), 1);
        QCOMPARE(difference->cells[3].tip, QStringLiteral("B is 6.33x of A"));
        const ui::FlatNode* tokens = rowNamed(*table, QStringLiteral("Response, tokens"));
        QCOMPARE(tokens->cells[1].text, QStringLiteral("80.0"));
        QCOMPARE(tokens->cells[4].text, QStringLiteral("79.0")); // of steps 28 to 30
        QCOMPARE(tokens->cells[3].text, QStringLiteral("="));
        QVERIFY(rowNamed(*table, QStringLiteral("Evaluation reward")) == nullptr);
        QCOMPARE(ui::rlCompareNote(*a, *b),
                 QStringLiteral("Step 30, the last that both have, and means over steps 28 to 30"));
    }

    void oneStepHasNoMeans() {
        const ui::RlRunPtr run = runOf({.steps = 9});
        QCOMPARE(ui::rlCompareTable(*run, *run)->columns.size(), std::size_t(4));
        QCOMPARE(ui::rlCompareNote(*run, *run), QStringLiteral("Step 9, the last that both have"));
    }

    /// Evaluations are compared after the same step, however far a run is ahead.
    void wordsSayTheRewardAndTheLargestChange() {
        const ui::RlRunPtr a = runOf({.steps = 40, .evalEvery = 10});
        const ui::RlRunPtr b = runOf({.steps = 25, .evalEvery = 10, .difference = 0.019});
        QCOMPARE(ui::rlCompareWords(*a, *b).sentence,
                 QStringLiteral("After step 20 both runs have an evaluation reward of 0.732; the log-probability "
                                "difference of B is 0.0190 instead of 0.0030 (6.33x)."));
        QCOMPARE(ui::rlCompareWords(*a, *a).sentence,
                 QStringLiteral("After step 40 both runs have an evaluation reward of 0.965; a step of both takes as "
                                "long and peaks as high."));
        QVERIFY(ui::rlCompareWords(*a, *a).other.isEmpty());
        QCOMPARE(ui::rlCompareWords(*runOf({.steps = 4}), *runOf({.steps = 4, .first = 5})).sentence,
                 QStringLiteral("The runs have no step in common yet."));
    }
};

QTEST_APPLESS_MAIN(RlCompareTest)
#include "rl_compare_test.moc"
