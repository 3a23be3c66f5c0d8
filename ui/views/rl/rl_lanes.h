// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The lanes of a run of reinforcement learning and of its baseline on one axis of steps, time or sampled tokens:
// rewards, evaluations, how far the log-probabilities of both roles are apart, lengths, and where the time goes. Starts
// no work.

#include <QObject>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "sessions/run_info.h"
#include "ui/models/common/plot_columns.h"
#include "ui/models/rl/rl_curves.h"
#include "ui/models/rl/rl_step_text.h"
#include "ui/widgets/timeline/series_plot.h"

namespace vitrine::ui {

class BarLane;
class Lane;
class LaneStack;
class PairFacts;
class SeriesLane;

/// What the lanes show.
struct RlShown {
    sessions::RunId runA = 0, runB = 0;
    RlCurvesPtr a, b; ///< null: nothing; on the same axis
    bool live = false;
    /// The log-probability difference where both roles compute with the same weights, and what it is of.
    std::optional<double> reference;
    QString referenceName;
};

class RlLanes final : public QObject {
    Q_OBJECT

public:
    RlLanes(TimeCursor* time, QWidget* parent);

    LaneStack* stack() const { return stack_; }
    SeriesLane* reward() const { return reward_; }
    SeriesLane* evaluation() const { return evaluation_; }
    SeriesLane* difference() const { return difference_; }
    SeriesLane* lengths() const { return lengths_; }
    BarLane* phases() const { return phases_; }
    /// What the header of a lane says of A and B.
    QString factsOf(const Lane* lane) const;

    void setRuns(RlShown shown);
    void setBandShown(bool shown);
    void setReferenceShown(bool shown);
    /// Rewards and lengths as means of nine steps over the raw lines.
    void setSmooth(bool smooth);
    /// The number of the step at the pointer, at the cursor, else the last one of A; nothing without steps.
    std::optional<std::int64_t> shownStep() const;
    /// The same without the pointer.
    std::optional<std::int64_t> chosenStep() const;
    /// The numbers of the steps in the range that is measured; nothing without one, or without a step in it.
    std::optional<std::pair<std::int64_t, std::int64_t>> measuredSteps() const;
    /// Values of a step in the headers, and its tag on the ruler.
    void showStep(const RlStepPair& pair);
    /// Where a step of A, or else of B, stands on the axis.
    std::optional<base::TimeNs> placeOf(std::int64_t step) const;
    /// Low windows leave the lanes above Response length open.
    void setLow(bool low);

signals:
    void pointed(); ///< another step is pointed at

private:
    using Member = PlotSeries RlCurves::*;
    void build(QWidget* parent);
    void setPlotHeights();
    void updateSeries();
    void updateReward();
    void updateDifference();
    QString differenceNote(double reference) const; ///< 0: there is none
    void updateLengths();
    void updatePhases();
    void updateRuler(const RlStepPair& pair);
    /// The samples of a series of A or B, kept from picture to picture.
    std::function<std::vector<PlotSample>(const AxisMap&, int)> samplesOf(bool a, const QString& key,
                                                                          const PlotSeries& series);
    LaneSeries lineOf(bool a, const QString& name, Member member);
    void addLine(std::vector<LaneSeries>& series, bool a, const QString& name, Member member, Member mean);
    std::optional<std::pair<double, double>> spanOf(Member member) const;
    std::optional<std::int64_t> stepAt(base::TimeNs place) const;
    const RlCurves* lead() const { return shown_.a != nullptr ? shown_.a.get() : shown_.b.get(); }

    TimeCursor* time_;
    LaneStack* stack_ = nullptr;
    SeriesLane *reward_ = nullptr, *evaluation_ = nullptr, *difference_ = nullptr, *lengths_ = nullptr;
    BarLane* phases_ = nullptr;
    std::map<const Lane*, PairFacts*> facts_;
    RlShown shown_;
    bool band_ = true, reference_ = true, low_ = false, smooth_ = false;
    std::map<QString, std::shared_ptr<PlotColumns>> columns_;
};

} // namespace vitrine::ui
