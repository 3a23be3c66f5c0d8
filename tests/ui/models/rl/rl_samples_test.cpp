// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The answers of a step: groups, texts, differences of tokens, and the answers that were slow to judge.
#include "ui/models/rl/rl_samples.h"

#include <QTest>
#include <cmath>
#include <utility>

#include "tests/ui/models/rl/rl_script.h"
#include "ui/models/rl/rl_step_text.h"

using namespace vitrine;
using test::RlScript;

class RlSamplesTest final : public QObject {
    Q_OBJECT

private slots:
    void groupsOfAStep() {
        const RlScript script{.steps = 3, .answers = true};
        const ui::RlSamplesPtr samples = ui::RlSamples::make(*script.timeline(), 2);
        QCOMPARE(samples->groups.size(), std::size_t(4));
        const ui::RlSampleGroup& first = samples->groups[0];
        QCOMPARE(first.samples.size(), std::size_t(8));
        QCOMPARE(first.prompt, QStringLiteral("2+0"));
        QCOMPARE(first.samples[0].text, QStringLiteral("7."));
        QCOMPARE(first.samples[0].reward, 1.0);
        QCOMPARE(first.samples[0].advantage, 1.5);
        QVERIFY(std::abs(first.mean - 2.6 / 8) < 1e-9);
        QVERIFY(first.deviation > 0.4);
        QVERIFY(first.samples[7].cut && !first.samples[6].cut);
        // Of two tokens only the first one differs, by 2 thousandths in the second row.
        QVERIFY(std::abs(first.samples[1].difference - 0.001) < 1e-9);
        QVERIFY(std::abs(first.samples[1].said[0].difference() - 0.002) < 1e-9);
        // A group that was not trained on has rewards and no texts.
        QVERIFY(!samples->groups[1].hasTexts());
        QCOMPARE(samples->groups[1].deviation, 0.0);
        QVERIFY(std::isnan(samples->groups[1].samples[0].advantage));
        QVERIFY(ui::rlGroupFacts(samples->groups[1]).contains(QStringLiteral("not trained on")));
        QVERIFY(ui::RlSamples::make(*script.timeline(), 9)->groups.empty());
    }

    void orders() {
        const RlScript script{.steps = 1, .answers = true};
        const ui::RlSamplesPtr samples = ui::RlSamples::make(*script.timeline(), 1);
        const std::vector<std::size_t> number{0, 1, 2, 3}, variance{0, 2, 1, 3}, difference{2, 0, 1, 3};
        QCOMPARE(samples->ordered(ui::RlGroupOrder::Number), number);
        QCOMPARE(samples->ordered(ui::RlGroupOrder::Variance), variance);
        QCOMPARE(samples->ordered(ui::RlGroupOrder::Difference), difference);
    }

    /// A group of another run is the one with the same prompt, whatever its number is.
    void theSameQuestion() {
        const RlScript script{.steps = 1, .answers = true};
        const ui::RlSamplesPtr samples = ui::RlSamples::make(*script.timeline(), 1);
        QCOMPARE(samples->sameQuestion(samples->groups[2]).value(), std::size_t(2));
        ui::RlSampleGroup other = samples->groups[2];
        other.number = 0;
        QCOMPARE(samples->sameQuestion(other).value(), std::size_t(2));
        other.prompt = QStringLiteral("2+9");
        QVERIFY(!samples->sameQuestion(other));
        QCOMPARE(samples->sameQuestion(samples->groups[1]).value(), std::size_t(1)); // without texts, by its number
    }

    void pairsOfAnswers() {
        const RlScript script{.steps = 1, .answers = true};
        const ui::RlSamplesPtr samples = ui::RlSamples::make(*script.timeline(), 1);
        ui::RlSampleGroup less = samples->groups[2];
        less.samples.resize(5);
        const ui::FlatTreePtr brief = ui::rlPairTable(samples->groups[0], less, true, 16);
        QCOMPARE(brief->columns.size(), std::size_t(5));
        QCOMPARE(brief->nodes.size(), std::size_t(8));
        QCOMPARE(brief->nodes[0].cells[1].text, QStringLiteral("✓ 7."));
        QCOMPARE(brief->nodes[7].cells[3].text, QStringLiteral("–"));
        const ui::FlatTreePtr full = ui::rlPairTable(samples->groups[0], less, false);
        QCOMPARE(full->columns.size(), std::size_t(11));
        QCOMPARE(full->nodes[7].cells.size(), std::size_t(11));
        QVERIFY(ui::rlPairFacts(samples->groups[0], less).startsWith(QStringLiteral("reward A 0.33, B 0.33")));
    }

    void slowJudges() {
        const RlScript script{.steps = 1, .answers = true};
        const ui::RlSamplesPtr samples = ui::RlSamples::make(*script.timeline(), 1);
        const ui::FlatTreePtr slow = ui::rlSlowTable(*samples, 3);
        QCOMPARE(slow->nodes.size(), std::size_t(3));
        QCOMPARE(slow->nodes[0].key / ui::kSlowPlaces - 1, quint64(3));
        QCOMPARE(slow->nodes[0].key % ui::kSlowPlaces, quint64(7));
        QCOMPARE(slow->nodes[0].cells[3].text, QStringLiteral("0.47\u00A0s"));
    }

