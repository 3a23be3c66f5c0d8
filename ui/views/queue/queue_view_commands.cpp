// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the queue page does: adding, ordering, holding back and ending runs, by mouse and by key.
#include <QCheckBox>
#include <QItemSelectionModel>
#include <QKeyEvent>
#include <QMenu>
#include <QPushButton>
#include <QTableView>
#include <QTreeView>
#include <algorithm>

#include "base/error.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/sweep/sweep_table.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/queue/queue_model.h"
#include "ui/models/queue/queue_words.h"
#include "ui/views/common/session_place.h"
#include "ui/views/queue/queue_delegate.h"
#include "ui/views/queue/queue_panel.h"
#include "ui/views/queue/queue_view.h"
#include "ui/widgets/plots/plan_lane.h"
#include "ui/widgets/plots/sweep_plots.h"

namespace vitrine::ui {

void QueueView::connectParts() {
    connect(segments_, &SegmentedControl::currentChanged, this, [this](int index) {
        const int own = segments_->count() - 1;
        if (index != own) {
            segments_->setCurrent(own); // this page keeps its place
            emit openView(QStringLiteral("run/%1").arg(index));
        }
    });
    connect(goOn_, &QCheckBox::toggled, this, [this](bool on) {
        if (!filling_) {
            runner_->setGoOnAfterFailure(on);
        }
    });
    connect(add_, &QPushButton::clicked, this, &QueueView::addRun);
    connect(sweep_, &QPushButton::clicked, this, [this] { newSweep(nullptr); });
    connect(pause_, &QPushButton::clicked, this, [this] {
        const engine::RunQueue& queue = runner_->queue();
        queue.paused() ? runner_->resume() : runner_->pauseAfterRun(!queue.pausesAfterRun());
    });
    connect(runner_, &QueueRunner::changed, this, &QueueView::showQueue);
    connect(runner_, &QueueRunner::said, this, [this](const QString& text) { setReadout(text); });
    connect(runner_, &QueueRunner::progress, this, [this] {
        if (isVisible() && !clock_.isActive()) {
            clock_.start(); // texts follow once a second, however fast the steps are
        }
    });
    connect(&clock_, &QTimer::timeout, this, &QueueView::showClock);
    connect(header(), &ViewHeader::tableToggled, this, &QueueView::showClock);
    connect(delegate_, &QueueDelegate::nearestWanted, runner_, &QueueRunner::useNearest);
    connect(delegate_, &QueueDelegate::whyWanted, this, &QueueView::openRun);
    connect(delegate_, &QueueDelegate::foldWanted, this, [this](int row) {
        model_->toggle(row);
        updateRowHeights();
    });
    connect(model_, &QueueModel::moveWanted, this,
            [this](qint64 number, int place) { runner_->move(number, static_cast<std::size_t>(place)); });
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (now.isValid() && !filling_) {
            choose(model_->row(now.row()).number);
        }
    });
    connect(table_, &QTableView::doubleClicked, this,
            [this](const QModelIndex& index) { openRun(model_->row(index.row()).number); });
    connect(plan_, &ItemPlot::itemClicked, this, [this](int item) { choose(plan_->numberOf(item)); });
    for (SweepPlot* plot : std::initializer_list<SweepPlot*>{values_, steps_}) {
        connect(plot, &ItemPlot::itemClicked, this, [this, plot](int item) { choose(plot->numberOf(item)); });
        connect(plot, &PlotWidget::readoutChanged, this, &QueueView::setReadout);
    }
    connect(plan_, &PlotWidget::readoutChanged, this, &QueueView::setReadout);
    connect(runs_, &QTreeView::clicked, this, [this](const QModelIndex& index) {
        if (const FlatNode* node = runsModel_->node(index)) {
            choose(static_cast<std::int64_t>(node->key));
        }
    });
    connect(part_, &SegmentedControl::currentChanged, this, [this] { updateSections(); });
    connect(endIt_, &QPushButton::clicked, this, [this] {
        ask_->hide();
        runner_->end(asked_);
    });
    connect(keep_, &QPushButton::clicked, ask_, &QWidget::hide);
    for (QPushButton* button : {add_, sweep_}) {
        button->setEnabled(runner_->canRun());
    }
    connectPanel();
}

