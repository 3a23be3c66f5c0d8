// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two training runs below each other: the memory of one step of A and of B, aligned by phase, and their losses over
// steps, tokens or time. It follows runs that still go on.

#include <QWidget>
#include <optional>

#include "sessions/session_file.h"
#include "ui/models/common/latest_job.h"
#include "ui/models/finetune/loss_curves.h"
#include "ui/models/finetune/step_pair.h"
#include "ui/widgets/base/controls.h"

class QComboBox;

namespace vitrine::ui {

class LaneStack;
class PartStrip;
class SeriesLane;
class StepLane;

/// A run with its events.
struct TrainingSide {
    sessions::RunInfo run;
    TimelinePtr timeline;
};

class TrainingCompare final : public QWidget {
    Q_OBJECT

public:
    explicit TrainingCompare(QWidget* parent);

    /// Runs that were not read yet have no timeline.
    void setRuns(TrainingSide a, TrainingSide b);
    bool settled() const { return !job_.busy(); }

    const StepPairPtr& pair() const { return pair_; }
    /// Null before they were read.
    const LossCurve* curve(bool a) const { return (a ? curveA_ : curveB_).get(); }
    QComboBox* steps() const { return steps_; }
    SegmentedControl* alignment() const { return align_; }
    SegmentedControl* lossAxis() const { return lossAxis_; }
    PartStrip* parts() const { return parts_; }
    StepLane* laneA() const { return laneA_; }
    StepLane* laneB() const { return laneB_; }
    SeriesLane* lossLane() const { return loss_; }
    TimeCursor* stepCursor() const { return stepTime_; }
    TimeCursor* lossCursor() const { return lossTime_; }
    QString noteText() const { return note_->text(); }
    QList<LaneStack*> laneStacks() const { return {memory_, losses_}; }
    QList<QWidget*> stops() const;

signals:
    void readoutChanged(const QString& text);

private:
    struct Built {
        std::shared_ptr<const LossCurve> a, b;
        StepPairPtr pair;
        std::vector<std::int64_t> offered;
        bool sameStep = false; ///< `pair` was not made anew
    };
    void buildMemory();
    void buildLosses();
    void load();
    void take(Built built);
    void fillSteps(const std::vector<std::int64_t>& offered);
    void showStep();
    void showSide(StepLane* lane, const StepSide& side, bool a);
    void showLosses();
    void sayStep();
    void sayLoss();
    bool byPhase() const { return align_->current() == 0; }
    LossAxis axis() const { return static_cast<LossAxis>(lossAxis_->current()); }

    QComboBox* steps_ = nullptr;
    SegmentedControl *align_ = nullptr, *lossAxis_ = nullptr;
    TextLabel* note_ = nullptr;
    TimeCursor *stepTime_, *lossTime_;
    LaneStack *memory_ = nullptr, *losses_ = nullptr;
    PartStrip* parts_ = nullptr;
    StepLane *laneA_ = nullptr, *laneB_ = nullptr;
    SeriesLane* loss_ = nullptr;
    TrainingSide a_, b_;
    std::int64_t step_ = 0; ///< the one that was chosen; 0: the one with the highest peak
    bool filling_ = false;
    StepPairPtr pair_;
    std::shared_ptr<const LossCurve> curveA_, curveB_;
    LatestJob<Built> job_;
};

} // namespace vitrine::ui
