// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kv_cache/kv_view.h"

#include <QCheckBox>
#include <QHeaderView>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <cmath>

#include "ui/models/format.h"
#include "ui/widgets/bar_plot.h"
#include "ui/widgets/chart.h"
#include "ui/widgets/fact_table.h"
#include "ui/widgets/legend_strip.h"
#include "ui/widgets/paint.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kDots = 33, kCurvePoints = 600;

QColor fullColor(const ThemeTokens& t) {
    return t.category(base::MemoryCategory::KvCache).fill;
}

/// The second shade of the category: nearer to the canvas, so that text on both stays readable.
QColor slidingColor(const ThemeTokens& t) {
    return t.dark ? fullColor(t).darker(175) : fullColor(t).darker(160);
}

CategoryStyle shade(const ThemeTokens& t, bool sliding) {
    CategoryStyle style = t.category(base::MemoryCategory::KvCache);
    style.fill = sliding ? slidingColor(t) : fullColor(t);
    style.hatch = sliding ? Hatch::BackDiagonal : Hatch::None;
    style.tile = 6;
    return style;
}

struct Unit {
    double bytes;
    QString name;
};

Unit unitFor(double top) {
    for (const auto& [bytes, name] :
         {std::pair{1ULL << 40, "TiB"}, {1ULL << 30, "GiB"}, {1ULL << 20, "MiB"}, {1ULL << 10, "KiB"}}) {
        if (top >= static_cast<double>(bytes)) {
            return {static_cast<double>(bytes), QString::fromLatin1(name)};
        }
    }
    return {1, QStringLiteral("B")};
}

QString plainNumber(double value, double step) {
    const int decimals = step >= 1 ? 0 : step >= 0.1 ? 1 : 2;
    return decimals == 0 ? countText(std::llround(value)) : QString::number(value, 'f', decimals);
}

ChartAxis axisUpTo(const QString& title, double top, int lines) {
    ChartAxis axis;
    axis.title = title;
    const std::vector<double> ticks = roundTicks(top, lines);
    const double step = ticks.size() > 1 ? ticks[1] : 1;
    axis.top = top * 1.06;
    for (const double tick : ticks) {
        if (tick <= axis.top) {
            axis.ticks.emplace_back(tick, plainNumber(tick, step));
        }
    }
    return axis;
}

FlatNode fact(const QString& name, const QString& value, const QString& raw = {}, bool strong = false) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(value, QVariant(), raw)};
    node.emphasis = strong;
    return node;
}

FlatNode bytesFact(const QString& name, std::uint64_t bytes, bool strong = false) {
    FlatNode node = fact(name, bytesText(bytes), QString::number(bytes), strong);
    node.cells[1].tip = exactBytesText(bytes);
    return node;
}

} // namespace

