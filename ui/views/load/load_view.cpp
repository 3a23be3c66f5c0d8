// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/load/load_view.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <cmath>

#include "ui/models/format.h"
#include "ui/models/run_facts.h"
#include "ui/widgets/bar_plot.h"
#include "ui/widgets/fact_table.h"
#include "ui/widgets/legend_strip.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

namespace {

constexpr int kRoomForBars = 640; ///< height of the body from which on the bars are shown
constexpr int kRoomForSpans = 420;

/// Spans of one lane as few bars: gaps of less than a hundredth of the load are closed.
std::vector<SpanRow::Span> bars(const LoadSide& side, const QString& lane, const QString& label) {
    std::vector<TimeRange> ranges;
    for (std::size_t i = 0; i < side.spans.size(); ++i) {
        if (side.spanLanes[i] == lane) {
            ranges.push_back({side.spans[i].begin, side.spans[i].end});
        }
    }
    std::sort(ranges.begin(), ranges.end(), [](const TimeRange& a, const TimeRange& b) { return a.begin < b.begin; });
    const base::TimeNs gap = side.length / 60;
    std::vector<SpanRow::Span> out;
    for (const TimeRange& range : ranges) {
        if (!out.empty() && range.begin - out.back().range.end <= gap) {
            out.back().range.end = std::max(out.back().range.end, range.end);
        } else {
            out.push_back({range, {}, 0});
        }
    }
    const auto longest = std::max_element(
        out.begin(), out.end(), [](const auto& a, const auto& b) { return a.range.length() < b.range.length(); });
    if (longest != out.end()) {
        longest->label = label;
    }
    return out;
}

/// Read (or Fill), Copy, and Expand or Lay out.
std::vector<SpanRow> stageRows(const LoadSide& side, bool withCopy) {
    std::vector<SpanRow> rows;
    const auto rate = [&](const char* name) {
        const profiler::LoadStage* stage = side.stage(name);
        return stage != nullptr ? rateText(stage->bytesPerSecond) : QString();
    };
    const bool filled = side.stage("Fill") != nullptr;
    const QString source = filled ? QStringLiteral("Fill") : QStringLiteral("Read");
    rows.push_back(
        {filled ? QObject::tr("Fill") : QObject::tr("Read"), bars(side, source, rate(filled ? "Fill" : "Read"))});
    if (withCopy) {
        rows.push_back({QObject::tr("Copy"), bars(side, QStringLiteral("Copy"), rate("Copy"))});
    }
    if (side.stage("Expand") != nullptr) {
        rows.push_back({QObject::tr("Expand"), bars(side, QStringLiteral("Expand"),
                                                    QObject::tr("MXFP4 to BF16, %1 written").arg(rate("Expand")))});
    } else {
        base::TimeNs begin = side.length;
        for (const profiler::LoadStage& stage : side.stages) {
            begin = std::min(begin, stage.begin);
        }
        rows.push_back({QObject::tr("Lay out"), {{{begin, side.length}, QObject::tr("in place, no expansion"), 0}}});
    }
    return rows;
}

QString sideFacts(const LoadSide& side) {
    return QObject::tr("%1, resident %2, peak %3")
        .arg(durationText(static_cast<base::TimeNs>(std::llround(side.seconds * 1e9))),
             bytesText(side.residentWeights()), bytesText(side.peak));
}

} // namespace

