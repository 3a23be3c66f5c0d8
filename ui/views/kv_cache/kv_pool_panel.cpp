// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kv_cache/kv_pool_panel.h"

#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <functional>

#include "ui/models/batching/request_choice.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/page_map.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/slot_painter.h"

namespace vitrine::ui {

namespace {

constexpr int kOwnerStyles = 14; ///< seven fills, then the same with a hatch
constexpr int kCachedStyle = kOwnerStyles, kPaddingStyle = kOwnerStyles + 1;
constexpr int kLaneHeight = 52;
constexpr int kPlayMs = 40;
constexpr base::TimeNs kPlayFrames = 250; ///< through the visible range

Curve lineOf(const QString& name, KvPoolPtr pool, const BatchCurve& (KvPool::*curve)() const, bool dashed) {
    Curve line;
    line.name = name;
    line.values = [pool = std::move(pool), curve](const AxisMap& axis, int columns) {
        return ((*pool).*curve)().columns(axis, columns);
    };
    line.dashed = dashed;
    line.color = [dashed](const ThemeTokens& t) {
        return dashed ? t.text2 : t.category(base::MemoryCategory::KvCache).fill;
    };
    return line;
}

QString groupTitle(const KvPoolGroup& group, const std::vector<KvPoolPanel>& pages) {
    const auto used = std::ranges::count(pages, base::PageState::Used, &KvPoolPanel::state);
    const auto cached = std::ranges::count(pages, base::PageState::Cached, &KvPoolPanel::state);
    QStringList words{KvPoolView::tr("%1 layers: %2 of %3 pages in use")
                          .arg(group.name, countText(used), countText(static_cast<qint64>(group.pages)))};
    if (cached > 0) {
        words << KvPoolView::tr("%1 kept for prefixes").arg(countText(cached));
    }
    if (group.pageTokens > 0) {
        words << KvPoolView::tr("%1 tokens each").arg(countText(group.pageTokens));
    }
    return words.join(QStringLiteral(", "));
}

PageGroup cellsOf(const KvPoolPtr& pool, std::size_t number, const std::vector<KvPoolPanel>& pages, base::TimeNs at,
                  std::int32_t chosen) {
    PageGroup cells;
    cells.title = groupTitle(pool->groups()[number], pages);
    cells.cells.reserve(pages.size());
    for (const KvPoolPanel& page : pages) {
        PageCell cell;
        cell.used = page.state == base::PageState::Free ? 0.0 : 1.0;
        cell.shared = page.shared();
        const std::int32_t who = pool->namesRequests() ? page.request : page.owner;
        const bool used = page.state == base::PageState::Used;
        cell.style = page.state == base::PageState::Cached ? kCachedStyle
                     : used && who < 0                     ? kPaddingStyle
                                                           : std::max(0, who) % kOwnerStyles;
        cell.number = used ? who : -1;
        cell.marked = chosen >= 0 && page.request == chosen;
        cells.cells.push_back(cell);
    }
    cells.words = [pool, number, pages, at](std::size_t page) {
        return page < pages.size() ? kvPoolPageText(*pool, number, page, pages[page], at) : QString();
    };
    return cells;
}

} // namespace

std::vector<CategoryStyle> kvPoolStyles(const ThemeTokens& t) {
    std::vector<CategoryStyle> styles;
    const QColor taken = t.category(base::MemoryCategory::Gradients).fill; // nearly that of padding
    StackLayer layer;
    layer.category = -1;
    for (layer.tone = 0; styles.size() < kOwnerStyles; ++layer.tone) {
        if (const CategoryStyle style = layerStyle(layer, t); style.fill != taken) {
            styles.push_back(style);
        }
    }
    styles.push_back({t.pressed, t.text1, Hatch::ForwardDiagonal, 6});
    styles.push_back(slotStyle(base::SlotState::Padding, t));
    return styles;
}

KvPoolView::KvPoolView(TimeCursor* time, QWidget* parent) : QWidget(parent), time_(time) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    legend_ = new LegendStrip(this);
    map_ = new PageMap(tr("Pages of the KV cache's pool"), this);
    lanes_ = new LaneStack(time, LaneStack::WithRuler, this);
    pressure_ = new CurveLane(tr("Page pressure"), time, lanes_);
    waste_ = new CurveLane(tr("Page rounding"), time, lanes_);
    for (CurveLane* lane : {pressure_, waste_}) {
        lane->setPlotHeight(kLaneHeight, 0);
        lanes_->addLane(lane);
    }
    lanes_->setKeptOpen(2);
    column->addWidget(legend_);
    column->addWidget(map_, 1);
    column->addWidget(lanes_);
    connect(time, &TimeCursor::cursorChanged, this, &KvPoolView::showMoment);
    connect(&RequestChoice::of(time), &RequestChoice::changed, this, &KvPoolView::showMoment);
    connect(map_, &PlotWidget::readoutChanged, this, &KvPoolView::readoutChanged);
    connect(map_, &ItemPlot::itemClicked, this, &KvPoolView::choosePage);
    player_.setInterval(kPlayMs);
    connect(&player_, &QTimer::timeout, this, &KvPoolView::play);
}