    /// Sessions of earlier versions have no groups and no texts.
    void rowsWithoutAnswers() {
        test::RecordedRun recorded;
        const double none = std::nan("");
        for (std::int64_t row = 0; row < 4; ++row) {
            recorded.record(base::RolloutEvent{1, 1, row, 1, 0.5});
            recorded.record(base::RolloutTokenEvent{1, 1, row, 0, row < 2 ? 5 : 6, none, none, none, {}});
            recorded.record(base::RolloutTokenEvent{1, 1, row, 1, 9, -1, -2, none, {}});
        }
        const ui::RlSamplesPtr samples = ui::RlSamples::make(*recorded.timeline(), 1);
        QCOMPARE(samples->groups.size(), std::size_t(2));
        QCOMPARE(samples->groups[1].prompt, QStringLiteral("‹6›"));
        QCOMPARE(samples->groups[1].samples.size(), std::size_t(2));
        QCOMPARE(samples->groups[0].samples[0].text, QStringLiteral("‹9›"));
        QCOMPARE(samples->groups[0].samples[0].difference, 1.0);
        QVERIFY(std::isnan(samples->groups[0].mean));
        QVERIFY(ui::rlSlowTable(*samples)->nodes.empty());
    }

    /// What a chat template wrote has no text: it is not shown. What the policy said is, though it is no word.
    void specialTokensAreNoText() {
        test::RecordedRun recorded;
        const double none = std::nan("");
        recorded.record(base::RolloutEvent{1, 1, 0, 3, 0.5});
        const std::pair<const char*, bool> tokens[] = {{"", false}, {"2+2?", false}, {"", false},   {"4", true},
                                                       {"", true},  {"", false},     {"why", false}};
        std::int64_t position = 0;
        for (const auto& [text, said] : tokens) {
            recorded.record(base::RolloutTokenEvent{1, 1, 0, position, static_cast<std::int32_t>(position),
                                                    said ? -1 : none, said ? -1.5 : none, none,
                                                    *text == '\0' ? base::StringId{} : recorded.word(text)});
            ++position;
        }
        const ui::RlSamplesPtr samples = ui::RlSamples::make(*recorded.timeline(), 1);
        const ui::RlSampleGroup& group = samples->groups[0];
        QCOMPARE(group.prompt, QStringLiteral("2+2?"));
        QCOMPARE(group.samples[0].text, QStringLiteral("4why"));
        QCOMPARE(group.samples[0].said.size(), std::size_t(3)); // the token that ends the answer was said too
        QVERIFY(group.samples[0].said[1].special);
        QCOMPARE(group.samples[0].difference, 0.5);
    }

    void theNearestStepWithTokens() {
        const auto timeline = RlScript{.steps = 3, .answers = true}.timeline();
        QCOMPARE(ui::RlSamples::nearestKept(*timeline, 2).value(), 2);
        QCOMPARE(ui::RlSamples::nearestKept(*timeline, 90).value(), 3);
        QVERIFY(!ui::RlSamples::nearestKept(*RlScript{.steps = 3}.timeline(), 2));
    }

    /// The end of a long answer begins with a word.
    void longAnswersBeginWithAWord() {
        ui::RlSampleGroup group;
        group.samples.resize(1);
        group.samples[0].reward = std::nan("");
        group.samples[0].text = QStringLiteral("wording ").repeated(20);
        QCOMPARE(ui::rlGroupTable(group)->nodes[0].cells[0].text.left(11), QStringLiteral("1  …wording"));
    }

    void smallDifferencesHaveDigits() {
        QCOMPARE(ui::differenceText(0.003), QStringLiteral("0.0030"));
        QCOMPARE(ui::differenceText(3.14e-6), QStringLiteral("3.1e−6"));
        QCOMPARE(ui::differenceText(-2.5), QStringLiteral("−2.5000"));
        QCOMPARE(ui::differenceText(0), QStringLiteral("0"));
        ui::RlSampleGroup group;
        group.samples.resize(1);
        group.samples[0].difference = 4.2e-5;
        QCOMPARE(ui::rlGroupTable(group)->nodes[0].cells[2].text, QStringLiteral("4.2e−5"));
    }

    void scalesAreRound() {
        ui::RlSample sample;
        QCOMPARE(ui::RlSamples::tintScale(sample), 0.4);
        sample.said = {{QStringLiteral("a"), -1.0, -1.0031}, {QStringLiteral("b"), std::nan(""), -1}};
        QVERIFY(std::abs(ui::RlSamples::tintScale(sample) - 0.005) < 1e-12);
        QVERIFY(ui::rlTokenText(sample, 0).contains(QStringLiteral("+0.0031")));
        QVERIFY(ui::rlTokenText(sample, 1).contains(QStringLiteral("not said")));
        QVERIFY(ui::rlTokenText(sample, 2).isEmpty());
    }
};

QTEST_GUILESS_MAIN(RlSamplesTest)
#include "rl_samples_test.moc"
