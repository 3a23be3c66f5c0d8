// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The form of an experiment's options: what one types stays as it is until one leaves the field.
#include "ui/widgets/forms/option_form.h"

#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTest>
#include <nlohmann/json.hpp>

#include "ui/widgets/base/theme.h"

using namespace vitrine::ui;

class OptionFormTest final : public QObject {
    Q_OBJECT

    static QLineEdit* fieldOf(const OptionForm& form, const char* key) {
        return qobject_cast<QLineEdit*>(form.editor(QString::fromLatin1(key)));
    }

private slots:
    void initTestCase() { Theme::instance().install(); }

    void unfinishedNumbersAreNotTakenBack() {
        ExperimentForm experiment;
        experiment.setWorkload(QStringLiteral("generate"));
        OptionForm form(&experiment, {});
        form.show();
        for (const char* const key : {"temperature", "frequency_penalty"}) {
            QLineEdit* const field = fieldOf(form, key);
            QVERIFY(field != nullptr);
            QCOMPARE(experiment.text(QString::fromLatin1(key)), QStringLiteral("0"));
            field->selectAll();
            QTest::keyClicks(field, QStringLiteral("0.7"));
            QCOMPARE(field->text(), QStringLiteral("0.7"));
            QCOMPARE(experiment.text(QString::fromLatin1(key)), QStringLiteral("0.7"));
            QVERIFY(form.dotShown(QString::fromLatin1(key)));
        }
        QLineEdit* const tokens = fieldOf(form, "max_new_tokens");
        tokens->selectAll();
        QTest::keyClicks(tokens, QStringLiteral("1280")); // "128" is the default
        QCOMPARE(experiment.text(QStringLiteral("max_new_tokens")), QStringLiteral("1280"));
    }

    void aFieldIsTidiedUpWhenOneLeavesIt() {
        ExperimentForm experiment;
        experiment.setWorkload(QStringLiteral("generate"));
        OptionForm form(&experiment, {});
        form.show();
        QLineEdit* const field = fieldOf(form, "temperature");
        field->selectAll();
        QTest::keyClicks(field, QStringLiteral("0."));
        QCOMPARE(field->text(), QStringLiteral("0."));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(field->text(), QStringLiteral("0"));
        QVERIFY(!experiment.changed(QStringLiteral("temperature")));
    }

    void textsOfAListStandOnLines() {
        ExperimentForm experiment;
        QVERIFY(experiment.load(QStringLiteral(R"({"vitrine": 1, "workload": "generate", "stop": ["a, b", "c"]})"))
                    .isEmpty());
        QCOMPARE(experiment.experiment()["stop"].dump(), std::string(R"(["a, b","c"])"));
        QVERIFY(experiment.commandLine().endsWith(QStringLiteral("--stop 'a, b' --stop c")));
        OptionForm form(&experiment, {});
        form.show();
        auto* const list = qobject_cast<QPlainTextEdit*>(form.editor(QStringLiteral("stop")));
        QVERIFY(list != nullptr);
        QCOMPARE(list->toPlainText(), QStringLiteral("a, b\nc"));
        list->moveCursor(QTextCursor::End);
        QTest::keyClick(list, Qt::Key_Return);
        QTest::keyClicks(list, QStringLiteral("third"));
        QCOMPARE(experiment.experiment()["stop"].size(), std::size_t{3});
        QCOMPARE(list->toPlainText(), QStringLiteral("a, b\nc\nthird"));
    }

    /// A layout of the workload: its basic fields stand above groups that are folded until one asks for them.
    void groupsFold() {
        ExperimentForm experiment;
        experiment.setWorkload(QStringLiteral("rl"));
        OptionForm form(&experiment, {});
        QVERIFY(!form.folded(QStringLiteral("Rollouts")));
        form.setLayout(QStringLiteral("rl"), {{QStringLiteral("model"), QStringLiteral("prompts")},
                                              {QStringLiteral("Rollouts"), QStringLiteral("Policy")}});
        form.show();
        QVERIFY(form.editor(QStringLiteral("prompts"))->isVisibleTo(&form));
        QVERIFY(!form.editor(QStringLiteral("rollout"))->isVisibleTo(&form));
        const auto head = [&] { return form.findChild<QPushButton*>(QStringLiteral("fold.Rollouts")); };
        QCOMPARE(head()->text(), QStringLiteral("Rollouts"));
        form.edit(QStringLiteral("rollout"), QStringLiteral("int4"));
        QCOMPARE(head()->text(), QStringLiteral("Rollouts, 1 changed"));
        head()->click();
        QVERIFY(form.editor(QStringLiteral("rollout"))->isVisibleTo(&form));
        form.setError(QStringLiteral("kl"), QStringLiteral("wrong"));
        QVERIFY(form.editor(QStringLiteral("kl"))->isVisibleTo(&form));
        experiment.setWorkload(QStringLiteral("generate"));
        QVERIFY(form.editor(QStringLiteral("temperature"))->isVisibleTo(&form));
    }
};

QTEST_MAIN(OptionFormTest)
#include "option_form_test.moc"
