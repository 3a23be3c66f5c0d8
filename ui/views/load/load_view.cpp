// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/load/load_view.h"

#include <QCheckBox>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>

#include "ui/models/common/format.h"
#include "ui/models/load/load_quality.h"
#include "ui/models/load/load_tables.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/load/load_plots.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/bar_plot.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

namespace {

constexpr std::array kLoadLetters = {QLatin1Char('A'), QLatin1Char('B'), QLatin1Char('C')};
constexpr int kRoomForBars = 640; ///< height of the body from which on the bars are shown
constexpr int kRoomForThreeAndBars = 760;
constexpr int kRoomForSpans = 420, kRoomForThreeSpans = 560;

} // namespace

LoadView::LoadView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("load"), tr("Load comparison"), context, parent), qualityJob_(this) {
    layout_ = header()->addSegments({tr("Side by side"), tr("Overlay")}, tr("Layout"));
    grouping_ = header()->addSegments({tr("Category"), tr("Part")}, tr("Group by"));
    grouping_->setCurrent(1);
    sameAxis_ = header()->addCheck(tr("Same time axis"), true);
    buildBody();
    buildInspector();
    makeTwin(tr("Both loads"));

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
    for (const Side& from : sides_) {
        for (const Side& to : sides_) {
            if (&from != &to) {
                mirror(from, to);
            }
        }
    }
    followDocument();
}

QWidget* LoadView::inspector() {
    return panel_;
}

QWidget* LoadView::inspectorHeader() {
    return panelHeader_;
}

/// While all have one axis, what is done to one is done to the others.
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
    if (action == QLatin1String("compare.swap") && choice_.oneRun) {
        return true; // A and B are the two variants of one run: quantized stays A
    }
    return DocumentView::perform(action);
}

std::vector<sessions::RunId> LoadView::shownRuns() const {
    return {choice_.a, choice_.b, third_};
}

QList<LaneStack*> LoadView::laneStacks() const {
    return {sides_[0].stack, sides_[1].stack, sides_[2].stack, overlay_};
}