KvView::KvView(const ViewContext& context, QWidget* parent)
    : View(QStringLiteral("kv-cache"), tr("KV cache"), context, parent) {
    segments_ = header()->addSegments({tr("Curve"), tr("Layers")}, tr("What is shown"));
    predicted_ = header()->addCheck(tr("Predicted"), true);
    noWindow_ = header()->addCheck(tr("No-window line"), true);
    pages_ = new QStackedWidget(this);

    auto* curve = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    auto* curveColumn = new QVBoxLayout(curve);
    curveColumn->setContentsMargins(0, 0, 0, 0);
    curveColumn->setSpacing(0);
    legend_ = new LegendStrip(curve);
    chart_ = new Chart(tr("KV cache, bytes against tokens"), curve);
    curveColumn->addWidget(legend_);
    curveColumn->addWidget(chart_, 1);
    pages_->addWidget(curve);

    auto* layers = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    auto* layersColumn = new QVBoxLayout(layers);
    layersColumn->setContentsMargins(0, 0, 0, 0);
    layersColumn->setSpacing(0);
    bars_ = new BarPlot(tr("KV cache by group of layers"), layers);
    layerView_ = new QTableView(layers);
    layerModel_ = new FlatTreeModel(this);
    setUpTwin(layerView_, layerModel_, tr("Groups of layers"));
    layersColumn->addWidget(bars_);
    layersColumn->addWidget(layerView_, 1);
    pages_->addWidget(layers);
    setBody(pages_);

    twins_ = new QStackedWidget(this);
    sampleModel_ = new FlatTreeModel(this);
    sampleTwin_ = new QTableView(twins_);
    layerTwin_ = new QTableView(twins_);
    setUpTwin(sampleTwin_, sampleModel_, tr("KV cache by tokens"));
    setUpTwin(layerTwin_, layerModel_, tr("Groups of layers"));
    twins_->addWidget(sampleTwin_);
    twins_->addWidget(layerTwin_);
    setTable(twins_);

    panel_ = new QScrollArea;
    panel_->setFrameShape(QFrame::NoFrame);
    panel_->setWidgetResizable(true);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, panel_);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    values_ = new FactTable(tr("KV cache at a number of tokens"), content);
    layout_ = new FactTable(tr("How the KV cache is laid out"), content);
    values_->setNumberWidth(130);
    layout_->setNumberWidth(190);
    hint_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, content);
    hint_->setWordWrap(true);
    hint_->setContentsMargins(12, 10, 12, 10);
    column->addWidget(values_);
    column->addWidget(layout_);
    column->addWidget(hint_);
    column->addStretch(1);
    panel_->setWidget(content);
    panelHeader_ = new DockHeader(tr("KV cache"));

    connect(segments_, &SegmentedControl::currentChanged, this, [this](int index) {
        pages_->setCurrentIndex(index);
        twins_->setCurrentIndex(index);
        predicted_->setEnabled(index == 0);
        noWindow_->setEnabled(index == 0);
    });
    connect(predicted_, &QCheckBox::toggled, this, &KvView::updateChart);
    connect(noWindow_, &QCheckBox::toggled, this, &KvView::updateChart);
    connect(chart_, &Chart::cursorMoved, this, [this] {
        updateInspector();
        updateLayers();
    });
    connect(chart_, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(bars_, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    if (SessionDocument* document = context.document) {
        connect(document, &SessionDocument::selectionChanged, this, &KvView::reload);
        connect(document, &SessionDocument::runsChanged, this, &KvView::reload);
        connect(document, &SessionDocument::closed, this, &KvView::reload);
        connect(document, &SessionDocument::timelineChanged, this, [this](qint64 run) {
            if (run == run_) {
                reload();
            }
        });
    }
    refresh();
}

QWidget* KvView::inspector() {
    return panel_;
}

QWidget* KvView::inspectorHeader() {
    return panelHeader_;
}

QList<QWidget*> KvView::focusStops() const {
    if (emptyShown()) {
        return {};
    }
    if (header()->tableShown()) {
        return {twins_->currentWidget()};
    }
    return segments_->current() == 0 ? QList<QWidget*>{chart_} : QList<QWidget*>{bars_, layerView_};
}

bool KvView::settled() const {
    SessionDocument* document = context().document;
    return document == nullptr || run_ == 0 || document->timeline(run_).complete ||
           !document->timeline(run_).error.isEmpty();
}

void KvView::activated() {
    if (stale_) {
        refresh();
    }
}

void KvView::reload() {
    stale_ = true;
    if (isVisible() || context().document == nullptr || !context().document->isOpen()) {
        refresh();
    }
}

void KvView::refresh() {
    stale_ = false;
    SessionDocument* document = context().document;
    run_ = document != nullptr ? document->runA() : 0;
    const sessions::RunInfo* run = document != nullptr ? document->run(run_) : nullptr;
    facts_ = {};
    if (run != nullptr) {
        const TimelineState& state = document->timeline(run_);
        facts_ = kvFacts(*run, state.timeline.get());
        showError(state.error);
    }
    if (facts_.empty()) {
        sayWhyEmpty();
    } else {
        showEmpty({});
    }
    updateHeader();
    updateChart();
    updateLayers();
    updateInspector();
    sampleModel_->setTree(kvSampleTable(facts_));
    sampleTwin_->resizeColumnsToContents();
    layerTwin_->resizeColumnsToContents();
}

void KvView::sayWhyEmpty() {
    SessionDocument* document = context().document;
    const sessions::RunInfo* run = document != nullptr ? document->run(run_) : nullptr;
    if (run == nullptr) {
        showEmpty(tr("No KV cache to show: no run is chosen."), tr("Prepare a run"),
                  [this] { emit openView(QStringLiteral("run")); });
        return;
    }
    if (!document->timeline(run_).complete) {
        showEmpty(tr("Reading the events of this run."));
        return;
    }
    sessions::RunId generate = 0;
    for (const sessions::RunInfo& other : document->runs()) {
        if (other.id != run_ && kvGeometry(other)) {
            generate = other.id;
        }
    }
    const QString why = run->workload.find("load") != std::string::npos ? tr("A load keeps none.")
                        : run->workload.find("finetune") != std::string::npos
                            ? tr("Fine-tuning keeps none.")
                            : tr("Its events hold no growth of a cache.");
    const QString text = tr("No KV cache in this run. %1").arg(why);
    if (generate != 0) {
        showEmpty(text, tr("Open a generate run"), [document, generate] { document->setRunA(generate); });
    } else {
        showEmpty(text, tr("Prepare a run"), [this] { emit openView(QStringLiteral("run")); });
    }
}

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
    const auto& geometry = facts_.geometry;
    const auto most = static_cast<double>(facts_.maxTokens());
    const bool slides = geometry ? geometry->window() > 0 : facts_.at(facts_.maxTokens()).sliding > 0;
    auto* legend = static_cast<LegendStrip*>(legend_);
    std::vector<LegendItem> items = {
        {tr("full layers"), LegendItem::Mark::Swatch, [](const ThemeTokens& t) { return shade(t, false); }}};
    if (slides) {
        items.push_back(
            {tr("sliding layers"), LegendItem::Mark::Swatch, [](const ThemeTokens& t) { return shade(t, true); }});
    }
    items.push_back({tr("measured"), LegendItem::Mark::Dot, {}});
    if (geometry && predicted_->isChecked()) {
        items.push_back({tr("formula"), LegendItem::Mark::Line, {}});
    }
    if (geometry && slides && noWindow_->isChecked()) {
        items.push_back({tr("without window"), LegendItem::Mark::Dashes, {}});
    }
    legend->setItems(std::move(items),
                     geometry && slides
                         ? tr("sliding layers keep %1 tokens of a sequence").arg(countText(geometry->window() - 1))
                         : QString());
    if (facts_.empty()) {
        chart_->setSeries({});
        chart_->setStops({}, {});
        return;
    }
    const KvSample& last = facts_.samples.back();
    double top = static_cast<double>(last.total());
    if (geometry) {
        top = std::max(top, static_cast<double>(predicted_->isChecked() ? geometry->predicted(most) : 0));
        top = std::max(top, static_cast<double>(noWindow_->isChecked() ? geometry->noWindow(most) : 0));
    }
    const Unit unit = unitFor(top);
    chart_->setAxes(axisUpTo(tr("tokens"), most, 8), axisUpTo(tr("KV cache, %1").arg(unit.name), top / unit.bytes, 6));

    std::vector<QPointF> full{{0, 0}}, total{{0, 0}}, formula{{0, 0}}, unbounded{{0, 0}};
    for (const KvSample& sample : thinned(facts_.samples, kCurvePoints)) {
        const auto x = static_cast<double>(sample.tokens);
        if (full.size() > 1) { // pages come at once: a stair, not a slope
            full.emplace_back(x, full.back().y());
            total.emplace_back(x, total.back().y());
        }
        full.emplace_back(x, static_cast<double>(sample.full) / unit.bytes);
        total.emplace_back(x, static_cast<double>(sample.total()) / unit.bytes);
    }
    std::vector<ChartSeries> series;
    series.push_back({tr("full layers"), ChartSeries::Kind::Area, full, {}, fullColor, Hatch::None});
    if (slides) {
        series.push_back(
            {tr("sliding layers"), ChartSeries::Kind::Area, total, full, slidingColor, Hatch::BackDiagonal});
    }
    std::vector<ChartMark> marks;
    std::vector<ChartNote> notes;
    const auto text1 = [](const ThemeTokens& t) { return t.text1; };
    const auto text2 = [](const ThemeTokens& t) { return t.text2; };
    if (geometry) {
        const double knee = geometry->knee();
        if (noWindow_->isChecked() && slides) {
            unbounded.emplace_back(most, static_cast<double>(geometry->noWindow(most)) / unit.bytes);
            series.push_back(
                {tr("without window"), ChartSeries::Kind::Line, unbounded, {}, text2, Hatch::None, 1.2, true});
            notes.push_back(
                {unbounded.back(), tr("without window %1").arg(bytesText(geometry->noWindow(most))), text2});
        }
        if (predicted_->isChecked()) {
            if (knee > 0 && knee < most) {
                formula.emplace_back(knee, static_cast<double>(geometry->predicted(knee)) / unit.bytes);
            }
            formula.emplace_back(most, static_cast<double>(geometry->predicted(most)) / unit.bytes);
            series.push_back({tr("formula"), ChartSeries::Kind::Line, formula, {}, text1, Hatch::None, 1});
        }
        if (slides && knee < most) {
            marks.push_back(
                {Qt::Vertical, knee,
                 geometry->sequences > 1
                     ? tr("window %1, %2 sequences").arg(countText(geometry->window()), countText(geometry->sequences))
                     : tr("window %1").arg(countText(geometry->window()))});
        }
    }
    std::vector<QPointF> dots;
    for (const KvSample& sample : thinned(facts_.samples, kDots)) {
        dots.emplace_back(static_cast<double>(sample.tokens), static_cast<double>(sample.total()) / unit.bytes);
    }
    series.push_back({tr("measured"), ChartSeries::Kind::Dots, dots, {}, text1, Hatch::None, 6});
    const bool withError = geometry && predicted_->isChecked();
    notes.push_back({dots.back(),
                     withError ? tr("measured %1, error %2").arg(bytesText(last.total()), errorText(facts_.error()))
                               : tr("measured %1").arg(bytesText(last.total())),
                     text1, true});
    chart_->setSeries(std::move(series));
    chart_->setMarks(std::move(marks));
    chart_->setNotes(std::move(notes));
    std::vector<double> stops;
    stops.reserve(facts_.samples.size());
    for (const KvSample& sample : facts_.samples) {
        stops.push_back(static_cast<double>(sample.tokens));
    }
    chart_->setStops(std::move(stops), [this](double x) {
        const KvSample& sample = facts_.at(static_cast<std::int64_t>(x));
        QString words = tr("%1 tokens: full %2, sliding %3, measured %4")
                            .arg(countText(sample.tokens), bytesText(sample.full), bytesText(sample.sliding),
                                 bytesText(sample.total()));
        if (facts_.geometry) {
            words += tr(", predicted %1").arg(bytesText(facts_.geometry->predicted(x)));
        }
        return words;
    });
}

