// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory of one step of reinforcement learning below the lanes of all steps: its phases, when the pool of pages is
// there, the stack of both roles, and the largest value of each category or what it holds under the pointer.

#include <QWidget>

#include "ui/models/common/latest_job.h"
#include "ui/models/rl/rl_phases.h"

class QPushButton;
class QStackedWidget;

namespace vitrine::ui {

class EmptyState;
class LaneStack;
class PartStrip;
class RlStepLegend;
class SectionHead;
class StepLane;
class TextLabel;

class RlStepPane final : public QWidget {
    Q_OBJECT

public:
    explicit RlStepPane(QWidget* parent);

    /// What is shown: a step of run A. `index` nothing: there is none, and `nothing` says why.
    void setStep(const TimelinePtr& timeline, const RlRunPtr& run, std::optional<std::size_t> index,
                 const QString& nothing);
    bool settled() const { return !job_.busy(); }
    const RlStepMemoryPtr& memory() const { return memory_; }
    /// Low windows: a lower plot, and the categories in rows above it.
    void setLow(bool low);

    LaneStack* stack() const { return stack_; }
    PartStrip* bands() const { return bands_; }
    StepLane* lane() const { return lane_; }
    QPushButton* highestButton() const { return highest_; }
    RlStepLegend* legend() const { return legend_; }
    QString headText() const;
    QString heldText() const; ///< what holds the memory at the peak and while the sampler sleeps
    QString emptyText() const;
    QList<QWidget*> stops() const;

signals:
    void stepWanted(qint64 step); ///< one whose memory was recorded
    void recordingWanted();       ///< of all steps, by another run
    void memoryChanged();         ///< of another step, or more of the same
    /// Another view is wanted on a stretch of the run, with the cursor at an instant.
    void viewWanted(const QString& view, qint64 begin, qint64 end, qint64 at);

private:
    void build();
    void take(RlStepMemoryPtr memory);
    void showMissing();
    void showHighest();
    void showBands();
    void showLane();
    void showLegend();
    void fillMenu();
    void openPhase(const QString& view);
    base::TimeNs inRun(base::TimeNs place) const { return memory_->range.begin + place; }

    TimeCursor* time_;
    SectionHead* head_;
    QPushButton *open_, *highest_; ///< highest_: goes to the step with the peak of the run
    QStackedWidget* pages_;
    EmptyState* nothing_;
    TextLabel* held_;
    LaneStack* stack_;
    PartStrip* bands_;
    StepLane* lane_;
    RlStepLegend* legend_;
    RlRunPtr run_;
    TimelinePtr timeline_;
    std::optional<std::size_t> index_;
    RlStepMemoryPtr memory_;
    LatestJob<RlStepMemoryPtr> job_;
};

} // namespace vitrine::ui
