// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Selection, commands and readout of the Kernels view.
#include <QCheckBox>
#include <QStackedWidget>
#include <QTreeView>
#include <algorithm>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/kernels/scope_facts.h"
#include "ui/views/kernels/kernel_list.h"
#include "ui/views/kernels/kernels_view.h"
#include "ui/views/kernels/variants_panel.h"
#include "ui/views/memory/timeline_menu.h"
#include "ui/widgets/plots/flame_plot.h"
#include "ui/widgets/timeline/trace_arrows.h"

namespace vitrine::ui {

/// The selected scope; of an allocation that was pinned elsewhere, the op that made it.
std::uint64_t KernelsView::litScope() const {
    const Selection selection = context().time->selection();
    if (selection.scope != 0 || selection.allocation == 0 || !timeline_) {
        return selection.scope;
    }
    const auto row = timeline_->memory().findAllocation(selection.allocation);
    return row ? timeline_->memory().allocations()[*row].scope : 0;
}

void KernelsView::updateLit() {
    const std::uint64_t scope = litScope();
    for (TraceLane* lane : lanes_->findChildren<TraceLane*>()) {
        lane->setLit(scope);
        if (lane->chosen() && lane->span(*lane->chosen()).scope != scope) {
            lane->setChosen({});
        }
    }
    arrows_->setLit(scope);
    if (scope != walkedScope_) {
        walkedScope_ = scope;
        walkedAt_ = -1;
    }
    if (scope != followedScope_) {
        followSelection(scope);
    }
    updateReadout();
    emit availabilityChanged();
}

/// The inspector shows the heaviest kernel that the scope launched itself, unless it shows one of these already; of a
/// step, a layer or an op without recorded kernels its own facts.
void KernelsView::followSelection(std::uint64_t scope) {
    if (!trace_ || !timeline_) {
        return; // it follows when they come
    }
    followedScope_ = scope;
    const auto launched = trace_->kernelsOf(scope);
    if (scope == 0 || launched.empty()) {
        panel_->setScope(scope == 0 ? std::nullopt : scopeFacts(*timeline_, *trace_, scope));
        return;
    }
    const auto nameOf = [this](const TracePlace& place) { return traceName(*timeline_, kernelLane_->span(place)); };
    const auto length = [this](const TracePlace& place) {
        const TraceSpan& span = kernelLane_->span(place);
        return span.end - span.begin;
    };
    const bool shown =
        std::ranges::any_of(launched, [&](const TracePlace& at) { return nameOf(at) == panel_->kernel(); });
    chooseKernel(shown ? panel_->kernel() : nameOf(*std::ranges::max_element(launched, {}, length)));
}

void KernelsView::takeChosen(TraceLane* lane) {
    for (TraceLane* other : lanes_->findChildren<TraceLane*>()) {
        if (other != lane) {
            other->setChosen({});
        }
    }
    if (lane->chosen() && timeline_) {
        const TraceSpan& span = lane->span(*lane->chosen());
        if (lane == kernelLane_) {
            chooseKernel(traceName(*timeline_, span));
            const auto chain = trace_->kernelsOf(span.scope);
            const auto at = std::ranges::find(chain, *lane->chosen());
            walkedAt_ = at == chain.end() ? -1 : static_cast<int>(at - chain.begin());
        } else {
            followSelection(span.scope);
        }
    }
    updateReadout();
}

void KernelsView::chooseKernel(const QString& name) {
    panel_->setKernel(name);
    list_->choose(name);
    variants_->choose(name);
}

void KernelsView::walkKernels(int direction) {
    const auto chain = trace_ ? trace_->kernelsOf(litScope()) : std::vector<TracePlace>();
    if (chain.empty()) {
        return;
    }
    const int count = static_cast<int>(chain.size());
    walkedAt_ = walkedAt_ < 0 ? (direction > 0 ? 0 : count - 1) : std::clamp(walkedAt_ + direction, 0, count - 1);
    const TracePlace place = chain[static_cast<std::size_t>(walkedAt_)];
    kernelLane_->setChosen(place);
    const TraceSpan& span = kernelLane_->span(place);
    chooseKernel(traceName(*timeline_, span));
    context().time->goTo(span.begin);
    setReadout(tr("Kernel %1 of %2: %3").arg(walkedAt_ + 1).arg(count).arg(kernelLane_->words(place)));
}

TraceLane* KernelsView::focusedTrace() const {
    auto* lane = qobject_cast<TraceLane*>(lanes_->focusedLane());
    return lane != nullptr ? lane : kernelLane_->isVisibleTo(lanes_) ? kernelLane_ : scopeLane_;
}

bool KernelsView::perform(const QString& action) {
    static constexpr const char* kPages[] = {"kernels.trace", "kernels.table", "kernels.flame", "kernels.variants"};
    for (int i = 0; i < 4; ++i) {
        if (action == QLatin1String(kPages[i])) {
            showPage(static_cast<Page>(i));
            return true;
        }
    }
    if (action == QLatin1String("kernels.arrows")) {
        arrowsCheck_->toggle();
        return true;
    }
    if (action == QLatin1String("kernels.compare")) {
        showPage(Variants);
        variants_->startComparison();
        return true;
    }
    if (action == QLatin1String("select.next") || action == QLatin1String("select.previous")) {
        focusedTrace()->step(action.endsWith(QLatin1String("next")) ? 1 : -1);
        return true;
    }
    if (action == QLatin1String("select.link-next") || action == QLatin1String("select.link-back")) {
        walkKernels(action.endsWith(QLatin1String("next")) ? 1 : -1);
        return true;
    }
    if (action == QLatin1String("view.table") && (page() == Table || page() == Variants)) {
        return true; // they are tables
    }
    const bool out = action == QLatin1String("select.clear") || action == QLatin1String("zoom.back");
    if (page() == Flame && out && flame_->zoomOut()) {
        return true;
    }
    if (page() == Flame && action == QLatin1String("zoom.all") && flame_->zoomed() > 0) {
        flame_->zoomTo(0);
        return true;
    }
    return DocumentView::perform(action);
}

QString KernelsView::copyText() const {
    if (header()->tableShown()) {
        return asTabSeparated(*twinModel_, twin_->selectionModel()->selectedRows());
    }
    return page() == Table ? list_->text() : page() == Variants ? variants_->text() : readout();
}

QString KernelsView::whyNot(const QString& action) const {
    if (action.startsWith(QLatin1String("select.link"))) {
        const bool any = trace_ && !trace_->kernelsOf(litScope()).empty();
        return any ? QString() : tr("Select an op that launched kernels first");
    }
    if (action == QLatin1String("kernels.compare")) {
        return variants_->whyNot();
    }
    const bool spans = action == QLatin1String("select.next") || action == QLatin1String("select.previous");
    return spans && emptyShown() ? tr("This run has no trace") : DocumentView::whyNot(action);
}

QString KernelsView::find(const QString& text, int direction) {
    return trace_ && timeline_ ? search_.find(text, direction, *timeline_, *trace_, *lanes_, *context().time)
                               : QString();
}

void KernelsView::contextMenu(const QPoint& position, base::TimeNs at) {
    openTimelineMenu(this, context(), timeline_, position, at,
                     {"select.link-next", "select.link-back", "edit.copy-why"});
}

void KernelsView::updateReadout() {
    if (!timeline_ || !trace_ || page() != Trace) {
        setReadout({});
        return;
    }
    const auto measured = context().time->measured();
    if (measured && measured->length() > 0) {
        const auto& begins = trace_->eventBegins;
        const auto count =
            std::ranges::lower_bound(begins, measured->end) - std::ranges::lower_bound(begins, measured->begin);
        setReadout(tr("Range %1 from %2: %3 %4")
                       .arg(durationText(measured->length()), instantText(measured->begin), countText(count),
                            trace_->kernels > 0 ? tr("kernels") : tr("ops")));
        return;
    }
    for (const TraceLane* lane : lanes_->findChildren<TraceLane*>()) {
        if (lane->pointedAt()) {
            setReadout(lane->words(*lane->pointedAt()));
            return;
        }
    }
    for (const TimeStrip* strip : lanes_->findChildren<TimeStrip*>()) {
        if (strip->hovered()) {
            setReadout(tr("Pointer %1").arg(instantText(*strip->hovered())));
            return;
        }
    }
    for (const TraceLane* lane : {kernelLane_, scopeLane_}) {
        if (lane->track() != nullptr && (lane->chosen() || context().time->cursor())) {
            setReadout(lane->spoken());
            return;
        }
    }
    setReadout({});
}

QList<QWidget*> KernelsView::tableStops() const {
    return {twin_};
}

QList<QWidget*> KernelsView::bodyStops() const {
    switch (page()) {
    case Trace:
        return lanes_->focusStops();
    case Table:
        return {list_->table()};
    case Flame:
        return {flame_};
    case Variants:
        return {variants_->table()};
    }
    return {};
}

bool KernelsView::settled() const {
    return read(run_) && !traceJob_.busy() && !statsJob_.busy() && !statsJobB_.busy() && !listJob_.busy() &&
           !listJobB_.busy() && !flameJob_.busy() && !list_->waiting();
}

void KernelsView::activated() {
    DocumentView::activated();
    updateRange();
    if (const QList<QWidget*> stops = focusStops(); page() == Trace && scopeLane_->isVisibleTo(lanes_)) {
        scopeLane_->setFocus();
    } else if (!stops.isEmpty()) {
        stops.front()->setFocus();
    }
}

} // namespace vitrine::ui
