// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The form of an experiment's options: what one types stays as it is until one leaves the field.
#include "ui/widgets/forms/option_form.h"

#include <QLineEdit>
#include <QTest>

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
};

QTEST_MAIN(OptionFormTest)
#include "option_form_test.moc"