QList<QWidget*> LoadView::bodyStops() const {
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

void LoadView::refresh() {
    pair_ = {};
    choice_ = {};
    third_ = 0;
    QString error;
    if (document() != nullptr && document()->isOpen()) {
        choice_ = chooseLoads(document()->runs(), runA(), runB());
        const auto read = [&](sessions::RunId id, std::size_t index) -> std::optional<LoadSide> {
            const sessions::RunInfo* run = runInfo(id);
            if (run == nullptr) {
                return std::nullopt;
            }
            const TimelineState state = timelineOf(id);
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
        if (pair_.a && pair_.b && !choice_.oneRun) {
            third_ = thirdLoad(document()->runs(), choice_.a, choice_.b);
            pair_.c = read(third_, 0);
        }
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
    updateQuality();
    updateReadout();
    twinModel()->setTree(pair_.a ? loadTwin(pair_) : nullptr);
    twin()->resizeColumnsToContents();
    placeParts();
}

void LoadView::sayWhyEmpty() {
    if (choice_.a != 0 && !settled()) {
        showEmpty(tr("Reading the events of this run."));
        return;
    }
    sessions::RunId load = 0;
    if (document() != nullptr) {
        for (const sessions::RunInfo& run : document()->runs()) {
            load = loadVariants(run) > 0 ? run.id : load;
        }
    }
    if (load != 0 && load != choice_.a) {
        showEmpty(tr("No load in this run."), tr("Open a load run"), [this, load] { document()->setRunA(load); });
    } else {
        showEmpty(tr("No load to compare. Load a model with both kinds of weights."), tr("Prepare a run"),
                  [this] { emit openView(QStringLiteral("run")); });
    }
}

std::vector<const LoadSide*> LoadView::shownSides() const {
    std::vector<const LoadSide*> sides;
    for (const std::optional<LoadSide>* side : {&pair_.a, &pair_.b, &pair_.c}) {
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
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        const Side& widgets = sides_[i];
        const std::optional<LoadSide>& side = loaded(i);
        widgets.stack->setVisible(side.has_value());
        if (!side) {
            widgets.lane->setSide(nullptr);
            continue;
        }
        const auto shared = std::make_shared<const LoadSide>(*side);
        widgets.lane->setTitle(side->title);
        widgets.lane->setFacts(sideSummary(*side));
        widgets.lane->setGrouping(grouping);
        widgets.lane->setTop(top);
        widgets.lane->setSide(shared);
        widgets.spans->setRows(stageRows(*side, copies));
        Curve curve;
        curve.name = QString(kLoadLetters[i]);
        curve.values = [shared](const AxisMap& axis, int columns) { return loadTotals(*shared, axis, columns); };
        curve.color = [i](const ThemeTokens& t) { return i == 0 ? t.compareA : i == 1 ? t.compareB : t.text2; };
        curve.dashed = i > 0;
        curves.push_back(std::move(curve));
    }
    overlayLane_->setCurves(std::move(curves), static_cast<double>(top) * 1.05, true);
    QStringList facts;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        if (const std::optional<LoadSide>& side = loaded(i)) {
            facts << tr("%1 %2, peak %3").arg(kLoadLetters[i]).arg(loadTimeText(*side), bytesText(side->peak));
        }
    }
    overlayLane_->setFacts(facts.join(QStringLiteral("   ")));
}

void LoadView::updateExtents() {
    const bool same = sameAxis_->isChecked();
    base::TimeNs longest = 0;
    for (const LoadSide* side : shownSides()) {
        longest = std::max(longest, side->length);
    }
    mirroring_ = true;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        const std::optional<LoadSide>& side = loaded(i);
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
    const LoadContent content = layout_->current() == 1     ? LoadContent::Lines
                                : grouping_->current() == 1 ? LoadContent::Parts
                                                            : LoadContent::Categories;
    legend_->setItems(loadLegend(pair_, content));
}

void LoadView::updateBars() {
    if (!pair_.a) {
        bars_->setGroups({}, 60);
        return;
    }
    bars_->setGroups([pair = pair_](const ThemeTokens& t) { return loadBars(pair, t); }, 84,
                     pair_.b ? tr("B to A") : QString());
    const auto &a = pair_.a->bytesRead, b = pair_.b ? pair_.b->bytesRead : std::nullopt;
    barsFacts_->setText(a && b && *a == *b ? tr("read %1 in both").arg(bytesText(*a))
                        : a                ? tr("A read %1").arg(bytesText(*a))
                                           : QString());
}

void LoadView::updateInspector() {
    const auto after = [&](const std::optional<LoadSide>& side, std::size_t variant) {
        const sessions::RunInfo* run = side ? runInfo(side->run) : nullptr;
        if (run == nullptr) {
            return AfterLoad();
        }
        // What the load measured itself; else what other runs of the same model say.
        const auto measured = measuredAfterLoad(*run, variant);
        return measured ? *measured : afterLoad(document()->runs(), *run, side->weights);
    };
    const AfterLoad a = after(pair_.a, choice_.indexA), b = after(pair_.b, choice_.indexB);
    const LoadText words = loadText(pair_, a, b);
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
    fill(afterTable_, pair_.b ? withHeads(afterLoadTable(a, b), loadTable(pair_)) : nullptr, badges);
    const sessions::RunInfo* both = choice_.oneRun ? runInfo(choice_.a) : nullptr;
    const FlatTreePtr measured = both != nullptr ? measuredAgreement(*both) : nullptr;
    const FlatTreePtr compared = measured ? measured : agreementTable(a, b);
    fill(agreementTable_, !pair_.b ? nullptr : compared ? compared : unknownAgreement(), {});
    costHead_->setVisible(!words.cost.isEmpty());
    cost_->setVisible(!words.cost.isEmpty());
    cost_->setText(words.cost);
    const sessions::RunInfo* run = pair_.a ? runInfo(pair_.a->run) : nullptr;
    const RunSummary facts = run != nullptr ? runSummary(*run) : RunSummary();
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

void LoadView::updateQuality() {
    qualityTable_->hide();
    qualityJob_.cancel();
    if (!pair_.a || !pair_.b || pair_.fromOneRun) {
        return; // two variants of one run share their model
    }
    qualityJob_.start(
        [runs = document()->runs(), a = pair_.a->run, b = pair_.b->run, third = third_] {
            return third != 0 ? threeLoads(runs, {a, b, third}) : loadQuality(runs, a, b);
        },
        [this](const FlatTreePtr& table) {
            qualityTable_->setVisible(table != nullptr);
            if (table) {
                qualityTable_->setTable(table, QStringLiteral(" AB "));
            }
        });
}

bool LoadView::settled() const {
    return DocumentView::settled() && !qualityJob_.busy();
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
    if (pair_.c) {
        text += tr(", C %1").arg(bytesText(pair_.c->at(sides_[2].time->cursor().value_or(*cursor)).total()));
    }
    setReadout(text);
}

void LoadView::placeParts() {
    const int height = pages_->parentWidget()->height();
    const bool bars = height >= (pair_.c ? kRoomForThreeAndBars : kRoomForBars);
    barsHead_->setVisible(bars);
    bars_->setVisible(bars);
    for (const Side& side : sides_) {
        side.spans->setVisible(height >= (pair_.c ? kRoomForThreeSpans : kRoomForSpans));
    }
}

void LoadView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    placeParts();
}

} // namespace vitrine::ui