LoadView::LoadView(const ViewContext& context, QWidget* parent)
    : View(QStringLiteral("load"), tr("Load comparison"), context, parent) {
    layout_ = header()->addSegments({tr("Side by side"), tr("Overlay")}, tr("Layout"));
    grouping_ = header()->addSegments({tr("Category"), tr("Part")}, tr("Group by"));
    grouping_->setCurrent(1);
    sameAxis_ = header()->addCheck(tr("Same time axis"), true);
    buildBody();
    buildInspector();
    twin_ = new QTableView(this);
    twinModel_ = new FlatTreeModel(this);
    setUpTwin(twin_, twinModel_, tr("Both loads"));
    setTable(twin_);

    connect(layout_, &SegmentedControl::currentChanged, this, [this](int index) {
        pages_->setCurrentIndex(index);
        updateLegend();
    });
    connect(grouping_, &SegmentedControl::currentChanged, this, [this] {
        updateLanes();
        updateLegend();
        updateBars();
    });
    connect(sameAxis_, &QCheckBox::toggled, this, [this] { updateExtents(); });
    mirror(sides_[0], sides_[1]);
    mirror(sides_[1], sides_[0]);
    if (SessionDocument* document = context.document) {
        connect(document, &SessionDocument::selectionChanged, this, &LoadView::reload);
        connect(document, &SessionDocument::runsChanged, this, &LoadView::reload);
        connect(document, &SessionDocument::closed, this, &LoadView::reload);
        connect(document, &SessionDocument::timelineChanged, this, [this](qint64 run) {
            if (run == choice_.a || run == choice_.b) {
                reload();
            }
        });
    }
    refresh();
}

void LoadView::buildBody() {
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, this);
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    legend_ = new LegendStrip(body);
    column->addWidget(legend_);
    pages_ = new QStackedWidget(body);
    auto* both = new Surface(Surface::Fill::Canvas, Surface::None, pages_);
    auto* lanes = new QVBoxLayout(both);
    lanes->setContentsMargins(0, 0, 0, 0);
    lanes->setSpacing(0);
    for (int i = 0; i < 2; ++i) {
        Side& side = sides_[static_cast<std::size_t>(i)];
        side.time = new TimeCursor(this);
        side.stack = new LaneStack(side.time, LaneStack::NoStrips, both);
        side.lane = new LoadLane(i == 0 ? tr("Load A") : tr("Load B"), side.time, side.stack);
        side.lane->setBadge(i == 0 ? QLatin1Char('A') : QLatin1Char('B'));
        side.lane->setPlotHeight(60, 1);
        side.spans = new SpanLane(i == 0 ? tr("Stages of A") : tr("Stages of B"), side.time, side.stack);
        side.spans->setHeader(false);
        side.stack->addLane(side.lane);
        side.stack->addLane(side.spans);
        side.ruler = side.stack->addRuler();
        lanes->addWidget(side.stack, 1);
        connect(side.time, &TimeCursor::cursorChanged, this, &LoadView::updateReadout);
    }
    pages_->addWidget(both);
    overlay_ = new LaneStack(sides_[0].time, LaneStack::NoStrips, pages_);
    overlayLane_ = new CurveLane(tr("Device memory of both loads"), sides_[0].time, overlay_);
    overlayLane_->setPlotHeight(152, 1);
    overlay_->addLane(overlayLane_);
    overlay_->addRuler();
    pages_->addWidget(overlay_);
    column->addWidget(pages_, 1);

    barsHead_ = new Surface(Surface::Fill::Panel, Surface::Top, body);
    barsHead_->setFixedHeight(23);
    auto* head = new QHBoxLayout(barsHead_);
    head->setContentsMargins(12, 1, 12, 0);
    head->addWidget(new TextLabel(tr("Resident bytes by part"), TypeRole::Table, TextColor::Text1, true, barsHead_));
    barsFacts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, barsHead_);
    barsFacts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    head->addWidget(barsFacts_, 1);
    bars_ = new BarPlot(tr("Resident bytes by part"), body);
    connect(bars_, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    column->addWidget(barsHead_);
    column->addWidget(bars_);
    setBody(body);
}

