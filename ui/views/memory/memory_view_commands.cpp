// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Commands, search and readout of the Memory view.
#include <QCheckBox>
#include <QHeaderView>
#include <QStackedWidget>
#include <QTreeView>
#include <algorithm>
#include <cmath>

#include "profiler/analysis/range_statistics.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/memory/alive_panel.h"
#include "ui/views/memory/memory_view.h"
#include "ui/views/memory/oom_panel.h"
#include "ui/views/memory/timeline_menu.h"
#include "ui/widgets/base/delegates.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kPeaks = 64;

} // namespace

void MemoryView::goToPeak(int direction) {
    if (!timeline_) {
        return;
    }
    std::vector<base::TimeNs> peaks = timeline_->memory().peaks(kPeaks);
    if (peaks.empty()) {
        return;
    }
    base::TimeNs target = peaks.front();
    if (context().time->cursor()) {
        const base::TimeNs now = *context().time->cursor();
        std::sort(peaks.begin(), peaks.end());
        if (direction > 0) {
            const auto next = std::upper_bound(peaks.begin(), peaks.end(), now);
            target = next == peaks.end() ? peaks.front() : *next;
        } else {
            const auto next = std::lower_bound(peaks.begin(), peaks.end(), now);
            target = next == peaks.begin() ? peaks.back() : *(next - 1);
        }
    }
    showOom(false);
    context().time->setMeasured({});
    context().time->goTo(target);
}

void MemoryView::walkLinks(int direction) {
    const std::vector<AllocationLink> links = alive_->pinned()->links();
    if (!timeline_ || links.empty()) {
        return;
    }
    const int count = static_cast<int>(links.size());
    TimeCursor* time = context().time;
    linksOf_ = time->selection().allocation;
    linkAt_ = linkAt_ < 0 ? (direction > 0 ? 0 : count - 1) : std::clamp(linkAt_ + direction, 0, count - 1);
    const AllocationLink& link = links[static_cast<std::size_t>(linkAt_)];
    time->select({linksOf_, link.scope});
    if (const profiler::ScopeRow* scope = timeline_->scopes().find(link.scope)) {
        time->setMeasured(TimeRange{scope->begin, scope->end < 0 ? timeline_->end() : scope->end});
    }
    time->goTo(link.time);
    const QString what = link.kind == AllocationLink::Kind::Made   ? tr("made by %1")
                         : link.kind == AllocationLink::Kind::Read ? tr("read by %1")
                         : link.kind == AllocationLink::Kind::Ran  ? tr("meanwhile ran %1")
                                                                   : tr("freed in %1");
    setReadout(tr("Link %1 of %2: %3, %4")
                   .arg(linkAt_ + 1)
                   .arg(count)
                   .arg(what.arg(link.name.isEmpty() ? tr("no op") : link.name), instantText(link.time)));
}

bool MemoryView::perform(const QString& action) {
    if (action == QLatin1String("go.peak-next") || action == QLatin1String("go.peak-previous")) {
        goToPeak(action.endsWith(QLatin1String("next")) ? 1 : -1);
        return true;
    }
    if (action == QLatin1String("go.oom")) {
        if (timeline_ && !timeline_->memory().outOfMemory().empty()) {
            oomShown() ? oomPage_->nextFailure() : showOom(true);
        }
        return true;
    }
    if (action == QLatin1String("select.clear") && oomShown()) {
        showOom(false);
        return true;
    }
    if (action == QLatin1String("select.clear")) {
        allocationLane_->setOnlyName(std::nullopt);
        lanes_->legend()->setOnly({});
        return false; // the window clears the rest
    }
    if (action == QLatin1String("select.next") || action == QLatin1String("select.previous")) {
        allocationLane_->step(action.endsWith(QLatin1String("next")) ? 1 : -1);
        return true;
    }
    if (action == QLatin1String("select.link-next") || action == QLatin1String("select.link-back")) {
        walkLinks(action.endsWith(QLatin1String("next")) ? 1 : -1);
        return true;
    }
    return DocumentView::perform(action);
}

QString MemoryView::copyText() const {
    if (oomShown()) {
        return oomPage_->asText();
    }
    if (context().time->selection().allocation != 0) {
        return alive_->pinned()->asText();
    }
    return readout();
}

