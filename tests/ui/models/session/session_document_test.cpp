// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// A document over real session files: the live tail, other writers, broken files, and that the GUI thread never waits.
#include "ui/models/session/session_document.h"

#include <QDir>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <cstdio>

#include "base/error.h"
#include "base/json_values.h"
#include "profiler/record/recorder.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "sessions/sqlite/database.h"
#include "tests/ui/models/common/patience.h"
#include "ui/models/common/format.h"

using namespace vitrine;
using sessions::OpenMode;
using sessions::RunStatus;
using sessions::SessionFile;
using ui::SessionDocument;
using ui::textOf;

class SessionDocumentTest final : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;
    int files_ = 0;

    std::string newPath() { return folder_.filePath(QStringLiteral("s%1.vitrine").arg(++files_)).toStdString(); }

    static sessions::RunInfo info(const std::string& name) {
        sessions::RunInfo run;
        run.name = name;
        run.workload = "generate";
        run.specJson = R"({"vitrine": 1, "workload": "generate"})";
        run.environmentJson = run.metricsJson = "{}";
        run.startedMs = 1'790'000'000'000;
        return run;
    }

    /// Of a new session with a finished run of its name.
    std::string pathWithARun() {
        const std::string path = newPath();
        const auto made = SessionFile::open(path, OpenMode::CreateOrOpen);
        made->finishRun(made->createRun(info(path)), RunStatus::Done, "{}", "");
        return path;
    }

    static void allocate(profiler::Recorder& recorder, std::uint64_t id, base::TimeNs time, std::uint64_t bytes) {
        base::AllocationEvent event;
        event.time = time;
        event.id = id;
        event.address = id << 20;
        event.bytes = bytes;
        event.category = base::MemoryCategory::Weights;
        event.name = recorder.intern("tensor");
        recorder.record(event);
    }

