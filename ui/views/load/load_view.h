// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two loads side by side or over each other: what is resident over time, the stages, bytes by part, and what the choice of
// weights buys and costs.

#include "ui/models/load/load_facts.h"
#include "ui/widgets/base/view.h"
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

class LoadView final : public View {
    Q_OBJECT

public:
    explicit LoadView(const ViewContext& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool perform(const QString& action) override;
    QList<QWidget*> focusStops() const override;
    bool settled() const override;
    void activated() override;

    const LoadPair& pair() const { return pair_; }
    TimeCursor* timeA() const { return sides_[0].time; }
    TimeCursor* timeB() const { return sides_[1].time; }
    LoadLane* lane(int side) const { return sides_[static_cast<std::size_t>(side)].lane; }
    BarPlot* bars() const { return bars_; }
    TextLabel* number() const { return number_; }
    TextLabel* sentence() const { return sentence_; }
    QCheckBox* sameAxis() const { return sameAxis_; }

protected:
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
    void reload();
    void refresh();
    void sayWhyEmpty();
    void updateLanes();
    void updateExtents();
    void updateBars();
    void updateLegend();
    void updateInspector();
    void updateReadout();
    void placeParts();
    std::vector<const LoadSide*> shownSides() const;

    LoadChoice choice_;
    LoadPair pair_;
    bool stale_ = true, mirroring_ = false;
    SegmentedControl *layout_, *grouping_;
    QCheckBox* sameAxis_;
    QStackedWidget* pages_;
    LegendStrip* legend_;
    std::array<Side, 2> sides_;
    LaneStack* overlay_;
    CurveLane* overlayLane_;
    QWidget* barsHead_;
    TextLabel* barsFacts_;
    BarPlot* bars_;
    QTableView* twin_;
    FlatTreeModel* twinModel_;
    QScrollArea* panel_;
    DockHeader* panelHeader_;
    TextLabel *panelFacts_, *number_, *sentence_, *cost_;
    QWidget* costHead_;
    FactTable *loadTable_, *memoryTable_, *afterTable_, *agreementTable_;
};

} // namespace vitrine::ui
