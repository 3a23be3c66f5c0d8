// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Answers to fixed prompts as the results of a run have them, and the time that those to come take.
#include "ui/models/finetune/training_answers.h"

#include <QTest>

#include "tests/ui/models/finetune/training_script.h"
#include "ui/models/finetune/training_run.h"

using namespace vitrine;
using test::TrainingScript;

class TrainingAnswersTest final : public QObject {
    Q_OBJECT

private slots:
    void stepsAndPrompts() {
        const ui::TrainingAnswers answers =
            ui::TrainingAnswers::read(R"({"answers": [{"step": 4, "prompt": "A?", "text": "four", "tokens": 3},)"
                                      R"({"step": 0, "prompt": "A?", "text": "none", "tokens": 1},)"
                                      R"({"step": 4, "prompt": "B?", "text": "new", "tokens": 2}]})");
        QCOMPARE(answers.prompts, QStringList({QStringLiteral("A?"), QStringLiteral("B?")}));
        QCOMPARE(answers.sets.size(), std::size_t(2));
        QCOMPARE(answers.sets.front().step, std::int64_t(0));
        QCOMPARE(answers.at(4)->answers[1].text, QStringLiteral("new"));
        QCOMPARE(answers.at(4)->answers[0].tokens, std::int64_t(3));
        QVERIFY(answers.at(0)->answers[1].text.isEmpty()); // that prompt came later
        QVERIFY(answers.at(2) == nullptr);
    }

    void damagedRowsAreLeftOut() {
        QVERIFY(ui::TrainingAnswers::read("{}").empty());
        QVERIFY(ui::TrainingAnswers::read(R"({"answers": 7})").empty());
        QVERIFY(ui::TrainingAnswers::read(R"({"answers": [)").empty());
        const ui::TrainingAnswers answers = ui::TrainingAnswers::read(
            R"({"answers": [4, {"prompt": "A?"}, {"step": "x"}, {"step": 1, "prompt": 5, "tokens": "y"}]})");
        QCOMPARE(answers.sets.size(), std::size_t(1));
        QCOMPARE(answers.sets.front().answers.front().tokens, std::int64_t(0));
    }

    void timeLeftCountsThem() {
        const TrainingScript script{.steps = 45, .total = 100};
        const std::string asks = R"(, "sample_prompts": ["A?"], "sample_every": 20)";
        test::RecordedRun recorded;
        script.record(recorded);
        recorded.record(base::TrainingMarkEvent{0, test::ns(2.5), 0, base::TrainingMark::Answered, 1});
        const auto run = ui::TrainingRun::make(script.info(1, asks), *recorded.timeline(), 0.9);
        const auto rest = run->rest();
        QVERIFY(rest.has_value());
        QCOMPARE(rest->answerSets, std::int64_t(3)); // after 60, 80 and 100
        QCOMPARE(rest->answerSeconds, 2.5);
        QCOMPARE(run->nextAnswers().value(), std::int64_t(60));
        const auto silent = ui::TrainingRun::make(script.info(), *script.timeline(), 0.9);
        QCOMPARE(silent->rest()->answerSets, std::int64_t(0));
        QVERIFY(!silent->nextAnswers());
    }
};

QTEST_GUILESS_MAIN(TrainingAnswersTest)
#include "training_answers_test.moc"