void LoadView::buildInspector() {
    panel_ = new QScrollArea;
    panel_->setFrameShape(QFrame::NoFrame);
    panel_->setWidgetResizable(true);
    panel_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, panel_);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 12, 0, 0);
    column->setSpacing(0);
    number_ = new TextLabel({}, TypeRole::Number, TextColor::Text1, false, content);
    number_->setContentsMargins(12, 0, 12, 0);
    sentence_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, content);
    sentence_->setContentsMargins(12, 0, 12, 14);
    sentence_->setWordWrap(true);
    column->addWidget(number_);
    column->addWidget(sentence_);
    loadTable_ = new FactTable(tr("Load"), content);
    memoryTable_ = new FactTable(tr("Memory"), content);
    afterTable_ = new FactTable(tr("After the load"), content);
    agreementTable_ = new FactTable(tr("Agreement"), content);
    agreementTable_->setNumberWidth(150);
    for (FactTable* table : {loadTable_, memoryTable_, afterTable_, agreementTable_}) {
        column->addWidget(table);
    }
    costHead_ = new Surface(Surface::Fill::Panel, Surface::Top | Surface::Bottom, content);
    costHead_->setFixedHeight(25);
    auto* head = new QHBoxLayout(costHead_);
    head->setContentsMargins(12, 0, 12, 0);
    head->addWidget(new TextLabel(tr("What it costs"), TypeRole::Table, TextColor::Text1, true, costHead_));
    cost_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, content);
    cost_->setWordWrap(true);
    cost_->setContentsMargins(12, 8, 12, 12);
    column->addWidget(costHead_);
    column->addWidget(cost_);
    column->addStretch(1);
    panel_->setWidget(content);
    panelHeader_ = new DockHeader(tr("Result"));
    panelFacts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, panelHeader_);
    panelHeader_->addControl(panelFacts_);
}

QWidget* LoadView::inspector() {
    return panel_;
}

QWidget* LoadView::inspectorHeader() {
    return panelHeader_;
}

/// While both have one axis, what is done to one is done to the other.
void LoadView::mirror(const Side& from, const Side& to) {
    const auto copy = [this, a = from.time, b = to.time](auto change) {
        return [this, a, b, change] {
            if (sameAxis_->isChecked() && !mirroring_) {
                mirroring_ = true;
                change(a, b);
                mirroring_ = false;
            }
        };
    };
    connect(from.time, &TimeCursor::rangeChanged, this,
            copy([](TimeCursor* a, TimeCursor* b) { b->setRange(a->range(), false); }));
    connect(from.time, &TimeCursor::cursorChanged, this,
            copy([](TimeCursor* a, TimeCursor* b) { b->setCursor(a->cursor()); }));
    connect(from.time, &TimeCursor::measuredChanged, this,
            copy([](TimeCursor* a, TimeCursor* b) { b->setMeasured(a->measured()); }));
}

bool LoadView::perform(const QString& action) {
    if (action == QLatin1String("view.time-unit")) {
        for (const Side& side : sides_) {
            side.stack->nextTimeUnit();
        }
        overlay_->nextTimeUnit();
        return true;
    }
    TimeCursor* time = sides_[0].time;
    const QString& id = action;
    if (id == QLatin1String("zoom.fit") || id == QLatin1String("zoom.all") || id == QLatin1String("zoom.back")) {
        id == QLatin1String("zoom.fit")   ? time->fitSelection()
        : id == QLatin1String("zoom.all") ? time->fitAll()
                                          : void(time->back());
        return true;
    }
    if (id == QLatin1String("select.clear") && (time->cursor() || time->measured())) {
        time->setMeasured(std::nullopt);
        time->setCursor(std::nullopt);
        return true;
    }
    if (action == QLatin1String("compare.swap") && choice_.oneRun) {
        return true; // A and B are the two variants of one run: quantized stays A
    }
    return View::perform(action);
}

QList<QWidget*> LoadView::focusStops() const {
    if (emptyShown()) {
        return {};
    }
    if (header()->tableShown()) {
        return {twin_};
    }
    QList<QWidget*> stops;
    if (layout_->current() == 0) {
        for (const Side& side : sides_) {
            if (side.stack->isVisibleTo(this)) {
                stops << side.stack->focusStops();
            }
        }
    } else {
        stops << overlay_->focusStops();
    }
    if (bars_->isVisibleTo(this)) {
        stops << bars_;
    }
    return stops;
}

bool LoadView::settled() const {
    SessionDocument* document = context().document;
    if (document == nullptr) {
        return true;
    }
    const auto done = [&](sessions::RunId id) {
        return id == 0 || document->timeline(id).complete || !document->timeline(id).error.isEmpty();
    };
    return done(choice_.a) && done(choice_.b);
}

