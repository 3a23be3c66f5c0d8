// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What people change in a session: names, tags, notes, timeline notes and the deletion of runs. All of it goes through
// one undo stack, whatever view it was done in. The session file is written by the document's worker.

#include <QObject>
#include <QStringList>
#include <QUndoStack>
#include <vector>

#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class SessionEdits final : public QObject {
    Q_OBJECT

public:
    explicit SessionEdits(SessionDocument* document, QObject* parent = nullptr);

    QUndoStack* stack() { return &stack_; }
    void rename(sessions::RunId run, const QString& name);
    void setTags(sessions::RunId run, const QStringList& tags);
    void setNote(sessions::RunId run, const QString& note);
    /// `note.id` counts in changing and deleting alone.
    void addTimelineNote(sessions::RunId run, const sessions::TimelineNote& note);
    void changeTimelineNote(sessions::RunId run, const sessions::TimelineNote& before,
                            const sessions::TimelineNote& after);
    void deleteTimelineNote(sessions::RunId run, const sessions::TimelineNote& note);
    /// Deleted runs are kept in a temporary file until the session is closed.
    void deleteRuns(const std::vector<sessions::RunId>& runs);

signals:
    void deleted(const QString& what); ///< "Note deleted.", for a short while beside a button that brings it back

private:
    SessionDocument* document_;
    QUndoStack stack_;
};

} // namespace vitrine::ui
