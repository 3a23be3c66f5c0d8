// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/common/session_edits.h"

#include <QTemporaryDir>
#include <QUndoCommand>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "ui/models/session/run_table.h"

namespace vitrine::ui {

namespace {

using NoteId = std::shared_ptr<std::int64_t>; ///< filled on the worker's thread, read there

/// A timeline note before and after; nothing stands for "not there".
class NoteEdit final : public QUndoCommand {
public:
    using Note = std::optional<sessions::TimelineNote>;

    NoteEdit(const QString& text, SessionDocument* document, sessions::RunId run, Note before, Note after)
        : QUndoCommand(text), document_(document), run_(run), before_(std::move(before)), after_(std::move(after)),
          id_(std::make_shared<std::int64_t>(before_ ? before_->id : 0)) {}

    void redo() override { write(before_, after_); }
    void undo() override { write(after_, before_); }

private:
    void write(const Note& from, const Note& to) {
        document_->edit([run = run_, id = id_, had = from.has_value(), to](sessions::SessionFile& file) {
            if (!to) {
                file.deleteTimelineNote(*id);
            } else if (had) {
                sessions::TimelineNote note = *to;
                note.id = *id;
                file.updateTimelineNote(note);
            } else {
                sessions::TimelineNote note = *to;
                note.id = *id; // other edits of the stack know it
                *id = file.addTimelineNote(run, note);
            }
        });
        emit document_->notesChanged(run_);
    }

    SessionDocument* document_;
    sessions::RunId run_;
    Note before_, after_;
    NoteId id_;
};

/// Runs that go to a session of their own, and come back from it.
class RunDeletion final : public QUndoCommand {
public:
    RunDeletion(const QString& text, SessionDocument* document, std::vector<sessions::RunId> runs)
        : QUndoCommand(text), document_(document), runs_(std::move(runs)), folder_(std::make_shared<QTemporaryDir>()) {}

    void redo() override {
        document_->edit([runs = runs_, folder = folder_](sessions::SessionFile& file) {
            const auto kept = sessions::SessionFile::open(pathIn(*folder), sessions::OpenMode::CreateOrOpen);
            for (const sessions::RunId run : runs) {
                file.copyRunTo(run, *kept, sessions::CopyIds::Same);
                file.deleteRun(run);
            }
        });
    }
    void undo() override {
        document_->edit([runs = runs_, folder = folder_](sessions::SessionFile& file) {
            const auto kept = sessions::SessionFile::open(pathIn(*folder), sessions::OpenMode::ReadWrite);
            for (const sessions::RunId run : runs) {
                kept->copyRunTo(run, file, sessions::CopyIds::Same);
                kept->deleteRun(run);
            }
        });
    }

private:
    static std::string pathIn(const QTemporaryDir& folder) {
        return folder.filePath(QStringLiteral("deleted.vitrine")).toStdString();
    }

    SessionDocument* document_;
    std::vector<sessions::RunId> runs_;
    std::shared_ptr<QTemporaryDir> folder_;
};

/// One field of one run before and after.
class FieldEdit final : public QUndoCommand {
public:
    using Writer = std::function<void(sessions::SessionFile&, sessions::RunId, const QStringList&)>;

    FieldEdit(const QString& text, SessionDocument* document, sessions::RunId run, QStringList before,
              QStringList after, Writer writer)
        : QUndoCommand(text), document_(document), run_(run), before_(std::move(before)), after_(std::move(after)),
          writer_(std::move(writer)) {}

    void redo() override { write(after_); }
    void undo() override { write(before_); }

private:
    void write(const QStringList& value) {
        document_->edit(
            [run = run_, value, writer = writer_](sessions::SessionFile& file) { writer(file, run, value); });
    }

    SessionDocument* document_;
    sessions::RunId run_;
    QStringList before_, after_;
    Writer writer_;
};

} // namespace

SessionEdits::SessionEdits(SessionDocument* document, QObject* parent) : QObject(parent), document_(document) {
    connect(document, &SessionDocument::opened, &stack_, &QUndoStack::clear);
    connect(document, &SessionDocument::closed, &stack_, &QUndoStack::clear);
}

void SessionEdits::rename(sessions::RunId run, const QString& name) {
    const sessions::RunInfo* info = document_->run(run);
    if (info == nullptr || info->name == name.toStdString()) {
        return;
    }
    stack_.push(new FieldEdit(tr("rename"), document_, run, {QString::fromStdString(info->name)}, {name},
                              [](sessions::SessionFile& file, sessions::RunId id, const QStringList& value) {
                                  file.renameRun(id, value.first().toStdString());
                              }));
}

void SessionEdits::setTags(sessions::RunId run, const QStringList& tags) {
    const sessions::RunInfo* info = document_->run(run);
    if (info == nullptr || tagList(*info) == tags) {
        return;
    }
    const bool gone = tags.isEmpty();
    stack_.push(new FieldEdit(gone ? tr("delete tags") : tr("change tags"), document_, run, tagList(*info), tags,
                              [](sessions::SessionFile& file, sessions::RunId id, const QStringList& value) {
                                  std::vector<std::string> list;
                                  for (const QString& tag : value) {
                                      list.push_back(tag.toStdString());
                                  }
                                  file.setTags(id, list);
                              }));
    if (gone) {
        emit deleted(tr("Tags deleted."));
    }
}

void SessionEdits::setNote(sessions::RunId run, const QString& note) {
    const sessions::RunInfo* info = document_->run(run);
    if (info == nullptr || info->note == note.toStdString()) {
        return;
    }
    const bool gone = note.isEmpty();
    stack_.push(new FieldEdit(gone ? tr("delete note") : tr("change note"), document_, run,
                              {QString::fromStdString(info->note)}, {note},
                              [](sessions::SessionFile& file, sessions::RunId id, const QStringList& value) {
                                  file.setNote(id, value.first().toStdString());
                              }));
    if (gone) {
        emit deleted(tr("Note deleted."));
    }
}

void SessionEdits::addTimelineNote(sessions::RunId run, const sessions::TimelineNote& note) {
    stack_.push(new NoteEdit(tr("add note"), document_, run, std::nullopt, note));
}

void SessionEdits::changeTimelineNote(sessions::RunId run, const sessions::TimelineNote& before,
                                      const sessions::TimelineNote& after) {
    stack_.push(new NoteEdit(tr("change note"), document_, run, before, after));
}

void SessionEdits::deleteTimelineNote(sessions::RunId run, const sessions::TimelineNote& note) {
    stack_.push(new NoteEdit(tr("delete note"), document_, run, note, std::nullopt));
    emit deleted(tr("Note deleted."));
}

void SessionEdits::deleteRuns(const std::vector<sessions::RunId>& runs) {
    const bool one = runs.size() == 1;
    stack_.push(new RunDeletion(one ? tr("delete run") : tr("delete runs"), document_, runs));
    emit deleted(one ? tr("Run %1 deleted.").arg(runs.front()) : tr("%1 runs deleted.").arg(runs.size()));
}

} // namespace vitrine::ui
