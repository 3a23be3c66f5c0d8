// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/drawer.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>

#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/kernels/kernel_stats.h"
#include "ui/models/memory/event_table.h"
#include "ui/models/run/run_command.h"
#include "ui/views/common/session_edits.h"
#include "ui/views/kernels/kernel_list.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

QPlainTextEdit* textPage(const QString& name, QWidget* parent) {
    auto* page = new QPlainTextEdit(parent);
    page->setReadOnly(true);
    page->setFrameShape(QFrame::NoFrame);
    page->setAccessibleName(name);
    page->setFont(Theme::instance().monoFont(TypeRole::Table));
    return page;
}

QString noteTitle(TimeRange range) {
    return range.length() > 0 ? QObject::tr("%1 from %2").arg(durationText(range.length()), instantText(range.begin))
                              : QObject::tr("At %1").arg(instantText(range.begin));
}

} // namespace

Drawer::Drawer(const ViewServices& context, QWidget* parent) : QTabWidget(parent), context_(context) {
    setDocumentMode(true);
    addTab(makeEvents(), tr("Events"));
    addTab(makeNotes(), tr("Notes"));
    log_ = textPage(tr("Log"), this);
    log_->setPlaceholderText(tr("This run wrote no log."));
    addTab(log_, tr("Log"));
    command_ = textPage(tr("Command line"), this);
    addTab(command_, tr("Command line"));
    kernels_ = new KernelList(true, this);
    addTab(kernels_, tr("Kernels"));
    connect(context_.document, &SessionDocument::selectionChanged, this, &Drawer::refresh);
    connect(context_.document, &SessionDocument::opened, this, &Drawer::refresh);
    connect(context_.document, &SessionDocument::closed, this, &Drawer::refresh);
    connect(context_.document, &SessionDocument::notesChanged, this, &Drawer::refreshNotes);
    connect(context_.document, &SessionDocument::timelineChanged, this, [this](qint64 run) {
        if (run == context_.document->runA()) {
            refreshEvents();
        }
    });
    connect(context_.time, &TimeCursor::rangeChanged, this, &Drawer::refreshEvents);
    connect(context_.time, &TimeCursor::measuredChanged, this, &Drawer::refreshEvents);
    connect(this, &QTabWidget::currentChanged, this, &Drawer::refreshEvents);
    connect(kernels_, &KernelList::kernelChosen, this, [this](const QString& name) {
        // The next launch after the cursor, the first one again after the last.
        const TimelinePtr timeline = context_.document->timeline(context_.document->runA()).timeline;
        const base::TimeNs from = context_.time->cursor().value_or(-1);
        const base::SpanEvent* next = nullptr;
        for (const base::SpanEvent& span :
             timeline ? timeline->kernels().spans() : std::span<const base::SpanEvent>()) {
            const bool later = next == nullptr || (span.begin > from) > (next->begin > from) ||
                               ((span.begin > from) == (next->begin > from) && span.begin < next->begin);
            if (later && textOf(timeline->text(span.name.value)) == name) {
                next = &span;
            }
        }
        if (next != nullptr) {
            context_.time->select({0, next->scope.value});
            context_.time->goTo(next->begin);
        }
    });
    refresh();
}

QWidget* Drawer::makeEvents() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    events_ = new QTreeView(page);
    setUpTable(events_, false, true);
    events_->setSortingEnabled(false);
    events_->setAccessibleName(tr("Memory events"));
    eventsModel_ = new EventTableModel(this);
    events_->setModel(eventsModel_);
    const int widths[] = {110, 110, 110, 260, 110, 110, 260};
    for (int i = 0; i < EventTableModel::ColumnCount; ++i) {
        events_->setColumnWidth(i, widths[i]);
    }
    eventFacts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, page);
    eventFacts_->setContentsMargins(8, 4, 8, 4);
    column->addWidget(events_, 1);
    column->addWidget(eventFacts_);
    connect(eventsModel_, &EventTableModel::rebuilt, this, [this] {
        const qint64 shown = eventsModel_->rowCount(), all = static_cast<qint64>(eventsModel_->found());
        const QString where = context_.time->measured() ? tr("the measured range") : tr("the visible range");
        eventFacts_->setText(all == 0 ? tr("No memory events in %1.").arg(where)
                             : shown < all
                                 ? tr("The first %1 of %2 events in %3.").arg(countText(shown), countText(all), where)
                                 : tr("%1 events in %2.").arg(countText(all), where));
    });
    const auto go = [this](const QModelIndex& index) {
        if (index.isValid()) {
            if (const std::uint64_t id = eventsModel_->allocation(index.row()); id != 0) {
                context_.time->select({id, 0});
            }
            context_.time->setCursor(eventsModel_->row(index.row()).time);
        }
    };
    connect(events_, &QTreeView::clicked, this, go);
    connect(events_, &QTreeView::activated, this, go);
    return page;
}

