// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Names, tags and notes of runs, changed through an undo stack. The session file is written by the document's worker.

#include <QObject>
#include <QStringList>
#include <QUndoStack>

#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class RunEdits final : public QObject {
    Q_OBJECT

public:
    explicit RunEdits(SessionDocument* document, QObject* parent = nullptr);

    QUndoStack* stack() { return &stack_; }
    void rename(sessions::RunId run, const QString& name);
    void setTags(sessions::RunId run, const QStringList& tags);
    void setNote(sessions::RunId run, const QString& note);

private:
    SessionDocument* document_;
    QUndoStack stack_;
};

} // namespace vitrine::ui
