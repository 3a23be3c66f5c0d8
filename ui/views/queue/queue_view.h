// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The page Queue of the Run view: what runs, what waits and when it ends, what does not fit and what would make it fit,
// and the runs of a sweep beside each other.

#include <QTimer>
#include <string>

#include "ui/models/queue/queue_runner.h"
#include "ui/views/common/document_view.h"

class QSplitter;
class QTableView;
class QTreeView;

namespace vitrine::ui {

class PlanLane;
class QueueDelegate;
class QueueModel;
class QueuePanel;
class SweepStepPlot;
class SweepValuePlot;

class QueueView final : public DocumentView {
    Q_OBJECT

public:
    explicit QueueView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool perform(const QString& action) override;
    bool settled() const override;
    void takeExperiment(const QString& experimentJson) override; ///< adds it

    QueueRunner* runner() const { return runner_; }
    QueueModel* model() const { return model_; }
    QTableView* table() const { return table_; }
    QueuePanel* panel() const { return panel_; }
    std::int64_t chosen() const { return chosen_; }
    void choose(std::int64_t number);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void refresh() override;
    void onSelection() override {} // the queue does not depend on the runs that are A and B
    QList<QWidget*> bodyStops() const override;
    QString copyText() const override;

private:
    void buildHeader();
    void nameControls();
    void buildBody();
    QWidget* buildSweep();
    void connectParts();
    void connectPanel();
    void showQueue();
    void showClock();
    void updateSections();
    void updateRowHeights();
    void sizeSweepColumns();
    void sizeQueueColumns();
    void addRun();
    void newSweep(const engine::SweepPlan* like);
    std::string baseExperiment() const;
    void openRun(std::int64_t number);
    bool keyOfTable(int key, Qt::KeyboardModifiers modifiers);
    void moveChosen(int by);
    void stepChosen(int by);
    void askToEnd(std::int64_t number);

    QueueRunner* runner_;
    QueueModel* model_;
    QueueDelegate* delegate_;
    QueuePanel* panel_;
    SegmentedControl* segments_ = nullptr;
    QCheckBox* goOn_ = nullptr;
    QPushButton *add_ = nullptr, *sweep_ = nullptr, *pause_ = nullptr, *keep_ = nullptr, *endIt_ = nullptr;
    QWidget *ask_ = nullptr, *planBox_ = nullptr, *sweepBox_ = nullptr, *plots_ = nullptr;
    TextLabel *sentence_ = nullptr, *facts_ = nullptr, *planFacts_ = nullptr, *counts_ = nullptr, *askWords_ = nullptr;
    TextLabel *sweepTitle_ = nullptr, *sweepShape_ = nullptr, *sweepCounts_ = nullptr;
    ErrorStrip* notice_ = nullptr;
    PlanLane* plan_ = nullptr;
    QTableView* table_ = nullptr;
    SweepValuePlot* values_ = nullptr;
    SweepStepPlot* steps_ = nullptr;
    QTreeView* runs_ = nullptr;
    FlatTreeModel* runsModel_ = nullptr;
    SegmentedControl* part_ = nullptr; ///< of the sweep, in a small window
    QTimer clock_;
    std::int64_t chosen_ = 0, asked_ = 0;
    bool narrow_ = false, filling_ = false;
};

} // namespace vitrine::ui