private slots:
    void namesARunThatHoldsAWrongValue() {
        const std::string path = newPath();
        {
            const auto file = SessionFile::open(path, OpenMode::CreateOrOpen);
            file->createRun(info("one"));
            file->createRun(info("two"));
        }
        sessions::Database(path, sessions::Database::Access::ReadWrite)
            .execute("UPDATE runs SET lost_records = 'x' WHERE id = 1");
        SessionDocument document;
        QSignalSpy damaged(&document, &SessionDocument::runDamaged);
        document.open(QString::fromStdString(path));
        QTRY_COMPARE(damaged.count(), 1);
        QVERIFY(damaged.front().front().toString().contains(QLatin1String("run 1 is damaged")));
        QCOMPARE(document.runs().size(), std::size_t(1));
        QCOMPARE(document.runs().front().name, std::string("two"));
    }

    void readsASavedRun() {
        const std::string path = newPath();
        {
            const auto file = SessionFile::open(path, OpenMode::CreateOrOpen);
            const sessions::RunId run = file->createRun(info("one"));
            profiler::Recorder recorder;
            for (int i = 1; i <= 500; ++i) {
                allocate(recorder, static_cast<std::uint64_t>(i), i * 1000, 1024);
            }
            file->appendChunks(run, recorder.drain());
            file->appendChunks(run, recorder.finish());
            file->putText(run, {"log", "hello"});
            file->finishRun(run, RunStatus::Done, R"({"peak_bytes": 512000})", "");
        }
        SessionDocument document;
        QSignalSpy opened(&document, &SessionDocument::opened);
        document.open(QString::fromStdString(path));
        QVERIFY2(!document.isOpen() && opened.count() == 0, "open() waits"); // it only starts the worker
        QTRY_COMPARE(opened.count(), 1);
        QCOMPARE(document.runs().size(), std::size_t(1));
        QCOMPARE(document.runA(), document.runs().front().id);
        const sessions::RunId run = document.runA();
        document.timeline(run);
        QTRY_VERIFY(document.timeline(run).complete);
        QCOMPARE(document.timeline(run).timeline->memory().events(), std::uint64_t(500));
        QCOMPARE(document.timeline(run).timeline->memory().peak(0, 1'000'000).maxTotal, std::uint64_t(512000));
        std::vector<sessions::RunText> texts;
        document.readTexts(run, this, [&](std::vector<sessions::RunText> read) { texts = std::move(read); });
        QTRY_COMPARE(texts.size(), std::size_t(1));
        document.edit([run](SessionFile& file) { file.renameRun(run, "two"); });
        QTRY_COMPARE(QString::fromStdString(document.run(run)->name), QStringLiteral("two"));
        QSignalSpy failed(&document, &SessionDocument::editFailed);
        document.edit([](SessionFile& file) { file.renameRun(4711, "x"); });
        document.edit([](SessionFile&) { throw base::BadInput("x: y: z"); });
        QTRY_VERIFY(failed.count() >= 1);
    }

    void findsTheModelsOfRunsFromAnyFolder() {
        const QDir folder(folder_.path());
        QVERIFY(folder.mkpath(QStringLiteral("models/tiny")) && folder.mkpath(QStringLiteral("elsewhere")));
        const std::string path = newPath();
        {
            const auto made = SessionFile::open(path, OpenMode::CreateOrOpen);
            for (const char* model : {"models/tiny", "gone/tiny", "gone/tiny", "synthetic:tiny-llama"}) {
                sessions::RunInfo run = info("one");
                run.specJson = std::string(R"({"vitrine":1,"workload":"generate","model":")") + model + "\"}";
                made->finishRun(made->createRun(run), RunStatus::Done, "{}", "");
            }
        }
        const auto model = [](const SessionDocument& document, sessions::RunId run) {
            return textOf(base::textIn(document.run(run)->specJson, "model"));
        };
        for (const bool again : {false, true}) { // the answer is kept in the session
            SessionDocument document;
            document.open(QString::fromStdString(path));
            QTRY_VERIFY(document.isOpen());
            QCOMPARE(model(document, 1), folder.filePath(QStringLiteral("models/tiny")));
            QCOMPARE(textOf(base::textIn(document.run(1)->storedSpecJson, "model")), QStringLiteral("models/tiny"));
            QCOMPARE(document.missingModel(1), QString());
            QCOMPARE(document.missingModel(4), QString());
            if (!again) {
                QCOMPARE(document.missingModel(2), QStringLiteral("gone/tiny"));
                document.placeModel(QStringLiteral("gone/tiny"), folder.filePath(QStringLiteral("elsewhere")));
                QTRY_COMPARE(document.missingModel(2), QString());
            }
            QCOMPARE(document.missingModel(3), QString());
            QCOMPARE(model(document, 3), folder.filePath(QStringLiteral("elsewhere")));
        }
        // The file has what was run.
        const auto file = SessionFile::open(path, OpenMode::ReadOnly);
        QCOMPARE(textOf(base::textIn(file->run(2).specJson, "model")), QStringLiteral("gone/tiny"));
    }

    void aFileThatIsNoSessionLeavesTheOneThatIsOpen() {
        const std::string path = pathWithARun(), other = pathWithARun();
        SessionDocument document;
        document.open(QString::fromStdString(path));
        QTRY_VERIFY(document.isOpen());
        QSignalSpy failed(&document, &SessionDocument::openFailed), closed(&document, &SessionDocument::closed);
        const QString foreign = folder_.filePath(QStringLiteral("notes.txt"));
        QFile file(foreign);
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("nonsense") == 8);
        file.close();
        document.open(foreign);
        QTRY_COMPARE(failed.count(), 1);
        QCOMPARE(closed.count(), 0);
        QVERIFY(document.isOpen());
        QCOMPARE(document.path(), QString::fromStdString(path));
        document.edit([](SessionFile& session) { session.renameRun(1, "still here"); });
        QTRY_COMPARE(QString::fromStdString(document.run(1)->name), QStringLiteral("still here"));
        document.open(QString::fromStdString(other));
        QTRY_COMPARE(closed.count(), 1);
        QTRY_COMPARE(document.path(), QString::fromStdString(other));
        QCOMPARE(QString::fromStdString(document.run(1)->name), QString::fromStdString(other));
    }

    void saysWhenItsFileIsReplaced() {
        const std::string path = pathWithARun(), other = pathWithARun();
        SessionDocument document;
        document.open(QString::fromStdString(path));
        QTRY_VERIFY(document.isOpen());
        QCOMPARE(document.keeping().state, ui::SessionKeeping::State::Saved);
        QCOMPARE(std::rename(other.c_str(), path.c_str()), 0);
        QTRY_COMPARE(document.keeping().state, ui::SessionKeeping::State::Replaced);
        QVERIFY(document.keeping().endangered());
        QSignalSpy failed(&document, &SessionDocument::copyFailed);
        document.saveCopy(QString::fromStdString(path), false);
        QTRY_COMPARE(failed.count(), 1); // it is another session now
    }

    void keepsANoteThatTheFileDoesNotTake() {
        const std::string path = newPath();
        {
            const auto made = SessionFile::open(path, OpenMode::CreateOrOpen);
            made->finishRun(made->createRun(info("one")), RunStatus::Done, "{}", "");
        }
        SessionDocument document(nullptr,
                                 [](const std::string& file) { return SessionFile::open(file, OpenMode::ReadOnly); });
        document.open(QString::fromStdString(path));
        QTRY_VERIFY(document.isOpen());
        QSignalSpy failed(&document, &SessionDocument::editFailed);
        document.edit([](SessionFile& file) { file.setNote(1, "typed"); });
        QCOMPARE(document.keeping().state, ui::SessionKeeping::State::Saving);
        QTRY_COMPARE(document.keeping().state, ui::SessionKeeping::State::Waiting);
        QCOMPARE(QString::fromStdString(document.run(1)->note), QStringLiteral("typed"));
        QCOMPARE(failed.count(), 0);
        QVERIFY(ui::keepingSentence(document.keeping(), document.path()).contains(QStringLiteral("Save a copy")));
        const std::string copy = newPath();
        QSignalSpy saved(&document, &SessionDocument::copySaved);
        document.saveCopy(QString::fromStdString(copy), false);
        QTRY_COMPARE(saved.count(), 1);
        QCOMPARE(SessionFile::open(copy, OpenMode::ReadOnly)->run(1).note, std::string("typed"));
    }

    void followsALiveRun() {
        const std::string path = newPath();
        const auto writer = SessionFile::open(path, OpenMode::CreateOrOpen);
        const sessions::RunId run = writer->createRun(info("live"));
        profiler::Recorder recorder;
        allocate(recorder, 1, 1000, 1024);
        writer->appendChunks(run, recorder.drain());
        SessionDocument document;
        document.open(QString::fromStdString(path));
        QTRY_VERIFY(document.isOpen());
        document.timeline(run);
        QTRY_VERIFY(document.timeline(run).timeline && document.timeline(run).timeline->memory().events() == 1);
        const ui::TimelinePtr before = document.timeline(run).timeline;
        for (int i = 2; i <= 20; ++i) {
            allocate(recorder, static_cast<std::uint64_t>(i), i * 1000, 1024);
            writer->appendChunks(run, recorder.drain());
        }
        QTRY_COMPARE(document.timeline(run).timeline->memory().events(), std::uint64_t(20));
        QCOMPARE(before->memory().events(), std::uint64_t(1)); // snapshots do not change
        QCOMPARE(document.run(run)->status, RunStatus::Running);
        writer->appendChunks(run, recorder.finish());
        writer->finishRun(run, RunStatus::OutOfMemory, "{}", "out of memory");
        QTRY_COMPARE(document.run(run)->status, RunStatus::OutOfMemory);
        const sessions::RunId second = writer->createRun(info("second"));
        QTRY_VERIFY(document.run(second) != nullptr);
        QCOMPARE(document.runA(), run); // a new run does not take the view away
    }

    void goesAlongWithTheNextPartOfARunThatItWatches() {
        const std::string path = newPath();
        const auto writer = SessionFile::open(path, OpenMode::CreateOrOpen);
        const sessions::RunId one = writer->createRun(info("serve"));
        SessionDocument document;
        document.open(QString::fromStdString(path));
        QTRY_COMPARE(document.runA(), one);
        const sessions::RunId two = writer->createRun(info("serve, part 2"));
        writer->finishRun(one, RunStatus::Done, R"({"next_run": 2})", "");
        QTRY_COMPARE(document.runA(), two);
        document.setRunA(one); // whoever looks back is left there
        const sessions::RunId three = writer->createRun(info("serve, part 3"));
        writer->finishRun(two, RunStatus::Done, R"({"next_run": 3})", "");
        QTRY_VERIFY(document.run(three) != nullptr && document.run(two)->status == RunStatus::Done);
        QCOMPARE(document.runA(), one);
    }

    void swapsAAndB() {
        const std::string path = newPath();
        const auto writer = SessionFile::open(path, OpenMode::CreateOrOpen);
        const sessions::RunId one = writer->createRun(info("one")), two = writer->createRun(info("two"));
        SessionDocument document;
        document.open(QString::fromStdString(path));
        QTRY_VERIFY(document.isOpen());
        QCOMPARE(document.runA(), two);
        QSignalSpy changed(&document, &SessionDocument::selectionChanged);
        document.swapRuns(); // no baseline: nothing
        QCOMPARE(changed.count(), 0);
        document.setRunB(one);
        document.swapRuns();
        QCOMPARE(document.runA(), one);
        QCOMPARE(document.runB(), two);
        document.setRunA(4711); // no such run
        QCOMPARE(document.runA(), one);
        document.edit([two](SessionFile& file) { file.deleteRun(two); });
        QTRY_COMPARE(document.runB(), sessions::RunId(0));
    }

    void brokenFiles_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("text") << QByteArray("not a session at all, but long enough to look at").repeated(10);
        QTest::newRow("other database") << QByteArray("SQLite format 3").append('\0').append(QByteArray(4096, '\1'));
    }

    void brokenFiles() {
        QFETCH(QByteArray, bytes);
        const QString path = QString::fromStdString(newPath());
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(bytes);
        file.close();
        SessionDocument document;
        QSignalSpy failed(&document, &SessionDocument::openFailed);
        document.open(path);
        QTRY_COMPARE(failed.count(), 1);
        QVERIFY(!failed.front().at(1).toString().isEmpty());
        QVERIFY(!document.isOpen());
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll(), bytes);    // never written to
        document.edit([](SessionFile&) {}); // nothing to edit, nothing breaks
    }

    void goesAwayWhileReading() {
        const std::string path = newPath();
        {
            const auto file = SessionFile::open(path, OpenMode::CreateOrOpen);
            const sessions::RunId run = file->createRun(info("many"));
            profiler::Recorder recorder;
            for (int i = 1; i <= 20'000; ++i) {
                allocate(recorder, static_cast<std::uint64_t>(i), i * 1000, 1024);
            }
            file->appendChunks(run, recorder.finish());
            file->finishRun(run, RunStatus::Done, "{}", "");
        }
        for (int i = 0; i < 5; ++i) {
            SessionDocument document;
            document.open(QString::fromStdString(path));
            QTest::qWait(i * 5);
            document.timeline(1);
            document.open(QString::fromStdString(path)); // another one before the first is done
            document.timeline(1);
            QTest::qWait(i);
        }
    }
};

QTEST_GUILESS_MAIN(SessionDocumentTest)
#include "session_document_test.moc"