void KvView::updateLayers() {
    const std::int64_t tokens = shownTokens();
    layerModel_->setTree(kvLayerTable(facts_, tokens));
    layerView_->resizeColumnsToContents();
    if (!facts_.geometry) {
        bars_->setGroups({}, 120);
        return;
    }
    const KvGeometry geometry = *facts_.geometry;
    bars_->setGroups(
        [geometry, tokens](const ThemeTokens& t) {
            std::vector<BarGroup> groups;
            for (const KvLayerGroup& group : geometry.groups) {
                const auto sequences = static_cast<double>(geometry.sequences);
                const double kept =
                    static_cast<double>(group.bytes(static_cast<double>(tokens) / sequences)) * sequences;
                const double all = static_cast<double>(group.bytesPerToken) * static_cast<double>(tokens);
                BarGroup out;
                out.name = tr(group.sliding() ? "sliding, %1 layers" : "full, %1 layers").arg(group.layers.size());
                out.rows.push_back({kept,
                                    tr("kept %1").arg(bytesText(static_cast<std::uint64_t>(kept))),
                                    shade(t, group.sliding()),
                                    {},
                                    false});
                if (group.sliding()) {
                    out.rows.push_back(
                        {all, tr("without window %1").arg(bytesText(static_cast<std::uint64_t>(all))), {}, {}, true});
                    out.fact = kept > 0 ? ratioText(all / kept) : QString();
                    out.strong = true;
                }
                groups.push_back(std::move(out));
            }
            return groups;
        },
        120);
}

