// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The lanes of a training run over one axis of steps: loss, learning rate, gradient norm, changed codes of
// quantization-aware training, speed, and the memory of each step; above them what was switched on, checkpoints and
// answers. Makes no timeline and starts no work.

#include <QObject>
#include <cstdint>
#include <optional>

#include "sessions/run_info.h"
#include "ui/models/finetune/switch_prices.h"
#include "ui/models/finetune/training_run.h"
#include "ui/models/session/session_document.h"
#include "ui/views/finetune/live_series.h"

class QPushButton;

namespace vitrine::ui {

class LaneStack;
class MarkStrip;
class SeriesLane;
class StackLane;
class TextLabel;
class TimeStrip;

/// What the lanes show.
struct LiveRun {
    sessions::RunInfo info;
    TrainingRunPtr training;
    TimelinePtr timeline;
    std::uint64_t peak = 0; ///< of its steps
    double smoothing = 0;   ///< 0: no smoothed line
    bool live = false;
};

class LiveLanes final : public QObject {
    Q_OBJECT

public:
    LiveLanes(TimeCursor* time, QWidget* parent);

    LaneStack* stack() const { return stack_; }
    SeriesLane* loss() const { return loss_; }
    SeriesLane* codes() const { return codes_; } ///< hidden without quantization-aware training
    StackLane* memory() const { return memory_; }
    QPushButton* scaleButton() const { return scale_; }
    const LiveSeries& series() const { return series_; }
    MarkStrip* marks() const { return marks_; }

    void setRun(LiveRun run);
    void clear();
    /// What the planner says of the run; nothing: it has no plan.
    void setPlan(std::uint64_t planned, const ErrorBand& band);
    void setPlanShown(bool shown);
    /// A dashed line over the memory; nothing: none.
    void setOutline(std::optional<std::uint64_t> bytes, const QString& label);
    /// The answers that are shown below the lanes.
    void setShownAnswers(std::int64_t left, std::int64_t right);
    /// Scales that follow what is in sight.
    void updateScales();
    void updateMarks();

    /// At the pointer, at the cursor, else the last; an index of the run's steps.
    std::optional<std::size_t> shownStep() const;
    /// Facts of that step in the headers; returns what its memory was, for the status bar.
    QString updateFacts();
    /// The next or previous item of the lane that has the focus: a step, a checkpoint or answers. False: it has none.
    bool stepItem(int direction);
    /// The cursor at the next step with the highest memory.
    void nextPeak();

signals:
    void checkpointClicked(qint64 step);
    void answersClicked(qint64 step, bool left);
    void factsChanged(); ///< another step is pointed at

private:
    void build(QWidget* parent);
    void updateSeries();
    /// `same`: up to this place the series are what they were.
    void updateLoss(std::optional<base::TimeNs> same);
    void updateRate(std::optional<base::TimeNs> same);
    void updateCodes(std::optional<base::TimeNs> same);
    void updateMemory();
    void updateMinimap();
    void updateRoom();
    QString memoryFacts(std::size_t step);
    bool has() const { return run_.training != nullptr; }

    TimeCursor* time_;
    LaneStack* stack_ = nullptr;
    MarkStrip* marks_ = nullptr;
    SeriesLane *loss_ = nullptr, *rate_ = nullptr, *norm_ = nullptr, *codes_ = nullptr, *speed_ = nullptr;
    StackLane* memory_ = nullptr;
    TextLabel* memoryFacts_ = nullptr;
    QPushButton* scale_ = nullptr; ///< of the memory: by its values, or up to the budget
    LiveRun run_;
    LiveSeries series_;
    std::uint64_t planned_ = 0;
    ErrorBand band_;
    bool planShown_ = true, low_ = false;
    std::optional<std::uint64_t> outline_;
    QString outlineLabel_;
    std::int64_t answersLeft_ = -1, answersRight_ = -1;
};

} // namespace vitrine::ui