void LoadView::activated() {
    if (stale_) {
        refresh();
    }
}

void LoadView::reload() {
    stale_ = true;
    if (isVisible() || context().document == nullptr || !context().document->isOpen()) {
        refresh();
    }
}

void LoadView::refresh() {
    stale_ = false;
    pair_ = {};
    choice_ = {};
    SessionDocument* document = context().document;
    QString error;
    if (document != nullptr && document->isOpen()) {
        choice_ = chooseLoads(document->runs(), document->runA(), document->runB());
        const auto read = [&](sessions::RunId id, std::size_t index) -> std::optional<LoadSide> {
            const sessions::RunInfo* run = id != 0 ? document->run(id) : nullptr;
            if (run == nullptr) {
                return std::nullopt;
            }
            const TimelineState& state = document->timeline(id);
            error = !state.error.isEmpty() ? state.error : error;
            if (!state.timeline) {
                return std::nullopt;
            }
            LoadSide side = loadSide(*run, *state.timeline, index);
            return side.steps.size() > 1 ? std::optional(std::move(side)) : std::nullopt;
        };
        pair_.a = read(choice_.a, choice_.indexA);
        pair_.b = read(choice_.b, choice_.indexB);
        pair_.fromOneRun = choice_.oneRun;
        if (!pair_.a && pair_.b) {
            std::swap(pair_.a, pair_.b);
        }
    }
    showError(error);
    if (!pair_.a) {
        sayWhyEmpty();
    } else {
        showEmpty({});
    }
    updateLanes();
    updateExtents();
    updateLegend();
    updateBars();
    updateInspector();
    updateReadout();
    twinModel_->setTree(pair_.a ? loadTwin(pair_) : nullptr);
    twin_->resizeColumnsToContents();
    placeParts();
}

void LoadView::sayWhyEmpty() {
    SessionDocument* document = context().document;
    if (document != nullptr && choice_.a != 0 && !settled()) {
        showEmpty(tr("Reading the events of this run."));
        return;
    }
    sessions::RunId load = 0;
    if (document != nullptr) {
        for (const sessions::RunInfo& run : document->runs()) {
            load = loadVariants(run) > 0 ? run.id : load;
        }
    }
    if (load != 0 && load != choice_.a) {
        showEmpty(tr("No load in this run."), tr("Open a load run"), [document, load] { document->setRunA(load); });
    } else {
        showEmpty(tr("No load to compare. Load a model with both kinds of weights."), tr("Prepare a run"),
                  [this] { emit openView(QStringLiteral("run")); });
    }
}

std::vector<const LoadSide*> LoadView::shownSides() const {
    std::vector<const LoadSide*> sides;
    for (const std::optional<LoadSide>* side : {&pair_.a, &pair_.b}) {
        if (*side) {
            sides.push_back(&**side);
        }
    }
    return sides;
}

void LoadView::updateLanes() {
    std::uint64_t top = 1;
    bool copies = false;
    for (const LoadSide* side : shownSides()) {
        top = std::max(top, side->peak);
        copies = copies || side->stage("Copy") != nullptr;
    }
    const auto grouping = grouping_->current() == 0 ? LoadGrouping::Category : LoadGrouping::Part;
    std::vector<Curve> curves;
    for (std::size_t i = 0; i < 2; ++i) {
        const Side& widgets = sides_[i];
        const std::optional<LoadSide>& side = i == 0 ? pair_.a : pair_.b;
        widgets.stack->setVisible(side.has_value());
        if (!side) {
            widgets.lane->setSide(nullptr);
            continue;
        }
        const auto shared = std::make_shared<const LoadSide>(*side);
        widgets.lane->setTitle(side->title);
        widgets.lane->setFacts(sideFacts(*side));
        widgets.lane->setGrouping(grouping);
        widgets.lane->setTop(top);
        widgets.lane->setSide(shared);
        widgets.spans->setRows(stageRows(*side, copies));
        Curve curve;
        curve.name = i == 0 ? QStringLiteral("A") : QStringLiteral("B");
        curve.values = [shared](const AxisMap& axis, int columns) { return loadTotals(*shared, axis, columns); };
        curve.color = i == 0 ? std::function([](const ThemeTokens& t) { return t.compareA; })
                             : std::function([](const ThemeTokens& t) { return t.compareB; });
        curve.dashed = i == 1;
        curves.push_back(std::move(curve));
    }
    overlayLane_->setCurves(std::move(curves), static_cast<double>(top) * 1.05, true);
    overlayLane_->setFacts(tr("peak A %1, B %2")
                               .arg(pair_.a ? bytesText(pair_.a->peak) : unknownText(),
                                    pair_.b ? bytesText(pair_.b->peak) : unknownText()));
}

