// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// `vitrine-gui --render` as a user starts it.
#include <QDir>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTemporaryDir>
#include <QTest>

class RenderTest final : public QObject {
    Q_OBJECT

    static QProcessEnvironment withoutDisplay() {
        QProcessEnvironment bare = QProcessEnvironment::systemEnvironment();
        for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) {
            bare.remove(QString::fromLatin1(name));
        }
        return bare;
    }

private slots:
    /// Neither of them makes a window.
    void answersWithoutADisplay() {
        for (const auto& [option, text] : {std::pair{"--version", "vitrine "}, {"--help", "--render"}}) {
            QProcess program;
            program.setProcessEnvironment(withoutDisplay());
            program.start(QStringLiteral(VITRINE_GUI_PROGRAM), {QString::fromLatin1(option)});
            QVERIFY2(program.waitForFinished(60'000), qPrintable(program.errorString()));
            QCOMPARE(program.exitStatus(), QProcess::NormalExit);
            QCOMPARE(program.exitCode(), 0);
            const QString said = QString::fromUtf8(program.readAllStandardOutput());
            QVERIFY2(said.contains(QString::fromLatin1(text)), qPrintable(said));
        }
    }

    /// One line and a wrong usage, not an abort of Qt.
    void saysWhatIsWrongWithoutADisplay() {
        for (const auto& [words, wrong] : {std::pair{QStringList{QStringLiteral("--nonsense")}, "nonsense"},
                                           {QStringList{QStringLiteral("--render")}, "--render"},
                                           {QStringList{}, "no display"}}) {
            QProcess program;
            program.setProcessEnvironment(withoutDisplay());
            program.start(QStringLiteral(VITRINE_GUI_PROGRAM), words);
            QVERIFY2(program.waitForFinished(60'000), qPrintable(program.errorString()));
            QCOMPARE(program.exitStatus(), QProcess::NormalExit);
            QCOMPARE(program.exitCode(), 2);
            const QString errors = QString::fromUtf8(program.readAllStandardError());
            QVERIFY2(errors.startsWith(QStringLiteral("vitrine-gui: error: ")), qPrintable(errors));
            QVERIFY2(errors.contains(QString::fromLatin1(wrong)), qPrintable(errors));
            QCOMPARE(errors.count(QLatin1Char('\n')), qsizetype(1));
        }
    }

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
                QStringLiteral("vitrine-gui: error: --views: %1 is no view, name some of run,queue,memory,kernels,")
                    .arg(QString::fromLatin1(wrong));
            QVERIFY2(errors.contains(sentence), qPrintable(errors));
            QCOMPARE(errors.count(QStringLiteral("error:")), qsizetype(1));
            QVERIFY(QDir(folder.path()).isEmpty());
        }
    }
};

QTEST_GUILESS_MAIN(RenderTest)
#include "render_test.moc"
