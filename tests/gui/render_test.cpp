// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// `vitrine-gui --render` as a user starts it.
#include <QDir>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

class RenderTest final : public QObject {
    Q_OBJECT

private slots:
    /// A view that is not there is one sentence with the names of those that are, and no picture.
    void namesTheViewsThatAre() {
        const QTemporaryDir folder;
        for (const auto& [views, wrong] : {std::pair{"WRONG", "WRONG"},
                                           {"memory,kernel", "kernel"},
                                           {"Memory", "Memory"},
                                           {"memory, load", " load"}}) {
            QProcess program;
            program.start(QStringLiteral(VITRINE_GUI_PROGRAM), {QStringLiteral("--render"), folder.path(),
                                                                QStringLiteral("--views"), QString::fromLatin1(views)});
            QVERIFY2(program.waitForFinished(60'000), qPrintable(program.errorString()));
            QCOMPARE(program.exitStatus(), QProcess::NormalExit);
            QCOMPARE(program.exitCode(), 2);
            const QString errors = QString::fromUtf8(program.readAllStandardError());
            const QString sentence =
                QStringLiteral("vitrine-gui: error: --views: %1 is no view, name some of run,memory,kernels,")
                    .arg(QString::fromLatin1(wrong));
            QVERIFY2(errors.contains(sentence), qPrintable(errors));
            QCOMPARE(errors.count(QStringLiteral("error:")), qsizetype(1));
            QVERIFY(QDir(folder.path()).isEmpty());
        }
    }
};

QTEST_GUILESS_MAIN(RenderTest)
#include "render_test.moc"