QWidget* Drawer::makeNotes() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    notes_ = new QTreeView(page);
    setUpTable(notes_, false, true);
    notes_->setSortingEnabled(false);
    notes_->setAccessibleName(tr("Notes"));
    notesModel_ = new FlatTreeModel(this);
    notes_->setModel(notesModel_);
    notes_->setColumnWidth(0, 110);
    notes_->setColumnWidth(1, 110);
    column->addWidget(notes_, 1);
    auto* row = new QHBoxLayout;
    row->setContentsMargins(8, 4, 8, 4);
    row->setSpacing(8);
    noteText_ = new QLineEdit(page);
    noteText_->setAccessibleName(tr("Words of the note"));
    noteText_->setPlaceholderText(tr("A note at the cursor or about the measured range, Enter keeps it"));
    auto* keep = new QPushButton(tr("Keep"), page);
    removeNote_ = new QPushButton(tr("Remove"), page);
    for (QPushButton* button : {keep, removeNote_}) {
        setControlHeight(button, 22);
    }
    row->addWidget(noteText_, 1);
    row->addWidget(keep);
    row->addWidget(removeNote_);
    column->addLayout(row);
    connect(keep, &QPushButton::clicked, this, &Drawer::keepWords);
    connect(noteText_, &QLineEdit::returnPressed, this, &Drawer::keepWords);
    connect(removeNote_, &QPushButton::clicked, this, [this] { removeNote(chosen_); });
    const auto choose = [this](const QModelIndex& index) {
        if (const FlatNode* node = notesModel_->node(index)) {
            chooseNote(static_cast<qint64>(node->key));
            if (const sessions::TimelineNote* note = chosenNote()) {
                context_.time->goTo(note->timeBegin);
                if (note->timeEnd > note->timeBegin) {
                    context_.time->setMeasured(TimeRange{note->timeBegin, note->timeEnd});
                }
            }
        }
    };
    connect(notes_, &QTreeView::clicked, this, choose);
    connect(notes_, &QTreeView::activated, this, choose);
    return page;
}

void Drawer::showEvent(QShowEvent* event) {
    QTabWidget::showEvent(event);
    refreshEvents();
}

void Drawer::refresh() {
    const sessions::RunId id = context_.document->runA();
    const sessions::RunInfo* run = context_.document->run(id);
    command_->setPlainText(run != nullptr ? runCommandLine(*run) : QString());
    log_->clear();
    chosen_ = 0;
    showNotes({});
    refreshEvents();
    if (run == nullptr) {
        return;
    }
    context_.document->readTexts(id, this, [this](const std::vector<sessions::RunText>& texts) {
        for (const sessions::RunText& text : texts) {
            if (text.kind == "log") {
                log_->setPlainText(QString::fromStdString(text.body));
            }
        }
    });
    refreshNotes();
}

void Drawer::refreshKernels() {
    if (!isVisible() || currentWidget() != kernels_) {
        return;
    }
    const sessions::RunInfo* run = context_.document->run(context_.document->runA());
    const TimelinePtr timeline = run != nullptr ? context_.document->timeline(run->id).timeline : nullptr;
    kernels_->setSource(timeline, run != nullptr ? ceilingsOf(*run) : Ceilings(),
                        context_.time->measured().value_or(context_.time->range()),
                        context_.time->measured() ? tr("the measured range") : tr("the visible range"));
}

void Drawer::refreshEvents() {
    refreshKernels();
    if (!isVisible() || currentIndex() != 0) {
        return; // collecting costs time that nobody sees
    }
    const sessions::RunId id = context_.document->runA();
    const TimelinePtr timeline = id != 0 ? context_.document->timeline(id).timeline : nullptr;
    eventsModel_->setSource(timeline, context_.time->measured().value_or(context_.time->range()));
}

