// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the KV cache of run A grows with its tokens: a curve with the formula's prediction, its pages at a number of
// tokens, and a row for each group of layers.

#include "ui/models/common/latest_job.h"
#include "ui/models/kv_cache/kv_limits.h"
#include "ui/models/kv_cache/kv_pool.h"
#include "ui/models/kv_cache/kv_summary.h"
#include "ui/views/common/document_view.h"

class QPushButton;
class QScrollArea;
class QStackedWidget;
class QTableView;
class QVBoxLayout;

namespace vitrine::ui {

class Chart;
class FactTable;
class KvCurvePage;
class KvPoolView;
class LayerPlot;
class LegendStrip;
class PageMap;

class KvView final : public DocumentView {
    Q_OBJECT

public:
    explicit KvView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool settled() const override;
    void deactivated() override;
    bool perform(const QString& action) override;
    QString whyNot(const QString& action) const override;

    PageMap* pageMap() const { return pageMap_; }
    Chart* chart() const { return chart_; }
    LayerPlot* bars() const { return bars_; }
    SegmentedControl* segments() const { return segments_; }
    FactTable* values() const { return values_; }
    const KvSummary& facts() const { return facts_; }
    const KvPoolPtr& pool() const { return pool_; }
    KvCurvePage* curvePage() const { return curve_; }
    FactTable* changes() const { return changes_; }
    /// The button of a row of changes(); null where no option makes the change.
    QPushButton* tryButton(int row) const;
    KvPoolView* poolView() const { return poolView_; }
    FactTable* owners() const { return owners_; }
    FactTable* chosen() const { return chosen_; } ///< of the request that is selected
    QTableView* layerTable() const { return layerView_; }
    QTableView* sampleTable() const { return sampleTwin_; }

protected:
    void refresh() override;
    QList<LaneStack*> laneStacks() const override;
    QList<QWidget*> bodyStops() const override;
    QList<QWidget*> tableStops() const override;

private:
    struct Built {
        KvSummary facts;
        KvPoolPtr pool;
        std::optional<KvRoom> room;
    };
    void buildPages();
    void buildTwins();
    void buildInspector();
    void connectPool();
    void take(Built built);
    void setStops();
    bool overTime() const; ///< the curve of a batch, whose tokens come and go
    void updateChart();
    void updatePages();
    void updateLayers();
    void updateSamples();
    void updateInspector();
    void updateChanges();
    void updateHeader();
    void sayWhyEmpty();
    std::int64_t shownTokens() const;

    KvSummary facts_;
    std::optional<KvRoom> room_;
    KvPoolPtr pool_; ///< null: the cache has no pool of pages
    bool batch_ = false;
    LatestJob<Built> job_; ///< goes through all events of the run
    sessions::RunId run_ = 0, shownRun_ = 0;
    SegmentedControl* segments_;
    QCheckBox *predicted_, *noWindow_;
    QStackedWidget *pages_, *twins_, *pageKinds_;
    KvPoolView* poolView_;
    QCheckBox* replay_;
    Chart* chart_;
    KvCurvePage* curve_;
    LegendStrip *pageLegend_, *layerLegend_;
    PageMap* pageMap_;
    LayerPlot* bars_;
    QTableView *layerView_, *sampleTwin_, *pageTwin_, *layerTwin_;
    FlatTreeModel *layerModel_, *pageModel_, *sampleModel_;
    QScrollArea* panel_;
    DockHeader* panelHeader_;
    FactTable *chosen_, *values_, *layout_, *changes_, *owners_;
    TextLabel* hint_;
};

} // namespace vitrine::ui