void KvPoolView::setPool(KvPoolPtr pool, bool live) {
    pool_ = std::move(pool);
    live_ = live;
    updateLanes();
    showMoment();
}

base::TimeNs KvPoolView::moment() const {
    if (!pool_) {
        return 0;
    }
    // The last instant that is known is the one before the end.
    return time_->cursor().value_or(live_ ? std::max(pool_->begin(), pool_->end() - 1) : pool_->fullest());
}

bool KvPoolView::step(int direction) {
    const auto next = pool_ ? pool_->change(moment(), direction) : std::nullopt;
    if (next) {
        time_->goTo(*next);
    }
    return next.has_value();
}

void KvPoolView::setPlaying(bool on) {
    if (on == player_.isActive()) {
        return;
    }
    if (on && pool_) {
        if (const base::TimeNs at = time_->cursor().value_or(time_->range().end);
            at >= time_->range().end || at < pool_->begin()) {
            time_->setCursor(std::max(time_->range().begin, pool_->begin()));
        }
        player_.start();
    } else {
        player_.stop();
    }
    emit playingChanged(player_.isActive());
}

void KvPoolView::play() {
    const base::TimeNs end = std::min(time_->range().end, pool_ ? pool_->end() : 0);
    const base::TimeNs next = moment() + std::max<base::TimeNs>(1, time_->range().length() / kPlayFrames);
    time_->setCursor(std::min(next, end));
    if (next >= end) {
        setPlaying(false);
    }
}

void KvPoolView::updateLanes() {
    if (!pool_) {
        pressure_->setCurves({}, 1, false);
        waste_->setCurves({}, 1, false);
        return;
    }
    const double most = pool_->used().largest();
    const double top = std::max({1.0, most, static_cast<double>(pool_->poolPages())});
    std::vector<Curve> curves{lineOf(tr("used"), pool_, &KvPool::used, false)};
    QStringList facts{tr("most %1 of %2 pages").arg(countText(std::llround(most)), countText(std::llround(top)))};
    if (pool_->limitPages() > std::llround(top)) {
        facts << tr("which could come to %1").arg(countText(pool_->limitPages()));
    }
    if (pool_->shared().largest() > 0) {
        curves.push_back(lineOf(tr("shared"), pool_, &KvPool::shared, true));
        facts << tr("shared (dashed) %1").arg(countText(std::llround(pool_->shared().largest())));
    }
    if (pool_->cached().largest() > 0) {
        facts << tr("kept for prefixes %1").arg(countText(std::llround(pool_->cached().largest())));
    }
    pressure_->setFacts(facts.join(QStringLiteral(", ")));
    pressure_->setTopText(countText(std::llround(top)));
    pressure_->setCurves(std::move(curves), top, false);
    const bool known = !pool_->waste().empty();
    waste_->setVisible(known);
    if (known) {
        waste_->setFacts(tr("share of the pages' bytes without a token that is needed, %1 at the fullest")
                             .arg(shareText(pool_->bytesAt(pool_->fullest()).waste())));
        waste_->setTopText(QStringLiteral("100\u00A0%"));
        waste_->setCurves({lineOf(tr("page rounding"), pool_, &KvPool::waste, false)}, 1, false);
    }
}

void KvPoolView::showMoment() {
    stale_ = !isVisible();
    if (stale_) {
        return;
    }
    const base::TimeNs at = moment();
    shown_ = pool_ ? pool_->at(at) : decltype(shown_)();
    std::vector<PageGroup> groups;
    qint64 shared = 0;
    for (std::size_t g = 0; g < shown_.size(); ++g) {
        shared += std::ranges::count_if(shown_[g], &KvPoolPanel::shared);
        groups.push_back(cellsOf(pool_, g, shown_[g], at, RequestChoice::of(time_).request()));
    }
    const auto style = [](int index) {
        return [index](const ThemeTokens& t) { return kvPoolStyles(t)[static_cast<std::size_t>(index)]; };
    };
    const auto blank = [](const ThemeTokens& t) { return CategoryStyle{t.line0, t.text2, Hatch::None, 6}; };
    legend_->setItems({{tr("one colour for each request, with its number"), LegendItem::Mark::Swatch, style(0)},
                       {tr("padding"), LegendItem::Mark::Swatch, style(kPaddingStyle)},
                       {tr("kept for a prefix"), LegendItem::Mark::Swatch, style(kCachedStyle)},
                       {tr("free"), LegendItem::Mark::Swatch, blank}},
                      shared > 0 ? tr("%1 shared (double frame), at %2").arg(countText(shared), instantText(at))
                                 : tr("at %1").arg(instantText(at)));
    map_->setPages(std::move(groups), kvPoolStyles, tr("No page was taken."));
    emit momentChanged();
}

void KvPoolView::choosePage(int item) {
    const auto place = map_->pageOf(item);
    if (place && place->group < shown_.size() && place->page < shown_[place->group].size()) {
        RequestChoice::of(time_).choose(shown_[place->group][place->page].request);
    }
}

void KvPoolView::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (stale_) {
        showMoment();
    }
}

QList<QWidget*> KvPoolView::focusStops() const {
    return QList<QWidget*>{map_} + lanes_->focusStops();
}

} // namespace vitrine::ui
