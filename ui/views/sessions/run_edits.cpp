// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/sessions/run_edits.h"

#include <QUndoCommand>
#include <functional>

#include "ui/models/session/run_table.h"

namespace vitrine::ui {

namespace {

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

RunEdits::RunEdits(SessionDocument* document, QObject* parent) : QObject(parent), document_(document) {
    connect(document, &SessionDocument::opened, &stack_, &QUndoStack::clear);
    connect(document, &SessionDocument::closed, &stack_, &QUndoStack::clear);
}

void RunEdits::rename(sessions::RunId run, const QString& name) {
    const sessions::RunInfo* info = document_->run(run);
    if (info == nullptr || info->name == name.toStdString()) {
        return;
    }
    stack_.push(new FieldEdit(tr("Rename"), document_, run, {QString::fromStdString(info->name)}, {name},
                              [](sessions::SessionFile& file, sessions::RunId id, const QStringList& value) {
                                  file.renameRun(id, value.first().toStdString());
                              }));
}

void RunEdits::setTags(sessions::RunId run, const QStringList& tags) {
    const sessions::RunInfo* info = document_->run(run);
    if (info == nullptr || tagList(*info) == tags) {
        return;
    }
    stack_.push(new FieldEdit(tr("Change tags"), document_, run, tagList(*info), tags,
                              [](sessions::SessionFile& file, sessions::RunId id, const QStringList& value) {
                                  std::vector<std::string> list;
                                  for (const QString& tag : value) {
                                      list.push_back(tag.toStdString());
                                  }
                                  file.setTags(id, list);
                              }));
}

void RunEdits::setNote(sessions::RunId run, const QString& note) {
    const sessions::RunInfo* info = document_->run(run);
    if (info == nullptr || info->note == note.toStdString()) {
        return;
    }
    stack_.push(new FieldEdit(tr("Change note"), document_, run, {QString::fromStdString(info->note)}, {note},
                              [](sessions::SessionFile& file, sessions::RunId id, const QStringList& value) {
                                  file.setNote(id, value.first().toStdString());
                              }));
}

} // namespace vitrine::ui
