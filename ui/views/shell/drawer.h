// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The drawer at the bottom: what run A wrote down besides its plots. Events, Notes, Log, Command line, Kernels.

#include <QTabWidget>

#include "ui/widgets/base/view.h"

class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QTreeView;

namespace vitrine::ui {

class EventTableModel;
class FlatTreeModel;
class KernelList;

class Drawer final : public QTabWidget {
    Q_OBJECT

public:
    Drawer(const ViewServices& context, QWidget* parent);

    /// Keeps a note about a stretch or an instant in the session and opens it for its words.
    void addNote(TimeRange range);
    /// Shows the Notes with one of them in the field.
    void editNote(qint64 note);
    /// Removes the note whose stretch holds the time, else the nearest within `reach`; false: there is none.
    bool removeNoteAt(base::TimeNs time, base::TimeNs reach);

    EventTableModel* events() const { return eventsModel_; }
    QTreeView* eventList() const { return events_; }
    QTreeView* noteList() const { return notes_; }
    KernelList* kernels() const { return kernels_; }
    QLineEdit* noteField() const { return noteText_; }

protected:
    void showEvent(QShowEvent* event) override;

private:
    QWidget* makeEvents();
    QWidget* makeNotes();
    void refresh();
    void refreshNotes();
    void refreshEvents();
    void refreshKernels();
    void showNotes(const std::vector<sessions::TimelineNote>& notes);
    void chooseNote(qint64 note);
    void keepWords();
    void removeNote(qint64 note);
    const sessions::TimelineNote* chosenNote() const;
    /// An edit of the notes on the session's thread; everything that shows notes then reads them again.

    ViewServices context_;
    QTreeView* events_;
    EventTableModel* eventsModel_;
    TextLabel* eventFacts_;
    KernelList* kernels_;
    QTreeView* notes_;
    FlatTreeModel* notesModel_;
    QLineEdit* noteText_;
    QPushButton* removeNote_;
    std::vector<sessions::TimelineNote> noteRows_;
    qint64 chosen_ = 0;
    bool editNewest_ = false; ///< the note that was added last opens when it is there
    QPlainTextEdit* log_;
    QPlainTextEdit* command_;
};

} // namespace vitrine::ui
