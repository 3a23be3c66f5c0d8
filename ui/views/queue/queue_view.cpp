// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/queue/queue_view.h"

#include <QCheckBox>
#include <QHeaderView>
#include <QLayout>
#include <QPushButton>
#include <QTableView>
#include <QTreeView>
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/sweep/sweep_table.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/queue/queue_model.h"
#include "ui/models/queue/queue_words.h"
#include "ui/views/queue/queue_delegate.h"
#include "ui/views/queue/queue_panel.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/plots/plan_lane.h"
#include "ui/widgets/plots/sweep_plots.h"

namespace vitrine::ui {

namespace {

constexpr int kClockMs = 1000;
constexpr int kNarrow = 1000; ///< a page of this width or less has one place for the parts of the sweep
constexpr int kColumnWidths[] = {45, 212, 144, 230, 190, 84}; // the clock takes the rest

} // namespace

QueueView::QueueView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("queue"), tr("Run"), context, parent),
      runner_(new QueueRunner(context.document, context.runs, this, context.devices)), model_(new QueueModel(this)),
      delegate_(new QueueDelegate(this)), panel_(new QueuePanel) {
    buildHeader();
    buildBody();
    connectParts();
    clock_.setInterval(kClockMs);
    followDocument();
    showQueue();
}

QWidget* QueueView::inspector() {
    return panel_;
}

QWidget* QueueView::inspectorHeader() {
    return panel_->header();
}

bool QueueView::settled() const {
    return !runner_->pricing() && DocumentView::settled();
}

QList<QWidget*> QueueView::bodyStops() const {
    return QList<QWidget*>{plan_, table_, values_, steps_, runs_} + panel_->stops();
}

void QueueView::refresh() {
    showQueue();
}

void QueueView::showQueue() {
    filling_ = true;
    const engine::RunQueue& queue = runner_->queue();
    const std::string sweep = shownSweep(queue);
    if (chosen_ != 0 && queue.find(chosen_) == nullptr) {
        chosen_ = 0;
    }
    if (chosen_ == 0 && queue.running() != nullptr) {
        chosen_ = queue.running()->number;
    }
    goOn_->setChecked(queue.goesOnAfterFailure());
    const engine::QueuedRun* running = queue.running();
    const bool held = queue.paused() || queue.pausesAfterRun();
    pause_->setText(queue.paused()           ? tr("Go on")
                    : queue.pausesAfterRun() ? tr("Do not pause")
                    : running != nullptr     ? tr("Pause after %1").arg(runText(running->number))
                                             : tr("Pause"));
    pause_->setEnabled(held || !queue.runs().empty());
    runsModel_->setTree(sweepTree(queue, sweep));
    sizeSweepColumns();
    const SweepPicture picture = sweepPicture(queue, sweep);
    values_->setSweep(picture);
    steps_->setSweep(picture);
    const auto interrupted = std::ranges::find(queue.runs(), true, &engine::QueuedRun::interrupted);
    notice_->setVisible(interrupted != queue.runs().end());
    if (interrupted != queue.runs().end()) {
        notice_->setError(tr("1 run was interrupted at step %1.").arg(countText(interrupted->step)));
        notice_->setAction(tr("Resume"), [this, number = interrupted->number] { runner_->goOnWith(number, true); });
    }
    filling_ = false;
    showClock();
    updateSections();
    if (queue.runs().empty() && !panel_->drafting()) {
        showEmpty(tr("Nothing waits."), runner_->canRun() ? tr("New sweep") : QString(), [this] { newSweep(nullptr); });
    } else {
        showEmpty({});
    }
}

void QueueView::showClock() {
    const engine::RunQueue& queue = runner_->queue();
    const std::int64_t now = base::wallClockMs();
    const std::string sweep = shownSweep(queue);
    sentence_->setText(queueSentence(queue));
    facts_->setText(queueFacts(queue, now));
    counts_->setText(queueCounts(queue));
    const QueuePlan plan = queuePlan(queue, now);
    planFacts_->setText(tr("%1 to %2").arg(clockText(plan.beginMs), clockText(plan.endMs)));
    plan_->setPlan(plan);
    filling_ = true;
    model_->setQueue(queue, now);
    updateRowHeights();
    if (const int row = model_->rowOf(chosen_); row >= 0 && table_->currentIndex().row() != row) {
        table_->selectRow(row);
    }
    filling_ = false;
    panel_->setQueue(queue, sweep, chosen_, now);
    if (header()->tableShown()) {
        twinModel()->setTree(queueTree(queue, now));
    }
    for (SweepPlot* plot : std::initializer_list<SweepPlot*>{values_, steps_}) {
        plot->setChosen(chosen_);
    }
    plan_->setChosen(chosen_);
    queue.running() != nullptr&& isVisible() ? clock_.start() : clock_.stop();
}