void KvView::updateInspector() {
    const std::int64_t tokens = shownTokens();
    panelHeader_->setTitle(facts_.empty() ? tr("KV cache") : tr("At %1 tokens").arg(countText(tokens)));
    auto values = std::make_shared<FlatTree>();
    auto shape = std::make_shared<FlatTree>();
    values->columns = {{tr("Bytes")}, {QString(), true}};
    shape->columns = {{tr("Layout")}, {QString(), true}};
    if (!facts_.empty()) {
        const KvSample& sample = facts_.at(tokens);
        const auto count = static_cast<double>(sample.tokens);
        std::size_t full = 0, sliding = 0;
        if (facts_.geometry) {
            for (const KvLayerGroup& group : facts_.geometry->groups) {
                (group.sliding() ? sliding : full) += group.layers.size();
            }
        }
        values->nodes.push_back(bytesFact(full > 0 ? tr("full, %1 layers").arg(full) : tr("full layers"), sample.full));
        if (sample.sliding > 0 || sliding > 0) {
            values->nodes.push_back(
                bytesFact(sliding > 0 ? tr("sliding, %1 layers").arg(sliding) : tr("sliding layers"), sample.sliding));
        }
        values->nodes.push_back(bytesFact(tr("measured"), sample.total(), true));
        if (facts_.geometry) {
            const std::uint64_t predicted = facts_.geometry->predicted(count);
            const double error = predicted > 0
                                     ? (static_cast<double>(sample.total()) - static_cast<double>(predicted)) /
                                           static_cast<double>(predicted)
                                     : 0;
            values->nodes.push_back(bytesFact(tr("predicted"), predicted));
            values->nodes.push_back(fact(tr("error"), errorText(error)));
            if (facts_.geometry->window() > 0) {
                values->nodes.push_back(bytesFact(tr("without window"), facts_.geometry->noWindow(count)));
                const double ratio = static_cast<double>(facts_.geometry->noWindow(count)) /
                                     std::max(1.0, static_cast<double>(sample.total()));
                values->nodes.push_back(fact(tr("the window saves"), ratioText(ratio)));
            }
        }
    }
    if (facts_.geometry) {
        for (const KvLayerGroup& group : facts_.geometry->groups) {
            const QString name = tr(group.sliding() ? "sliding" : "full");
            shape->nodes.push_back(fact(tr("%1 layers").arg(name), layerListText(group.layers)));
            shape->nodes.back().cells[1].tip = layerListText(group.layers);
            shape->nodes.push_back(bytesFact(tr("%1, one token").arg(name), group.bytesPerToken));
            if (group.pageTokens > 0) {
                shape->nodes.push_back(
                    fact(tr("%1, page").arg(name), tr("%1 tokens").arg(countText(group.pageTokens))));
            }
        }
        if (facts_.geometry->window() > 0) {
            shape->nodes.push_back(fact(tr("window"), tr("%1 tokens").arg(countText(facts_.geometry->window()))));
        }
        shape->nodes.push_back(fact(tr("dtype"), facts_.geometry->dtype));
    }
    values_->setTable(values);
    layout_->setTable(shape);
    layout_->setVisible(!shape->nodes.empty());
    hint_->setText(facts_.empty() ? QString()
                   : !facts_.geometry
                       ? tr("This run does not say how its cache is laid out, so there is no prediction.")
                       : tr("Predicted counts the tokens kept; measured counts whole pages, so it is larger by the "
                            "rest of the last page."));
}

} // namespace vitrine::ui