void LoadView::updateExtents() {
    const bool same = sameAxis_->isChecked();
    base::TimeNs longest = 0;
    for (const LoadSide* side : shownSides()) {
        longest = std::max(longest, side->length);
    }
    mirroring_ = true;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::optional<LoadSide>& side = i == 0 ? pair_.a : pair_.b;
        const base::TimeNs length = std::max<base::TimeNs>(1000, same || !side ? longest : side->length);
        const TimeRange extent{0, length + length / 6};
        if (!(sides_[i].time->extent() == extent)) {
            sides_[i].time->reset(extent);
        }
    }
    mirroring_ = false;
    sides_[0].ruler->setVisible(!same || !pair_.b);
}

void LoadView::updateLegend() {
    std::vector<LegendItem> items;
    if (layout_->current() == 1) {
        items.push_back({pair_.a ? pair_.a->title : QString(), LegendItem::Mark::BadgeA, {}});
        if (pair_.b) {
            items.push_back({pair_.b->title, LegendItem::Mark::BadgeB, {}});
        }
    } else if (grouping_->current() == 1) {
        for (const LoadPart part : {LoadPart::Experts, LoadPart::Mlp, LoadPart::Embedding, LoadPart::Attention,
                                    LoadPart::Small, LoadPart::Workspace, LoadPart::Untracked}) {
            bool present = false;
            for (const LoadSide* side : shownSides()) {
                present = present || std::any_of(side->steps.begin(), side->steps.end(), [&](const LoadStep& step) {
                              return step.parts[static_cast<std::size_t>(part)] > 0;
                          });
            }
            if (present) {
                const StackLayer layer = loadPartLayer(part);
                items.push_back({layer.name, LegendItem::Mark::Swatch,
                                 [layer](const ThemeTokens& t) { return layerStyle(layer, t); }});
            }
        }
    } else {
        for (const auto category : {base::MemoryCategory::Weights, base::MemoryCategory::Workspace,
                                    base::MemoryCategory::Untracked, base::MemoryCategory::Other}) {
            items.push_back({textOf(base::categoryName(category)), LegendItem::Mark::Swatch,
                             [category](const ThemeTokens& t) { return t.category(category); }});
        }
    }
    legend_->setItems(std::move(items));
}

