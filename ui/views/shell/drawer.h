// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The drawer at the bottom: what run A wrote down besides its numbers. Notes, Log, Command line.

#include <QTabWidget>

#include "ui/widgets/view.h"

class QPlainTextEdit;
class QTreeView;

namespace vitrine::ui {

class FlatTreeModel;

class Drawer final : public QTabWidget {
    Q_OBJECT

public:
    Drawer(const ViewContext& context, QWidget* parent);

    /// The command line that starts this run again: "vitrine generate --model synthetic:gpt-oss-20b ...".
    static QString commandLine(const sessions::RunInfo& run);

private:
    void refresh();
    void showNotes(const std::vector<sessions::TimelineNote>& notes);
    ViewContext context_;
    QTreeView* notes_;
    FlatTreeModel* notesModel_;
    std::vector<sessions::TimelineNote> noteRows_;
    QPlainTextEdit* log_;
    QPlainTextEdit* command_;
};

} // namespace vitrine::ui