void QueueView::sizeSweepColumns() {
    constexpr int kRun = 46, kValue = 50, kLoss = 54, kAbove = 76, kSteps = 50;
    const int values = runsModel_->columnCount() - 5; // without run, loss, above best, steps and state
    for (int i = 0; i + 1 < runsModel_->columnCount(); ++i) {
        runs_->header()->resizeSection(i, i == 0            ? kRun
                                          : i <= values     ? kValue
                                          : i == values + 1 ? kLoss
                                          : i == values + 2 ? kAbove
                                                            : kSteps);
    }
}

void QueueView::updateRowHeights() {
    table_->clearSpans();
    for (int row = 0; row < model_->rowCount(); ++row) {
        table_->setRowHeight(row, delegate_->rowHeight(model_->row(row)));
        if (model_->row(row).kind == QueueRow::Kind::Fold) {
            table_->setSpan(row, 0, 1, QueueModel::kColumns);
        }
    }
}

void QueueView::updateSections() {
    const engine::RunQueue& queue = runner_->queue();
    const std::string sweep = shownSweep(queue);
    const auto plan = queue.sweeps().find(sweep);
    sweepBox_->setVisible(plan != queue.sweeps().end());
    planBox_->setVisible(queue.runs().size() > 1);
    plan_->setVisible(!narrow_);
    if (plan == queue.sweeps().end()) {
        return;
    }
    const engine::SweepTable table = engine::sweepTable(queue, sweep);
    QStringList names, sizes;
    for (const engine::SweepOption& option : plan->second.options) {
        names << QString::fromStdString(option.key).replace(QLatin1Char('_'), QLatin1Char(' '));
        sizes << QString::number(option.values.size());
    }
    sweepTitle_->setText(tr("Sweep %1").arg(QString::fromStdString(sweep)));
    sweepShape_->setText(tr("%1, %2 = %3 runs")
                             .arg(names.join(QStringLiteral(" x ")), sizes.join(QStringLiteral(" x ")))
                             .arg(table.rows.size()));
    sweepCounts_->setText(tr("%1 done, %2 running, %3 waiting").arg(table.done).arg(table.running).arg(table.waiting));
    const int part = part_->current();
    part_->setVisible(narrow_);
    values_->setVisible(!narrow_ || part == 0);
    steps_->setVisible(!narrow_ || part == 1);
    runs_->setVisible(!narrow_ || part == 2);
    for (int i : {1, 3}) {
        plots_->layout()->itemAt(i)->widget()->setVisible(!narrow_);
    }
}

void QueueView::resizeEvent(QResizeEvent* event) {
    DocumentView::resizeEvent(event);
    if (const bool narrow = width() <= kNarrow; std::exchange(narrow_, narrow) != narrow) {
        delegate_->setNarrow(narrow);
        nameControls();
        updateSections();
        updateRowHeights();
        sizeQueueColumns();
    }
}

void QueueView::sizeQueueColumns() {
    QHeaderView* head = table_->horizontalHeader();
    int used = 0;
    for (int i = 0; i < QueueModel::Clock; ++i) {
        const int width = narrow_ && i == QueueModel::Progress ? kColumnWidths[i] - 60 : kColumnWidths[i];
        head->resizeSection(i, width);
        used += width;
    }
    // What is left goes to the clock, then to progress and names.
    constexpr int kClock = 112, kScrollBar = 10;
    const int rest = std::max(table_->width() - kScrollBar - used, 0);
    const int clock = narrow_ ? 0 : std::min(rest, kClock);
    table_->setColumnHidden(QueueModel::Clock, narrow_);
    head->resizeSection(QueueModel::Clock, clock);
    head->resizeSection(QueueModel::Progress, head->sectionSize(QueueModel::Progress) + (rest - clock) * 2 / 3);
    head->resizeSection(QueueModel::Name, head->sectionSize(QueueModel::Name) + (rest - clock) / 3);
}

void QueueView::choose(std::int64_t number) {
    if (number == 0 || filling_) {
        return;
    }
    chosen_ = number;
    const engine::QueuedRun* run = runner_->queue().find(number);
    if (run != nullptr && run->run > 0 && runInfo(run->run) != nullptr) {
        document()->setRunA(run->run);
    }
    showClock();
    setReadout(model_->rowOf(number) >= 0 ? model_->spoken(model_->rowOf(number)) : runText(number));
}

QString QueueView::copyText() const {
    const engine::RunQueue& queue = runner_->queue();
    QStringList out{QString::fromStdString(engine::sweepSentence(queue, shownSweep(queue))),
                    queueFacts(queue, base::wallClockMs())};
    const FlatTreePtr tree = sweepTree(queue, shownSweep(queue));
    QStringList head;
    for (const FlatColumn& column : tree->columns) {
        head << column.title;
    }
    out << head.join(QLatin1Char('\t'));
    for (const FlatNode& node : tree->nodes) {
        QStringList cells;
        for (const FlatCell& cell : node.cells) {
            cells << (cell.raw.isEmpty() ? cell.text : cell.raw);
        }
        out << cells.join(QLatin1Char('\t'));
    }
    return out.join(QLatin1Char('\n'));
}

} // namespace vitrine::ui