void QueueView::connectPanel() {
    connect(panel_, &QueuePanel::sweepWanted, this, [this](engine::SweepPlan plan) { // a copy: the draft ends here
        try {
            runner_->setFile(fileForRuns(*document(), {}));
            panel_->endDraft();
            runner_->addSweep(plan);
        } catch (const base::Error& error) {
            showError(QString::fromStdString(error.message()));
        }
    });
    connect(panel_, &QueuePanel::draftEnded, this, &QueueView::showQueue);
    connect(panel_, &QueuePanel::copyWanted, this, [this] {
        const auto plan = runner_->queue().sweeps().find(shownSweep(runner_->queue()));
        if (plan != runner_->queue().sweeps().end()) {
            newSweep(&plan->second);
        }
    });
    connect(panel_, &QueuePanel::ruleChanged, this, [this](const std::optional<engine::StopRule>& rule) {
        runner_->setRule(shownSweep(runner_->queue()), rule);
    });
    connect(panel_, &QueuePanel::endWanted, this, &QueueView::askToEnd);
    connect(panel_, &QueuePanel::endSweepWanted, this, [this] { runner_->endSweep(shownSweep(runner_->queue())); });
    connect(panel_, &QueuePanel::liveWanted, this, &QueueView::openRun);
}

std::string QueueView::baseExperiment() const {
    if (const engine::QueuedRun* run = runner_->queue().find(chosen_)) {
        return run->spec;
    }
    const sessions::RunInfo* run = runInfo(runA());
    return run != nullptr ? run->specJson : std::string();
}

void QueueView::addRun() {
    auto* menu = new QMenu(add_);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    const auto offer = [&](const QString& words, const std::string& spec) {
        const auto experiment = engine::Experiment::read(spec);
        if (experiment && !experiment->isPlan()) {
            menu->addAction(words, this, [this, text = experiment->jsonText()] { takeExperiment(textOf(text)); });
        }
    };
    if (const engine::QueuedRun* run = runner_->queue().find(chosen_)) {
        offer(tr("%1 once more").arg(runText(run->number)), run->spec);
    }
    if (const sessions::RunInfo* run = runInfo(runA())) {
        offer(tr("Run A once more: %1").arg(QString::fromStdString(run->name)), run->specJson);
    }
    if (menu->isEmpty()) {
        menu->addAction(tr("Start a first run in Run or Fine-tune"), this,
                        [this] { emit openView(QStringLiteral("run")); });
    }
    menu->popup(add_->mapToGlobal(QPoint(0, add_->height())));
}

void QueueView::takeExperiment(const QString& experimentJson) {
    runner_->setFile(fileForRuns(*document(), {}));
    choose(runner_->add(experimentJson.toStdString()));
}

void QueueView::newSweep(const engine::SweepPlan* like) {
    engine::SweepPlan plan;
    if (like != nullptr) {
        plan = *like;
    } else {
        const auto base = engine::Experiment::read(baseExperiment());
        if (!base || base->isPlan()) {
            showError(tr("A sweep begins from a run: choose one as A, or start a first one in Run or Fine-tune."));
            return;
        }
        plan.name = "sweep";
        plan.base = base->jsonText();
        const bool trains = engine::optionApplies(*engine::findOption("lr"), base->workload().name, false);
        if (trains) {
            plan.options.push_back({"lr", {base->valueText("lr")}});
        }
    }
    showError({});
    showEmpty({});
    panel_->beginDraft(std::move(plan));
}

