// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two loads side by side or over each other: what is resident over time, the stages, bytes by part, and what the choice
// of weights buys and costs.

#include "ui/models/common/latest_job.h"
#include "ui/models/load/load_summary.h"
#include "ui/views/common/document_view.h"
#include "ui/widgets/timeline/load_lane.h"

class QScrollArea;
class QStackedWidget;
class QTableView;
class QVBoxLayout;

namespace vitrine::ui {

class BarPlot;
class CurveLane;
class FactTable;
class LaneStack;
class LegendStrip;
class SpanLane;
class Ruler;

class LoadView final : public DocumentView {
    Q_OBJECT

public:
    explicit LoadView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool perform(const QString& action) override;
    bool settled() const override;

    const LoadPair& pair() const { return pair_; }
    TimeCursor* timeA() const { return sides_[0].time; }
    TimeCursor* timeB() const { return sides_[1].time; }
    LoadLane* lane(int side) const { return sides_[static_cast<std::size_t>(side)].lane; }
    BarPlot* bars() const { return bars_; }
    FactTable* quality() const { return qualityTable_; } ///< hidden where the lab knows nothing of both
    TextLabel* number() const { return number_; }
    TextLabel* sentence() const { return sentence_; }
    QCheckBox* sameAxis() const { return sameAxis_; }

protected:
    void refresh() override;
    std::vector<sessions::RunId> shownRuns() const override;
    TimeCursor* ownAxis() const override { return sides_[0].time; }
    QList<LaneStack*> laneStacks() const override;
    QList<QWidget*> bodyStops() const override;
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Side {
        TimeCursor* time = nullptr;
        LaneStack* stack = nullptr;
        LoadLane* lane = nullptr;
        SpanLane* spans = nullptr;
        Ruler* ruler = nullptr;
    };
    void buildBody();
    void buildInspector();
    void mirror(const Side& from, const Side& to);
    void sayWhyEmpty();
    void updateLanes();
    void updateExtents();
    void updateBars();
    void updateLegend();
    void updateInspector();
    void updateQuality();
    void updateReadout();
    void placeParts();
    std::vector<const LoadSide*> shownSides() const;
    const std::optional<LoadSide>& loaded(std::size_t side) const {
        return side == 0 ? pair_.a : side == 1 ? pair_.b : pair_.c;
    }

    LoadChoice choice_;
    sessions::RunId third_ = 0; ///< whose load is C; 0: none
    LoadPair pair_;
    bool mirroring_ = false;
    SegmentedControl *layout_, *grouping_;
    QCheckBox* sameAxis_;
    QStackedWidget* pages_;
    LegendStrip* legend_;
    std::array<Side, 3> sides_; ///< of A, B and C
    LaneStack* overlay_;
    CurveLane* overlayLane_;
    QWidget* barsHead_;
    TextLabel* barsFacts_;
    BarPlot* bars_;
    QScrollArea* panel_;
    DockHeader* panelHeader_;
    TextLabel *panelFacts_, *number_, *sentence_, *cost_;
    QWidget* costHead_;
    FactTable *loadTable_, *memoryTable_, *afterTable_, *agreementTable_, *qualityTable_;
    LatestJob<FlatTreePtr> qualityJob_;
};

} // namespace vitrine::ui
