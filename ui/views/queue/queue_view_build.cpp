// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the queue page.
#include <QCheckBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QTableView>
#include <QTreeView>
#include <QVBoxLayout>

#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/queue/queue_model.h"
#include "ui/views/queue/queue_delegate.h"
#include "ui/views/queue/queue_panel.h"
#include "ui/views/queue/queue_view.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/plan_lane.h"
#include "ui/widgets/plots/sweep_plots.h"

namespace vitrine::ui {

namespace {

constexpr int kSectionHead = 24, kSentenceHeight = 64, kSweepHeight = 224;

/// A line over a part of the page: what it is, what that means, facts at the right.
QWidget* partHead(const QString& title, const QString& words, TextLabel*& facts, QWidget* parent,
                  TextLabel** titleLabel = nullptr, TextLabel** wordsLabel = nullptr) {
    auto* head = new Surface(Surface::Fill::Panel, Surface::Top, parent);
    head->setFixedHeight(kSectionHead);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(11, 1, 12, 0);
    row->setSpacing(8);
    auto* name = new TextLabel(title, TypeRole::Table, TextColor::Text1, true, head);
    auto* more = new TextLabel(words, TypeRole::Table, TextColor::Text3, false, head);
    more->setElide(true);
    facts = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, head);
    row->addWidget(name);
    row->addWidget(more, 1);
    row->addWidget(facts);
    if (titleLabel != nullptr) {
        *titleLabel = name;
    }
    if (wordsLabel != nullptr) {
        *wordsLabel = more;
    }
    return head;
}

QVBoxLayout* noSpace(QWidget* parent) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

} // namespace

void QueueView::buildHeader() {
    QStringList titles;
    for (const engine::Workload* workload : engine::workloadsOfForm("run")) {
        titles << tr(std::string(workload->title).c_str());
    }
    titles << tr("Queue");
    segments_ = header()->addSegments(titles, tr("Page"));
    segments_->setCurrent(static_cast<int>(titles.size()) - 1);
    goOn_ = header()->addCheck({}, true);
    goOn_->setToolTip(tr("Go on with the next run after one that failed"));
    add_ = new QPushButton(this);
    add_->setToolTip(tr("The experiment of run A once more, or of the form of Run"));
    sweep_ = new QPushButton(this);
    pause_ = new QPushButton(tr("Pause"), this);
    for (QPushButton* button : {add_, sweep_, pause_}) {
        setControlHeight(button, 24);
        header()->addRightControl(button);
    }
    header()->setTableButton(true);
    nameControls();
}

/// In a narrow window the segments have the room.
void QueueView::nameControls() {
    goOn_->setText(narrow_ ? tr("Go on") : tr("Keep going"));
    add_->setText(narrow_ ? tr("Add") : tr("Add a run"));
    sweep_->setText(narrow_ ? tr("Sweep") : tr("New sweep"));
}

void QueueView::buildBody() {
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, this);
    QVBoxLayout* column = noSpace(body);
    notice_ = new ErrorStrip(body, ErrorStrip::Tone::Warn);
    notice_->hide();
    column->addWidget(notice_);
    auto* top = new Surface(Surface::Fill::Panel, Surface::Top, body);
    top->setFixedHeight(kSentenceHeight);
    QVBoxLayout* words = noSpace(top);
    words->setContentsMargins(11, 6, 12, 8);
    sentence_ = new TextLabel({}, TypeRole::Sentence, TextColor::Text1, false, top);
    sentence_->setTextFormat(Qt::RichText);
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, top);
    facts_->setElide(true);
    words->addWidget(sentence_);
    words->addWidget(facts_);
    column->addWidget(top);
    planBox_ = new QWidget(body);
    QVBoxLayout* plan = noSpace(planBox_);
    plan->addWidget(partHead(tr("Plan of this machine"), tr("peak memory in GiB over the clock, one run at a time"),
                             planFacts_, planBox_));
    plan_ = new PlanLane(planBox_);
    plan->addWidget(plan_);
    column->addWidget(planBox_);
    column->addWidget(
        partHead(tr("Queue"), tr("drag a row, or Alt+Up and Alt+Down, to change the order"), counts_, body));
    ask_ = new Surface(Surface::Fill::Panel, Surface::Top, body);
    auto* asks = new QHBoxLayout(ask_);
    asks->setContentsMargins(11, 4, 12, 4);
    askWords_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, ask_);
    endIt_ = new QPushButton(ask_);
    keep_ = new QPushButton(tr("Keep"), ask_);
    asks->addWidget(askWords_);
    for (QPushButton* button : {endIt_, keep_}) {
        setControlHeight(button, 22);
        asks->addWidget(button);
    }
    asks->addStretch(1);
    ask_->hide();
    column->addWidget(ask_);
    table_ = new QTableView(body);
    table_->setModel(model_);
    table_->setItemDelegate(delegate_);
    table_->setAccessibleName(tr("Queue"));
    table_->setFrameShape(QFrame::NoFrame);
    table_->setShowGrid(false);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    table_->setDragDropMode(QAbstractItemView::InternalMove);
    table_->setDragDropOverwriteMode(false);
    table_->setTabKeyNavigation(false);
    table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setMinimumSectionSize(20);
    table_->horizontalHeader()->setFixedHeight(kSectionHead);
    table_->horizontalHeader()->setHighlightSections(false);
    table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    table_->installEventFilter(this);
    column->addWidget(table_, 1);
    column->addWidget(buildSweep());
    setBody(body);
    makeTwin(tr("Queue as a table"));
}

QWidget* QueueView::buildSweep() {
    sweepBox_ = new QWidget(this);
    QVBoxLayout* column = noSpace(sweepBox_);
    column->addWidget(partHead(tr("Sweep"), {}, sweepCounts_, sweepBox_, &sweepTitle_, &sweepShape_));
    part_ = new SegmentedControl({tr("Values"), tr("Steps"), tr("Table")}, sweepBox_);
    part_->hide();
    column->addWidget(part_, 0, Qt::AlignLeft);
    plots_ = new Surface(Surface::Fill::Canvas, Surface::Top, sweepBox_);
    plots_->setFixedHeight(kSweepHeight);
    auto* row = new QHBoxLayout(plots_);
    row->setContentsMargins(0, 1, 0, 0);
    row->setSpacing(0);
    values_ = new SweepValuePlot(plots_);
    steps_ = new SweepStepPlot(plots_);
    runs_ = new QTreeView(plots_);
    runs_->setAccessibleName(tr("Runs of the sweep"));
    runsModel_ = new FlatTreeModel(runs_);
    runs_->setModel(runsModel_);
    setUpTable(runs_, false, false);
    setUpCopy(runs_, runsModel_);
    runs_->setItemDelegate(new DeltaDelegate(runs_));
    runs_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    runs_->sortByColumn(-1, Qt::AscendingOrder); // by what was done and the loss, until a head is clicked
    row->addWidget(values_, 320);
    row->addWidget(new Surface(Surface::Fill::Canvas, Surface::Left, plots_));
    row->addWidget(steps_, 308);
    row->addWidget(new Surface(Surface::Fill::Canvas, Surface::Left, plots_));
    row->addWidget(runs_, 395);
    for (int i : {1, 3}) {
        row->itemAt(i)->widget()->setFixedWidth(1);
    }
    column->addWidget(plots_, 1);
    return sweepBox_;
}

} // namespace vitrine::ui
