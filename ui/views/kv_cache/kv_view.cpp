// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kv_cache/kv_view.h"

#include <QCheckBox>
#include <QHeaderView>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>

#include "engine/workload/experiment/workload_table.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/batching/request_choice.h"
#include "ui/models/common/format.h"
#include "ui/models/kv_cache/kv_pages.h"
#include "ui/models/kv_cache/kv_tables.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/kv_cache/kv_curve_page.h"
#include "ui/views/kv_cache/kv_pool_panel.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/layer_plot.h"
#include "ui/widgets/plots/page_map.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

namespace {

/// Widgets of `parent` under each other, without margins.
QVBoxLayout* columnOf(QWidget* parent) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

} // namespace

KvView::KvView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("kv-cache"), tr("KV cache"), context, parent), job_(this) {
    segments_ = header()->addSegments({tr("Curve"), tr("Pages"), tr("Layers")}, tr("What is shown"));
    predicted_ = header()->addCheck(tr("Kept"), true);
    predicted_->setToolTip(tr("The bytes of the tokens that are kept, from the formula"));
    noWindow_ = header()->addCheck(tr("No-window line"), true);
    replay_ = header()->addCheck(tr("Replay"), false);
    replay_->setVisible(false);
    pages_ = new QStackedWidget(this);
    buildPages();
    buildTwins();
    buildInspector();
    connect(segments_, &SegmentedControl::currentChanged, this, [this](int index) {
        pages_->setCurrentIndex(index);
        replay_->setVisible(index == 1 && pool_ != nullptr);
        poolView_->setPlaying(false);
        updatePages();
        updateLayers();
        updateInspector();
        twins_->setCurrentIndex(index);
        predicted_->setEnabled(index == 0);
        noWindow_->setEnabled(index == 0);
    });
    connect(predicted_, &QCheckBox::toggled, this, &KvView::updateChart);
    connect(noWindow_, &QCheckBox::toggled, this, &KvView::updateChart);
    connect(header(), &ViewHeader::tableToggled, this, [this] {
        updatePages();
        updateSamples();
    });
    connectPool();
    connect(chart_, &Chart::cursorMoved, this, [this] {
        if (overTime() && chart_->cursor()) {
            this->context().time->setCursor(kvPoolTime(*pool_, *chart_->cursor()));
        }
        updateInspector();
        updatePages();
        updateLayers();
    });
    connect(curve_, &KvCurvePage::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(pageMap_, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(bars_, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    followDocument();
}

void KvView::buildPages() {
    curve_ = new KvCurvePage(pages_);
    chart_ = curve_->chart();
    pages_->addWidget(curve_);

    auto* cells = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    QVBoxLayout* cellsColumn = columnOf(cells);
    pageLegend_ = new LegendStrip(cells);
    pageMap_ = new PageMap(tr("Pages of the KV cache"), cells);
    cellsColumn->addWidget(pageLegend_);
    cellsColumn->addWidget(pageMap_, 1);
    poolView_ = new KvPoolView(context().time, pages_);
    pageKinds_ = new QStackedWidget(pages_);
    pageKinds_->addWidget(cells);
    pageKinds_->addWidget(poolView_);
    pages_->addWidget(pageKinds_);

    auto* layers = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    QVBoxLayout* layersColumn = columnOf(layers);
    layerLegend_ = new LegendStrip(layers);
    bars_ = new LayerPlot(tr("KV cache of each layer"), layers);
    layerView_ = new QTableView(layers);
    layerModel_ = new FlatTreeModel(this);
    setUpTwin(layerView_, layerModel_, tr("Groups of layers"));
    layersColumn->addWidget(layerLegend_);
    layersColumn->addWidget(bars_, 1);
    layersColumn->addWidget(layerView_);
    pages_->addWidget(layers);
    setBody(pages_);
}

void KvView::buildTwins() {
    twins_ = new QStackedWidget(this);
    sampleModel_ = new FlatTreeModel(this);
    sampleTwin_ = new QTableView(twins_);
    layerTwin_ = new QTableView(twins_);
    setUpTwin(sampleTwin_, sampleModel_, tr("KV cache by tokens"));
    setUpTwin(layerTwin_, layerModel_, tr("Groups of layers"));
    twins_->addWidget(sampleTwin_);
    pageModel_ = new FlatTreeModel(this);
    pageTwin_ = new QTableView(twins_);
    setUpTwin(pageTwin_, pageModel_, tr("Pages of the KV cache"));
    twins_->addWidget(pageTwin_);
    twins_->addWidget(layerTwin_);
    setTable(twins_);
}

void KvView::connectPool() {
    connect(replay_, &QCheckBox::toggled, poolView_, &KvPoolView::setPlaying);
    connect(poolView_, &KvPoolView::playingChanged, replay_, &QCheckBox::setChecked);
    connect(poolView_, &KvPoolView::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(poolView_, &KvPoolView::momentChanged, this, [this] {
        updateInspector();
        updatePages();
    });
    connect(owners_->view(), &QTableView::clicked, this, [this](const QModelIndex& index) {
        if (const FlatNode* row = owners_->model()->node(index); row != nullptr && row->key > 0) {
            RequestChoice::of(context().time).choose(static_cast<std::int32_t>(row->key - 1));
        }
    });
    connect(&RequestChoice::of(context().time), &RequestChoice::changed, this, &KvView::updateInspector);
    connect(context().time, &TimeCursor::cursorChanged, this, [this] {
        if (overTime() && segments_->current() != 1) { // the map of pages follows by itself
            updateInspector();
            updateLayers();
        }
    });
}

QWidget* KvView::inspector() {
    return panel_;
}

QWidget* KvView::inspectorHeader() {
    return panelHeader_;
}

QList<LaneStack*> KvView::laneStacks() const {
    return {poolView_->lanes()};
}

QList<QWidget*> KvView::tableStops() const {
    return {twins_->currentWidget()};
}

QList<QWidget*> KvView::bodyStops() const {
    return segments_->current() == 0   ? curve_->stops()
           : segments_->current() == 1 ? (pool_ ? poolView_->focusStops() : QList<QWidget*>{pageMap_})
                                       : QList<QWidget*>{bars_, layerView_};
}

bool KvView::settled() const {
    return !job_.busy() && DocumentView::settled();
}

void KvView::deactivated() {
    poolView_->setPlaying(false);
}

bool KvView::overTime() const {
    return pool_ && batch_;
}

bool KvView::perform(const QString& action) {
    const bool next = action == QLatin1String("select.next");
    if ((next || action == QLatin1String("select.previous")) && pool_ && segments_->current() == 1) {
        poolView_->step(next ? 1 : -1);
        return true;
    }
    return DocumentView::perform(action);
}

QString KvView::whyNot(const QString& action) const {
    const bool steps = action == QLatin1String("select.next") || action == QLatin1String("select.previous");
    if (steps && (!pool_ || segments_->current() != 1)) {
        return tr("Pages change in a pool only: show the pages of a paged cache");
    }
    return DocumentView::whyNot(action);
}

void KvView::take(Built built) {
    facts_ = std::move(built.facts);
    pool_ = std::move(built.pool);
    room_ = built.room;
    poolView_->setPool(pool_, live(run_));
    pageKinds_->setCurrentIndex(pool_ ? 1 : 0);
    replay_->setVisible(pool_ && segments_->current() == 1);
    if (facts_.empty()) {
        sayWhyEmpty();
    } else {
        showEmpty({});
    }
    updateHeader();
    updateChart();
    updatePages();
    updateLayers();
    updateInspector();
    updateSamples();
    layerTwin_->resizeColumnsToContents();
    emit availabilityChanged();
}

void KvView::updateSamples() {
    if (header()->tableShown()) {
        sampleModel_->setTree(overTime() ? kvPoolSampleTable(*pool_) : kvSampleTable(facts_));
        sampleTwin_->resizeColumnsToContents();
    }
}

void KvView::refresh() {
    run_ = runA();
    const sessions::RunInfo* run = runInfo(run_);
    const TimelineState state = run != nullptr ? timelineOf(run_) : TimelineState();
    showError(state.error);
    batch_ = state.timeline && !state.timeline->requests().events().empty();
    if (!state.timeline) {
        job_.cancel();
        shownRun_ = run_;
        take({});
        return;
    }
    job_.start(
        [info = *run, timeline = state.timeline] {
            return Built{kvSummary(info, timeline.get()), KvPool::make(info, *timeline), kvRoom(info)};
        },
        ifStill(run_, [this](Built built) { take(std::move(built)); }));
    if (run_ != shownRun_) { // what is shown belongs to another run
        shownRun_ = run_;
        take({});
    }
}

void KvView::sayWhyEmpty() {
    const sessions::RunInfo* run = runInfo(run_);
    if (run == nullptr) {
        showEmpty(tr("No KV cache to show: no run is chosen."), tr("Prepare a run"),
                  [this] { emit openView(QStringLiteral("run")); });
        return;
    }
    if (!timelineOf(run_).complete || job_.busy()) {
        showEmpty(tr("Reading the events of this run."));
        return;
    }
    sessions::RunId generate = 0;
    for (const sessions::RunInfo& other : document()->runs()) {
        if (other.id != run_ && kvGeometry(other)) {
            generate = other.id;
        }
    }
    const engine::Workload* workload = engine::workloadOfRun(run->workload);
    const bool isLoad = workload != nullptr && engine::showsIn(*workload, "load");
    const QString why = isLoad                                                ? tr("A load keeps none.")
                        : run->workload.find("finetune") != std::string::npos ? tr("Fine-tuning keeps none.")
                        : runMetric(*run, "requests").value_or(-1) == 0       ? tr("No request came while it went on.")
                                                                        : tr("Its events hold no growth of a cache.");
    const QString text = tr("No KV cache in this run. %1").arg(why);
    if (generate != 0) {
        showEmpty(text, tr("Open a generate run"), [this, generate] { document()->setRunA(generate); });
    } else {
        showEmpty(text, tr("Prepare a run"), [this] { emit openView(QStringLiteral("run")); });
    }
}

namespace {

std::vector<LayerBar> kvLayerBars(const KvSummary& facts, const std::vector<KvGroupBytes>& held) {
    std::vector<LayerBar> bars;
    for (std::size_t i = 0; i < held.size(); ++i) {
        const KvLayerGroup& group = facts.geometry->groups[i];
        const auto layers = static_cast<double>(std::max<std::size_t>(1, group.layers.size()));
        const double each = static_cast<double>(held[i].held) / layers;
        const double all = static_cast<double>(held[i].all) / layers;
        for (const int layer : group.layers) {
            LayerBar bar;
            bar.layer = layer;
            bar.bytes = each;
            bar.without = group.sliding() ? all : 0;
            bar.style = group.sliding() ? 1 : 0;
            bar.words = group.sliding() ? KvView::tr("Layer %1, sliding: %2, without windows %3")
                                              .arg(QString::number(layer), bytesText(static_cast<std::uint64_t>(each)),
                                                   bytesText(static_cast<std::uint64_t>(all)))
                                        : KvView::tr("Layer %1, full: %2")
                                              .arg(QString::number(layer), bytesText(static_cast<std::uint64_t>(each)));
            bars.push_back(std::move(bar));
        }
    }
    std::sort(bars.begin(), bars.end(), [](const LayerBar& a, const LayerBar& b) { return a.layer < b.layer; });
    return bars;
}

} // namespace

std::int64_t KvView::shownTokens() const {
    return chart_->cursor() ? static_cast<std::int64_t>(*chart_->cursor()) : facts_.maxTokens();
}

void KvView::updateHeader() {
    QStringList parts;
    if (facts_.geometry) {
        for (const KvLayerGroup& group : facts_.geometry->groups) {
            if (group.pageTokens > 0 && !group.sliding()) {
                parts << tr("page %1 tokens").arg(countText(group.pageTokens));
            }
        }
        if (facts_.geometry->sequences > 1) {
            parts << tr("%1 sequences").arg(countText(facts_.geometry->sequences));
        }
        parts << facts_.geometry->dtype;
    }
    header()->setFacts(parts.join(QStringLiteral(", ")));
}

void KvView::updateChart() {
    const KvCurveWidgets parts{predicted_->isChecked(), noWindow_->isChecked()};
    if (overTime() && !facts_.empty()) {
        curve_->showTime(facts_, *pool_, parts);
    } else {
        curve_->showTokens(facts_, room_, parts);
    }
    if (!facts_.empty()) {
        setStops();
    }
}

void KvView::setStops() {
    std::vector<double> stops;
    if (overTime()) {
        constexpr int kStops = 500;
        const double first = static_cast<double>(pool_->begin()) * 1e-9, end = static_cast<double>(pool_->end()) * 1e-9;
        for (int i = 0; i < kStops; ++i) {
            stops.push_back(first + (end - first) * i / (kStops - 1));
        }
        chart_->setStops(std::move(stops), [pool = pool_](double seconds) { return kvText(*pool, seconds); });
        return;
    }
    stops.reserve(facts_.samples.size());
    for (const KvSample& sample : facts_.samples) {
        stops.push_back(static_cast<double>(sample.tokens));
    }
    chart_->setStops(std::move(stops), [this](double tokens) { return kvText(facts_, tokens); });
}

void KvView::updatePages() {
    if (segments_->current() != 1) {
        return; // looks through what is alive: only for who sees it
    }
    if (pool_) {
        if (header()->tableShown()) {
            pageModel_->setTree(kvPoolTable(*pool_, poolView_->moment()));
            pageTwin_->resizeColumnsToContents();
        }
        return;
    }
    const TimelinePtr timeline = timelineOf(run_).timeline;
    KvPages pages;
    if (timeline && !facts_.empty()) {
        pages = kvPages(facts_, *timeline, facts_.at(shownTokens()));
    }
    std::vector<PageGroup> groups(pages.groups.size());
    std::vector<LegendItem> items;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const KvLayerGroup& group = pages.groups[i];
        const bool sliding = group.sliding();
        groups[i].style = sliding ? 1 : 0;
        const auto count = static_cast<qint64>(pages.count(i));
        groups[i].title = (count == 1 ? tr("%1 layers: %2 page of %3 tokens") : tr("%1 layers: %2 pages of %3 tokens"))
                              .arg(group.name, countText(count), countText(group.pageTokens));
        items.push_back({sliding ? tr("sliding layers") : tr("full layers"), LegendItem::Mark::Swatch,
                         [sliding](const ThemeTokens& t) { return kvShade(t, sliding); }});
    }
    for (std::size_t i = 0; i < pages.pages.size(); ++i) {
        groups[pages.pages[i].group].cells.push_back({pages.pages[i].used});
    }
    // Pages stand group after group, so a cell's page is counted from the first one of its group.
    for (std::size_t i = 0, first = 0; i < groups.size(); first += groups[i].cells.size(), ++i) {
        groups[i].words = [pages, timeline, first](std::size_t page) {
            return first + page < pages.pages.size() ? kvPageText(pages, *timeline, first + page) : QString();
        };
    }
    pageLegend_->setItems(std::move(items), tr("at %1 tokens").arg(countText(shownTokens())));
    pageMap_->setPages(
        std::move(groups),
        [](const ThemeTokens& t) { return std::vector<CategoryStyle>{kvShade(t, false), kvShade(t, true)}; },
        tr("This cache has no pages: it is one block for each group of layers."));
    pageModel_->setTree(pages.pages.empty() ? nullptr : kvPageTable(pages, *timeline));
    pageTwin_->resizeColumnsToContents();
}

void KvView::updateLayers() {
    // In a pool sequences come and go: what layers hold follows the time, not a number of tokens.
    const std::vector<KvGroupBytes> held =
        overTime() ? kvGroupBytes(facts_, *pool_, poolView_->moment()) : kvGroupBytes(facts_, shownTokens());
    layerModel_->setTree(kvLayerTable(facts_, held));
    layerView_->resizeColumnsToContents();
    if (layerModel_->columnCount() > 0) {
        layerView_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
    }
    layerView_->setFixedHeight(layerView_->horizontalHeader()->sizeHint().height() +
                               std::max(1, layerModel_->rowCount()) *
                                   layerView_->verticalHeader()->defaultSectionSize());
    std::vector<LegendItem> items = {
        {tr("full layers"), LegendItem::Mark::Swatch, [](const ThemeTokens& t) { return kvShade(t, false); }}};
    if (kvSlides(facts_)) {
        items.push_back(
            {tr("sliding layers"), LegendItem::Mark::Swatch, [](const ThemeTokens& t) { return kvShade(t, true); }});
    }
    std::vector<LayerBar> bars = kvLayerBars(facts_, held);
    // Whole pages may hold more than the tokens would take without a window: then there is nothing to frame.
    if (std::ranges::any_of(bars, [](const LayerBar& bar) { return bar.without > bar.bytes; })) {
        items.push_back({tr("without windows"), LegendItem::Mark::Dashes, {}});
    }
    layerLegend_->setItems(std::move(items), overTime() ? tr("at %1").arg(instantText(poolView_->moment()))
                                                        : tr("at %1 tokens").arg(countText(shownTokens())));
    bars_->setBars(
        std::move(bars),
        [](const ThemeTokens& t) { return std::vector<CategoryStyle>{kvShade(t, false), kvShade(t, true)}; },
        tr("KV cache of each layer"));
}

} // namespace vitrine::ui