void Drawer::refreshNotes() {
    context_.document->readNotes(context_.document->runA(), this,
                                 [this](const std::vector<sessions::TimelineNote>& notes) { showNotes(notes); });
}

void Drawer::showNotes(const std::vector<sessions::TimelineNote>& notes) {
    noteRows_ = notes;
    auto table = std::make_shared<FlatTree>();
    table->columns = {{tr("Time"), true}, {tr("Length"), true}, {tr("Note"), false}};
    for (const sessions::TimelineNote& note : notes) {
        FlatNode node;
        node.key = static_cast<quint64>(note.id);
        node.cells = {
            FlatCell(instantText(note.timeBegin), static_cast<qint64>(note.timeBegin)),
            FlatCell(note.timeEnd > note.timeBegin ? durationText(note.timeEnd - note.timeBegin) : unknownText(),
                     static_cast<qint64>(note.timeEnd - note.timeBegin)),
            FlatCell(QString::fromStdString(note.body))};
        table->nodes.push_back(std::move(node));
    }
    notesModel_->setTree(std::move(table));
    if (editNewest_ && !notes.empty()) {
        editNewest_ = false;
        const auto newest = std::ranges::max_element(notes, {}, &sessions::TimelineNote::id);
        editNote(newest->id);
    } else {
        chooseNote(chosen_);
    }
}

const sessions::TimelineNote* Drawer::chosenNote() const {
    const auto found = std::ranges::find(noteRows_, chosen_, &sessions::TimelineNote::id);
    return found == noteRows_.end() ? nullptr : &*found;
}

void Drawer::chooseNote(qint64 note) {
    chosen_ = note;
    const sessions::TimelineNote* known = chosenNote();
    chosen_ = known != nullptr ? note : 0;
    removeNote_->setEnabled(known != nullptr);
    if (known != nullptr) {
        noteText_->setText(QString::fromStdString(known->body));
        notes_->setCurrentIndex(notesModel_->indexOfKey(static_cast<quint64>(note)));
    } else {
        noteText_->clear();
        notes_->clearSelection();
    }
}

void Drawer::editNote(qint64 note) {
    setCurrentIndex(1);
    chooseNote(note);
    noteText_->setFocus(Qt::OtherFocusReason);
    noteText_->selectAll();
}

void Drawer::addNote(TimeRange range) {
    const sessions::RunId run = context_.document->runA();
    if (run == 0) {
        return;
    }
    const sessions::TimelineNote note{0, range.begin, range.end, noteTitle(range).toStdString()};
    editNewest_ = true;
    setCurrentIndex(1);
    context_.edits->addTimelineNote(run, note);
}

void Drawer::keepWords() {
    const std::string words = noteText_->text().trimmed().toStdString();
    const sessions::RunId run = context_.document->runA();
    if (run == 0 || words.empty()) {
        return;
    }
    if (const sessions::TimelineNote* known = chosenNote()) {
        sessions::TimelineNote changed = *known;
        changed.body = words;
        context_.edits->changeTimelineNote(run, *known, changed);
        chooseNote(0);
        return;
    }
    const base::TimeNs at = context_.time->cursor().value_or(context_.time->range().begin);
    const TimeRange range = context_.time->measured().value_or(TimeRange{at, at});
    const sessions::TimelineNote note{0, range.begin, range.end, words};
    context_.edits->addTimelineNote(run, note);
    noteText_->clear();
}

void Drawer::removeNote(qint64 note) {
    const auto known = std::ranges::find(noteRows_, note, &sessions::TimelineNote::id);
    if (known != noteRows_.end()) {
        context_.edits->deleteTimelineNote(context_.document->runA(), *known);
    }
}

bool Drawer::removeNoteAt(base::TimeNs time, base::TimeNs reach) {
    const sessions::TimelineNote* nearest = nullptr;
    base::TimeNs distance = reach + 1;
    for (const sessions::TimelineNote& note : noteRows_) {
        const base::TimeNs end = std::max(note.timeBegin, note.timeEnd);
        const base::TimeNs away = time < note.timeBegin ? note.timeBegin - time : time > end ? time - end : 0;
        if (away < distance) {
            distance = away;
            nearest = &note;
        }
    }
    if (nearest != nullptr) {
        removeNote(nearest->id);
    }
    return nearest != nullptr;
}

} // namespace vitrine::ui