void LoadView::updateBars() {
    if (!pair_.a) {
        bars_->setGroups({}, 60);
        return;
    }
    const LoadPair pair = pair_;
    bars_->setGroups(
        [pair](const ThemeTokens& t) {
            std::vector<BarGroup> groups;
            for (const LoadPart part :
                 {LoadPart::Experts, LoadPart::Mlp, LoadPart::Embedding, LoadPart::Attention, LoadPart::Small}) {
                const auto i = static_cast<std::size_t>(part);
                const std::uint64_t a = pair.a->resident[i], b = pair.b ? pair.b->resident[i] : 0;
                if (a == 0 && b == 0) {
                    continue;
                }
                BarGroup group;
                group.name = part == LoadPart::Embedding ? tr("embed, head")
                             : part == LoadPart::Small   ? tr("other")
                                                         : loadPartName(part);
                const CategoryStyle style = layerStyle(loadPartLayer(part), t);
                group.rows.push_back({double(a), tr("A %1").arg(bytesText(a)), style, QLatin1Char('A'), false});
                if (pair.b) {
                    group.rows.push_back({double(b), tr("B %1").arg(bytesText(b)), style, QLatin1Char('B'), false});
                    const double larger = static_cast<double>(std::max(a, b)),
                                 smaller = static_cast<double>(std::min(a, b));
                    group.strong = smaller > 0 && larger / smaller > 1.0005;
                    group.fact = a == b        ? QStringLiteral("=")
                                 : smaller > 0 ? ratioText(static_cast<double>(b) / static_cast<double>(a))
                                               : unknownText();
                }
                groups.push_back(std::move(group));
            }
            return groups;
        },
        84, pair.b ? tr("B to A") : QString());
    const auto &a = pair_.a->bytesRead, b = pair_.b ? pair_.b->bytesRead : std::nullopt;
    barsFacts_->setText(a && b && *a == *b ? tr("read %1 in both").arg(bytesText(*a))
                        : a                ? tr("A read %1").arg(bytesText(*a))
                                           : QString());
}

void LoadView::updateInspector() {
    SessionDocument* document = context().document;
    const auto after = [&](const std::optional<LoadSide>& side) {
        const sessions::RunInfo* run = side && document != nullptr ? document->run(side->run) : nullptr;
        return run != nullptr ? afterLoad(document->runs(), *run, side->weights) : AfterLoad();
    };
    const AfterLoad a = after(pair_.a), b = after(pair_.b);
    const LoadWords words = loadWords(pair_, a, b);
    number_->setText(words.number);
    sentence_->setText(words.sentence);
    const auto fill = [](FactTable* table, FlatTreePtr content, const QString& badges) {
        table->setVisible(content != nullptr);
        if (content) {
            table->setTable(std::move(content), badges);
        }
    };
    const QString badges = QStringLiteral(" AB ");
    fill(loadTable_, pair_.a ? loadTable(pair_) : nullptr, badges);
    fill(memoryTable_, pair_.a ? loadMemoryTable(pair_) : nullptr, badges);
    fill(afterTable_, pair_.b ? afterLoadTable(a, b) : nullptr, badges);
    fill(agreementTable_, pair_.b ? agreementTable(a, b) : nullptr, {});
    costHead_->setVisible(!words.cost.isEmpty());
    cost_->setVisible(!words.cost.isEmpty());
    cost_->setText(words.cost);
    const sessions::RunInfo* run = pair_.a && document != nullptr ? document->run(pair_.a->run) : nullptr;
    const RunFacts facts = run != nullptr ? runFacts(*run) : RunFacts();
    panelFacts_->setText(facts.dtype.isEmpty() ? facts.device : facts.device + QStringLiteral(", ") + facts.dtype);
    QStringList said;
    if (pair_.a && pair_.a->repeats > 1) {
        said << tr("%1 repeats, median shown").arg(pair_.a->repeats);
    }
    if (run != nullptr && (!pair_.b || choice_.oneRun)) {
        said << QString::fromStdString(run->name);
    }
    header()->setFacts(said.join(QStringLiteral(", ")));
}

void LoadView::updateReadout() {
    const auto cursor = sides_[0].time->cursor();
    if (!cursor || !pair_.a) {
        setReadout({});
        return;
    }
    QString text = tr("Cursor %1: A %2").arg(durationText(*cursor), bytesText(pair_.a->at(*cursor).total()));
    if (pair_.b) {
        const base::TimeNs inB = sides_[1].time->cursor().value_or(*cursor);
        text += tr(", B %1").arg(bytesText(pair_.b->at(inB).total()));
    }
    setReadout(text);
}

void LoadView::placeParts() {
    const int height = pages_->parentWidget()->height();
    const bool bars = height >= kRoomForBars;
    barsHead_->setVisible(bars);
    bars_->setVisible(bars);
    for (const Side& side : sides_) {
        side.spans->setVisible(height >= kRoomForSpans);
    }
}

void LoadView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    placeParts();
}

} // namespace vitrine::ui
