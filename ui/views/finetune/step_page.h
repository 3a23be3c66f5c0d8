// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The page Step: one recorded training step, its memory by phase and layer, the copies of its offload, the same of the
// baseline, and a range of it in detail.

#include <QWidget>
#include <optional>
#include <string>

#include "ui/models/common/latest_job.h"
#include "ui/models/common/time_cursor.h"
#include "ui/models/finetune/step_text.h"
#include "ui/widgets/base/view.h"

class QPushButton;
class QStackedWidget;

namespace vitrine::ui {

class CopyLane;
class LaneStack;
class PartStrip;
class StepLane;
class StepPanel;

class StepPage final : public QWidget {
    Q_OBJECT

public:
    StepPage(ViewHeader* header, QWidget* parent);

    /// What is shown: the timeline of run A with its experiment, and that of the baseline. Null: none, and `nothing`
    /// says why.
    void setRuns(const TimelinePtr& a, const std::string& specJson, const QString& device, const TimelinePtr& b,
                 const QString& nothing);
    /// Shows a step by its number.
    void openStep(std::int64_t step);
    /// The controls in the view's header belong to this page.
    void showControls(bool shown);

    StepPanel* panel() const { return panel_; }
    const StepPairPtr& pair() const { return pair_; }
    bool settled() const { return !job_.busy() && !advising_.busy(); }
    QString emptyText() const;
    QString sentenceText() const { return sentence_->text(); }
    QString secondText() const { return second_->text(); }
    QComboBox* steps() const { return steps_; }
    SegmentedControl* alignment() const { return align_; }
    QCheckBox* sameScale() const { return sameScale_; }
    QCheckBox* copiesCheck() const { return copies_; }
    StepLane* laneA() const { return laneA_; }
    StepLane* laneB() const { return laneB_; }
    StepLane* detailLane() const { return detail_; }
    CopyLane* copyLane() const { return copiesA_; }
    PartStrip* bands() const { return bands_; }
    TimeCursor* axis() const { return time_; }
    TimeRange detailRange() const { return detailRange_; }
    QPushButton* baselineButton() const { return baselineButton_; }
    QList<LaneStack*> laneStacks() const { return {overview_, closer_}; }
    QList<QWidget*> stops() const;
    FlatTreePtr table() const;
    QString readout() const { return readout_; }
    QString whyText() const;

    /// The detail shows the range around the peak; the second time the one before it again.
    void showPeak();
    /// The next layer or chunk after the cursor, or the one before it.
    void stepItem(int direction);

signals:
    void readoutChanged(const QString& text);
    void pairChanged();
    /// The Memory view is wanted with this range of A and the cursor at this instant.
    void memoryWanted(qint64 begin, qint64 end, qint64 at);
    void experimentWanted(const QString& experimentJson);
    void formWanted();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void buildControls(ViewHeader* header);
    void buildWords(QWidget* body);
    void buildOverview(QWidget* body);
    void buildDetail(QWidget* body);
    void fillSteps();
    void load();
    void advise();
    void take(StepPairPtr pair);
    void showPair();
    void showLanes();
    void showBands();
    void showDetail();
    void setDetail(TimeRange range, bool remember = true);
    void updateReadout();
    void updateNarrow();
    bool byPhase() const { return align_->current() == 0; }
    const profiler::PhaseMap* phasesOfB() const;
    std::optional<profiler::MemoryColumn> peakAt(bool a) const;

    SegmentedControl* align_ = nullptr;
    QComboBox* steps_ = nullptr;
    QCheckBox *sameScale_ = nullptr, *copies_ = nullptr;
    QPushButton *memory_ = nullptr, *baselineButton_ = nullptr, *more_ = nullptr;
    QStackedWidget* pages_;
    EmptyState* nothing_;
    TextLabel *sentence_ = nullptr, *second_ = nullptr, *detailTitle_ = nullptr, *detailNote_ = nullptr;
    QWidget *words_ = nullptr, *noBaseline_ = nullptr, *detailHead_ = nullptr;
    SegmentedControl* lower_ = nullptr; ///< B or detail, where both have no room
    TimeCursor *time_, *closerTime_;
    LaneStack *overview_ = nullptr, *closer_ = nullptr;
    PartStrip *bands_ = nullptr, *parts_ = nullptr;
    StepLane *laneA_ = nullptr, *laneB_ = nullptr, *detail_ = nullptr;
    CopyLane *copiesA_ = nullptr, *copiesDetail_ = nullptr;
    StepPanel* panel_;
    TimelinePtr timelineA_, timelineB_;
    std::string spec_;
    QString device_;
    QString why_, readout_;
    std::int64_t step_ = 0; ///< the one that is shown or being read; 0: none yet
    StepPairPtr pair_;
    std::optional<StepAdvice> advice_;
    std::string advisedFor_;
    TimeRange detailRange_, detailBefore_;
    bool placing_ = false, filling_ = false, narrow_ = false;
    LatestJob<StepPairPtr> job_;
    LatestJob<std::vector<std::int64_t>> listing_;
    LatestJob<std::optional<StepAdvice>> advising_;
};

} // namespace vitrine::ui
