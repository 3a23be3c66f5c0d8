// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two batches of one trace under each other: slots x steps or a row for each request, with throughput, queue and pages
// below them on one axis; the sweep over numbers of slots; what one gains over the other; all about one request or
// slot.

#include <QElapsedTimer>
#include <array>

#include "ui/models/batching/batch_map.h"
#include "ui/models/batching/batch_sweep.h"
#include "ui/models/common/latest_job.h"
#include "ui/views/common/document_view.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/slot_lane.h"

class QCheckBox;
class QComboBox;
class QStackedWidget;
class QTableView;

namespace vitrine::ui {

class BatchPanel;
class CurveLane;
class LegendStrip;
class SweepPanel;

class BatchingView final : public DocumentView {
    Q_OBJECT

public:
    enum Page { Slots, Requests, SweepOfSlots };

    explicit BatchingView(const ViewServices& context, QWidget* parent = nullptr);
    ~BatchingView() override;

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    int inspectorWidth() const override { return 348; }
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;
    QString find(const QString& text, int direction) override;
    bool settled() const override;
    void activated() override;

    void showPage(Page page);
    Page page() const;
    void setAxisOf(BatchAxis axis);
    const BatchPair& pair() const { return pair_; }
    LaneStack* stack() const { return lanes_; }
    TimeCursor* time() const { return time_; }
    SlotLane* slotLane(int side) const { return slotLanes_[static_cast<std::size_t>(side)]; }
    RequestLane* requestLane(int side) const { return requestLanes_[static_cast<std::size_t>(side)]; }
    SweepPanel* sweepPage() const { return sweepPage_; }
    std::int32_t chosenRequest() const { return request_; }
    QComboBox* traceChoice() const { return traceChoice_; }
    QCheckBox* runningOnly() const { return runningOnly_; }
    BatchPanel* panel() const { return panel_; }

protected:
    void refresh() override;
    std::vector<sessions::RunId> shownRuns() const override { return {runs_[0], runs_[1]}; }
    TimeCursor* ownAxis() const override { return time_; }
    QList<LaneStack*> laneStacks() const override { return {lanes_}; }
    QList<QWidget*> bodyStops() const override;
    QString copyText() const override { return shownText(); }
    QString whyText() const override;

private:
    struct Built {
        BatchPair pair;
        std::array<BatchMapPtr, 2> maps;
    };
    struct Source { ///< what a side was made from
        sessions::RunId run = 0;
        TimelinePtr timeline;
        sessions::RunStatus status = sessions::RunStatus::Running;
        BatchSidePtr side;
    };

    void focusPlot();
    void buildBody();
    void buildLanes();
    void buildInspector();
    void connectLane(BatchLane* lane, int side);
    void take(Built built);
    void updateEmpty();
    void updateVisible();
    void updateLanes();
    void updateRoom();
    void updateCurves();
    void updateExtent();
    void updateLegend();
    void showRunning();
    void updateRunning();
    void updateInspector();
    void updateDetail();
    void updateTraces();
    void chooseTrace(int index);
    void updateSweep();
    void updateTwin();
    void updateReadout();
    void chooseRequest(std::int32_t request);
    void takeShared();
    void shareCursor();
    void chooseSlot(int side, std::int32_t slot);
    QString placeText(base::TimeNs place) const;
    BatchAxis axisOf() const;

    std::array<sessions::RunId, 2> runs_{};
    std::array<Source, 2> sources_;
    BatchPair pair_;
    std::array<BatchMapPtr, 2> maps_;
    Sweep sweep_;
    std::int32_t request_ = -1;
    std::int32_t slot_ = -1;
    int slotSide_ = 0;
    QString pointed_;
    BatchAxis lastAxis_ = BatchAxis::Time;
    std::array<sessions::RunId, 2> shownRuns_{};

    TimeCursor* time_ = nullptr;
    SegmentedControl *pageChoice_ = nullptr, *axisChoice_ = nullptr;
    QCheckBox* runningOnly_ = nullptr; ///< rows for the requests that run at the cursor
    QComboBox* traceChoice_ = nullptr; ///< items carry the newest run of each trace
    LegendStrip* legend_ = nullptr;
    QStackedWidget* pages_ = nullptr;
    LaneStack* lanes_ = nullptr;
    std::array<SlotLane*, 2> slotLanes_{};
    std::array<RequestLane*, 2> requestLanes_{};
    Ruler* ruler_ = nullptr;
    CurveLane *rateLane_ = nullptr, *queueLane_ = nullptr, *runningLane_ = nullptr, *pageLane_ = nullptr;
    SweepPanel* sweepPage_ = nullptr;

    BatchPanel* panel_ = nullptr;

    QElapsedTimer filled_; ///< since the inspector was filled last
    LatestJob<Built> job_;
};

} // namespace vitrine::ui
