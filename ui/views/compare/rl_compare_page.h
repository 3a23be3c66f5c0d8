// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two runs of reinforcement learning beside each other: their figures in the last step that both have, and rewards,
// difference and time of every step. It follows runs that still go on.

#include <QWidget>
#include <utility>

#include "sessions/session_file.h"
#include "ui/models/common/latest_job.h"
#include "ui/models/compare/rl_compare.h"
#include "ui/models/rl/rl_curves.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/base/controls.h"

class QTableView;

namespace vitrine::ui {

class LaneStack;
class SeriesLane;

class RlComparePage final : public QWidget {
    Q_OBJECT

public:
    explicit RlComparePage(QWidget* parent);

    /// Runs that were not read yet have no timeline; the page is empty until they are.
    void setRuns(const sessions::RunInfo& a, const TimelinePtr& timelineA, const sessions::RunInfo& b,
                 const TimelinePtr& timelineB);
    bool settled() const { return !job_.busy(); }

    /// Empty until both runs were read.
    const RlCompareWords& words() const { return words_; }
    FlatTreeModel* table() const { return model_; }
    QString noteText() const { return note_->text(); }
    SeriesLane* rewardLane() const { return reward_; }
    TimeCursor* stepCursor() const { return time_; }
    QList<LaneStack*> laneStacks() const { return {stack_}; }
    QList<QWidget*> stops() const;

signals:
    void wordsChanged(); ///< words() says something else
    void readoutChanged(const QString& text);

private:
    struct Built {
        RlCurvesPtr a, b;
        RlCompareWords words;
        FlatTreePtr table;
        QString note;
    };
    QWidget* buildTable();
    void buildLanes();
    void take(Built built);
    void showCurves();
    void sayStep();

    TextLabel* note_ = nullptr;
    FlatTreeModel* model_;
    QTableView* view_ = nullptr;
    TimeCursor* time_;
    LaneStack* stack_ = nullptr;
    SeriesLane *reward_ = nullptr, *difference_ = nullptr, *seconds_ = nullptr;
    std::pair<sessions::RunId, sessions::RunId> runs_;
    RlCurvesPtr a_, b_;
    RlCompareWords words_;
    LatestJob<Built> job_;
};

} // namespace vitrine::ui