QString MemoryView::whyNot(const QString& action) const {
    const bool links = action.startsWith(QLatin1String("select.link"));
    if (links && context().time->selection().allocation == 0) {
        return tr("Pin an allocation first");
    }
    const bool needsEvents = action.startsWith(QLatin1String("go.peak")) || action == QLatin1String("select.next") ||
                             action == QLatin1String("select.previous");
    return needsEvents && (!timeline_ || timeline_->memory().events() == 0) ? tr("This run has no memory events")
                                                                            : DocumentView::whyNot(action);
}

QString MemoryView::find(const QString& text, int direction) {
    if (!timeline_) {
        return {};
    }
    if (text != findText_ || direction == 0) {
        findText_ = text;
        foundAt_ = 0;
        const profiler::AllocationQuery query = profiler::AllocationQuery::parse(text.toStdString());
        if (query.empty()) {
            takeFound({});
            return {};
        }
        if (timeline_->memory().allocations().size() > 200'000) {
            findJob_.start([timeline = timeline_, query] { return profiler::findAllocations(*timeline, query); },
                           [this](profiler::FoundAllocations found) { takeFound(std::move(found)); });
            return tr("…");
        }
        takeFound(profiler::findAllocations(*timeline_, query));
    } else if (!found_.rows.empty()) {
        const std::size_t count = found_.rows.size();
        foundAt_ = (foundAt_ + (direction > 0 ? 1 : count - 1)) % count;
    }
    if (found_.rows.empty()) {
        return tr("none");
    }
    if (direction != 0) {
        const profiler::AllocationRow row = timeline_->memory().allocations()[found_.rows[foundAt_]];
        context().time->select({row.id, 0});
        context().time->goTo(row.born);
    }
    return tr("%1 of %2").arg(direction == 0 ? 0 : foundAt_ + 1).arg(countText(static_cast<qint64>(found_.total)));
}

void MemoryView::takeFound(profiler::FoundAllocations found) {
    found_ = std::move(found);
    allocationLane_->setFound(found_.rows);
    updateMarks();
}

void MemoryView::contextMenu(const QPoint& position, base::TimeNs at) {
    openTimelineMenu(this, context(), timeline_, position, at,
                     {"go.peak-next", "go.peak-previous", "go.oom", "edit.copy-why"});
}

void MemoryView::updateReadout() {
    if (!timeline_) {
        setReadout({});
        return;
    }
    TimeCursor* time = context().time;
    if (time->measured() && time->measured()->length() > 0) {
        const TimeRange measured = *time->measured();
        const profiler::RangeStatistics range = profiler::rangeStatistics(*timeline_, measured.begin, measured.end);
        setReadout(tr("Range %1: %2, peak %3 at %4, mean %5, %6 allocations, %7 frees")
                       .arg(durationText(measured.length()), signedBytesText(range.change),
                            peakText(range.peak, range.incomplete), instantText(range.peakTime),
                            bytesText(static_cast<std::uint64_t>(range.mean)),
                            countText(static_cast<qint64>(range.births)),
                            countText(static_cast<qint64>(range.deaths))));
        return;
    }
    std::optional<base::TimeNs> at = time->cursor();
    QString where = tr("Cursor");
    for (const TimeStrip* strip : findChildren<TimeStrip*>()) {
        if (strip->hovered()) {
            at = strip->hovered();
            where = tr("Pointer");
        }
    }
    if (!at) {
        setReadout({});
        return;
    }
    const base::CategoryBytes split = timeline_->memory().at(*at);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < split.size(); ++i) {
        if (split[i] > 0) {
            order.push_back(i);
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return split[a] > split[b]; });
    QStringList parts;
    for (std::size_t i = 0; i < std::min<std::size_t>(4, order.size()); ++i) {
        parts << textOf(base::categoryName(static_cast<base::MemoryCategory>(order[i]))) + QLatin1Char(' ') +
                     bytesText(split[order[i]]);
    }
    QString text = tr("%1 %2: total %3").arg(where, instantText(*at), bytesText(profiler::totalBytes(split)));
    if (!parts.isEmpty()) {
        text += QStringLiteral(": ") + parts.join(QStringLiteral(", "));
    }
    if (const profiler::ScopeRow* step = profiler::scopeAt(*timeline_, *at, base::ScopeKind::Step)) {
        text += QStringLiteral("; ") + QString::fromStdString(timeline_->scopes().path(step->id));
    }
    setReadout(text);
}

} // namespace vitrine::ui