void QueueView::openRun(std::int64_t number) {
    const engine::QueuedRun* run = runner_->queue().find(number);
    if (run == nullptr || run->run == 0 || runInfo(run->run) == nullptr) {
        return;
    }
    document()->setRunA(run->run);
    const sessions::RunInfo* info = runInfo(run->run);
    const engine::Workload* workload = engine::workloadOfRun(info->workload);
    const bool memory = info->status == sessions::RunStatus::OutOfMemory;
    emit openView(memory                                                           ? QStringLiteral("memory")
                  : workload != nullptr && engine::showsIn(*workload, "fine-tune") ? QStringLiteral("fine-tune")
                  : workload != nullptr && engine::showsIn(*workload, "rl")        ? QStringLiteral("rl")
                  : workload != nullptr && engine::showsIn(*workload, "batching")  ? QStringLiteral("batching")
                                                                                   : QStringLiteral("run"));
}

void QueueView::askToEnd(std::int64_t number) {
    const engine::QueuedRun* run = runner_->queue().find(number);
    const bool open = run != nullptr && (run->state == engine::QueueState::Running || run->interrupted);
    if (!open) {
        return;
    }
    asked_ = number;
    askWords_->setText(tr("End %1? What it has done is kept.").arg(runText(number)));
    endIt_->setText(tr("End %1").arg(runText(number)));
    ask_->show();
    endIt_->setFocus();
}

bool QueueView::eventFilter(QObject* watched, QEvent* event) {
    if (watched == table_ && event->type() == QEvent::Resize) {
        sizeQueueColumns();
    }
    if (watched == table_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (keyOfTable(key->key(), key->modifiers())) {
            return true;
        }
    }
    return DocumentView::eventFilter(watched, event);
}

void QueueView::moveChosen(int by) {
    const std::size_t place = model_->placeOf(chosen_);
    if (by < 0 && place == 0) {
        return;
    }
    runner_->move(chosen_, static_cast<std::size_t>(static_cast<std::int64_t>(place) + by));
}

void QueueView::stepChosen(int by) {
    const int row = std::clamp(model_->rowOf(chosen_) + by, 0, std::max(model_->rowCount() - 1, 0));
    if (row < model_->rowCount()) {
        table_->selectRow(row);
    }
}

bool QueueView::keyOfTable(int key, Qt::KeyboardModifiers modifiers) {
    const engine::RunQueue& queue = runner_->queue();
    const engine::QueuedRun* run = queue.find(chosen_);
    if (modifiers == Qt::AltModifier && (key == Qt::Key_Up || key == Qt::Key_Down)) {
        moveChosen(key == Qt::Key_Up ? -1 : 1);
        return true;
    }
    if (modifiers == Qt::AltModifier && key == Qt::Key_Home) {
        runner_->move(chosen_, 0);
        return true;
    }
    if (modifiers != Qt::NoModifier) {
        return false;
    }
    switch (key) {
    case Qt::Key_Period:
    case Qt::Key_Comma:
        stepChosen(key == Qt::Key_Period ? 1 : -1);
        return true;
    case Qt::Key_P: {
        const engine::SweepTable table = engine::sweepTable(queue, shownSweep(queue));
        choose(table.bestRow() != nullptr ? table.bestRow()->number : 0);
        return true;
    }
    case Qt::Key_Space:
        model_->toggle(table_->currentIndex().row());
        updateRowHeights();
        return true;
    case Qt::Key_N:
        newSweep(nullptr);
        return true;
    case Qt::Key_H:
        if (run != nullptr && run->interrupted) {
            runner_->goOnWith(chosen_, false);
        } else if (run != nullptr) {
            runner_->hold(chosen_, run->state != engine::QueueState::Paused);
        }
        return true;
    case Qt::Key_U:
        runner_->useNearest(chosen_);
        return true;
    case Qt::Key_E:
        askToEnd(chosen_);
        return true;
    case Qt::Key_Delete:
        runner_->remove(chosen_);
        return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        openRun(chosen_);
        return true;
    default:
        return false;
    }
}

bool QueueView::perform(const QString& action) {
    if (action == QLatin1String("run.stop")) {
        const engine::QueuedRun* running = runner_->queue().running();
        askToEnd(running != nullptr ? running->number : 0);
        return running != nullptr;
    }
    return DocumentView::perform(action);
}

} // namespace vitrine::ui
