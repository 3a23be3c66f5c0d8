// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/common/session_edits.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <string>
#include <vector>

#include "sessions/session_file.h"
#include "tests/ui/models/common/patience.h"
#include "ui/models/session/session_document.h"

using namespace vitrine;
using sessions::OpenMode;
using sessions::SessionFile;
using sessions::TimelineNote;

class SessionEditsTest final : public QObject {
    Q_OBJECT

    QTemporaryDir folder_;

    std::vector<TimelineNote> notesOf(const std::string& path) const {
        return SessionFile::open(path, OpenMode::ReadOnly)->timelineNotes(1);
    }

private slots:
    void aDeletedTimelineNoteComesBack() {
        const std::string path = folder_.filePath(QStringLiteral("notes.vitrine")).toStdString();
        {
            const auto file = SessionFile::open(path, OpenMode::CreateOrOpen);
            const sessions::RunId run = file->createRun({});
            file->addTimelineNote(run, {0, 100, 200, "first"});
            file->addTimelineNote(run, {0, 300, 400, "second"});
            file->finishRun(run, sessions::RunStatus::Done, "{}", "");
        }
        ui::SessionDocument document;
        ui::SessionEdits edits(&document);
        QSignalSpy opened(&document, &ui::SessionDocument::opened);
        QSignalSpy deleted(&edits, &ui::SessionEdits::deleted);
        document.open(QString::fromStdString(path));
        QTRY_COMPARE(opened.count(), 1);

        const TimelineNote first = notesOf(path).at(0);
        edits.deleteTimelineNote(1, first);
        QTRY_COMPARE(notesOf(path).size(), std::size_t(1));
        QCOMPARE(deleted.count(), 1);
        QCOMPARE(deleted.first().first().toString(), QStringLiteral("Note deleted."));
        QCOMPARE(edits.stack()->undoText(), QStringLiteral("delete note"));

        edits.stack()->undo();
        QTRY_COMPARE(notesOf(path).size(), std::size_t(2));
        bool same = false;
        for (const TimelineNote& note : notesOf(path)) {
            same = same || (note.id == first.id && note.timeBegin == first.timeBegin && note.timeEnd == first.timeEnd &&
                            note.body == first.body);
        }
        QVERIFY2(same, "with its number, times and text");

        edits.stack()->redo();
        QTRY_COMPARE(notesOf(path).size(), std::size_t(1));
        QCOMPARE(notesOf(path).at(0).body, std::string("second"));
    }
};

QTEST_MAIN(SessionEditsTest)
#include "session_edits_test.moc"
