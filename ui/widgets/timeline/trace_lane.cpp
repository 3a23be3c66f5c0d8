// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/trace_lane.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "profiler/timeline/kernel_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

TraceLane::TraceLane(const QString& title, TimeCursor* time, QWidget* parent) : Lane(title, time, parent) {
    setPlotHeight(kTraceRowHeight + 2, 0);
}

void TraceLane::setTrace(KernelTracePtr trace, std::size_t track, TimelinePtr timeline) {
    const bool same = trace && input_.trace && track == input_.track;
    input_.trace = std::move(trace);
    input_.track = track;
    input_.timeline = std::move(timeline);
    pointed_.reset();
    if (const TraceTrack* now = this->track()) {
        setTitle(now->title);
        setPlotHeight(static_cast<int>(std::max<std::size_t>(1, now->rows.size())) * kTraceRowHeight + 2, 0);
    }
    // A live run's rows grow at their ends: the chosen span keeps its place.
    if (!same || (chosen_ && (this->track() == nullptr || chosen_->row >= this->track()->rows.size() ||
                              chosen_->index >= this->track()->rows[chosen_->row].spans.size()))) {
        chosen_.reset();
    }
    invalidate();
}

const TraceTrack* TraceLane::track() const {
    return input_.trace && input_.track < input_.trace->tracks.size() ? &input_.trace->tracks[input_.track] : nullptr;
}

void TraceLane::setLit(std::uint64_t scope) {
    lit_ = scope;
    update();
}

void TraceLane::setChosen(std::optional<TracePlace> place) {
    chosen_ = place;
    update();
}

const TraceSpan& TraceLane::span(TracePlace place) const {
    return track()->rows[place.row].spans[place.index];
}

std::optional<QRectF> TraceLane::spanRect(TracePlace place) const {
    const TraceTrack* now = track();
    const bool outside =
        now != nullptr && (span(place).end < axis().range().begin || span(place).begin > axis().range().end);
    if (now == nullptr || collapsed() || !isVisible() || outside) {
        return std::nullopt;
    }
    TraceInput here = input_;
    here.axis = axis();
    const QRectF plot = plotRect();
    return traceRect(here, place, gutter()).translated(0, headerHeight()).intersected(plot.adjusted(0, 0, 0, 1));
}

QImage TraceLane::paint(const PlotFrame& frame) {
    input_.axis = axis();
    picture_ = paintTrace(input_, frame, themeTokens());
    if (track() != nullptr) {
        const QString all = countText(static_cast<std::int64_t>(picture_.drawn + picture_.small));
        setFacts(picture_.small > 0 ? tr("%1 in view, %2 too small: shown as zig-zag")
                                          .arg(all, countText(static_cast<std::int64_t>(picture_.small)))
                                    : tr("%1 in view").arg(all));
        setToolTip(track()->kind == TraceTrack::Kind::Scopes && input_.trace->projected > 0
                       ? tr("Ops of replayed graphs stand where their kernels ran")
                       : QString());
    }
    return picture_.image;
}

void TraceLane::paintOver(QPainter& painter, const PlotFrame&) {
    const QRectF plot = plotRect();
    paintCursor(painter, plot);
    if (track() == nullptr || (lit_ == 0 && !chosen_)) {
        return;
    }
    painter.save();
    painter.setClipRect(plot.adjusted(-1, 0, 1, 1));
    painter.setBrush(Qt::NoBrush);
    const auto frame = [&](const QRectF& rect, double width, const QColor& color) {
        painter.setPen(QPen(color, width));
        const double half = width / 2;
        painter.drawRect(rect.translated(0, headerHeight()).adjusted(half - 1, half - 1, -half, 1 - half));
    };
    for (const TraceHit& hit : picture_.hits) {
        if (hit.count == 1 && lit_ != 0 && span(hit.place).scope == lit_) {
            frame(hit.rect, 1.5, themeTokens().accent);
        }
    }
    for (const TraceHit& hit : picture_.hits) {
        // A chosen span inside a zig-zag is framed with the whole of it.
        if (chosen_ && hit.place.row == chosen_->row && hit.place.index <= chosen_->index &&
            chosen_->index < hit.place.index + hit.count) {
            frame(hit.rect, 2, themeTokens().accent);
        }
    }
    painter.restore();
}

const TraceHit* TraceLane::hitAt(QPointF position) const {
    const QPointF at = position - QPointF(0, headerHeight());
    const auto found = std::ranges::find_if(
        picture_.hits, [&at](const TraceHit& hit) { return hit.rect.adjusted(0, -1, 0, 1).contains(at); });
    return found == picture_.hits.end() ? nullptr : &*found;
}

QString TraceLane::words(TracePlace place) const {
    const TraceSpan& here = span(place);
    const profiler::RunTimeline& timeline = *input_.timeline;
    // The last row of many that overlap may show a span shorter than it was.
    const auto& spans = timeline.kernels().spans();
    const base::TimeNs end = here.source >= 0 ? spans[static_cast<std::size_t>(here.source)].end : here.end;
    QString text =
        tr("%1, %2 from %3").arg(traceName(timeline, here), durationText(end - here.begin), instantText(here.begin));
    if (here.source >= 0 && spans[static_cast<std::size_t>(here.source)].bytes > 0) {
        text += QStringLiteral(", ") + bytesText(spans[static_cast<std::size_t>(here.source)].bytes);
    }
    const std::uint64_t above = here.source >= 0 ? here.scope : timeline.scopes().find(here.scope)->parent;
    if (const std::string path = timeline.scopes().path(above); !path.empty()) {
        text += tr("; %1").arg(QString::fromStdString(path));
    }
    return text;
}

void TraceLane::choose(TracePlace place) {
    chosen_ = place;
    time()->select({0, span(place).scope});
    emit chosenByUser();
    update();
}

void TraceLane::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    Lane::clickedAt(position, modifiers);
    if (const TraceHit* hit = hitAt(position)) {
        // Of a zig-zag the span nearest to the pointer.
        const auto& spans = track()->rows[hit->place.row].spans;
        const std::size_t near = track()->rows[hit->place.row].firstEndingAfter(timeAt(position.x()));
        choose({hit->place.row,
                std::clamp(near, hit->place.index, std::min(spans.size() - 1, hit->place.index + hit->count - 1))});
    } else {
        chosen_.reset();
        time()->select({});
        emit chosenByUser();
    }
}

void TraceLane::doubleClickedAt(QPointF position) {
    if (const TraceHit* hit = hitAt(position)) {
        const TraceSpan& first = span(hit->place);
        const TraceSpan& last = span({hit->place.row, hit->place.index + hit->count - 1});
        const base::TimeNs air = std::max<base::TimeNs>(1, (last.end - first.begin) / 10);
        time()->jumpTo({first.begin - air, last.end + air});
    }
}

void TraceLane::hoveredAt(std::optional<QPointF> position) {
    const TraceHit* hit = position ? hitAt(*position) : nullptr;
    const std::optional<TracePlace> now = hit != nullptr && hit->count == 1 ? std::optional(hit->place) : std::nullopt;
    if (now != pointed_) {
        pointed_ = now;
        emit pointed();
    }
}

bool TraceLane::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const TraceHit* hit = hitAt(help->pos())) {
            QToolTip::showText(help->globalPos(),
                               hit->count == 1 ? words(hit->place)
                                               : tr("%1 too small to draw alone. Double-click zooms in.")
                                                     .arg(countText(static_cast<std::int64_t>(hit->count))),
                               this);
        } else {
            QToolTip::hideText();
        }
        return true;
    }
    return Lane::event(event);
}

bool TraceLane::step(int direction) {
    const TraceTrack* now = track();
    if (now == nullptr || now->rows.empty()) {
        return false;
    }
    // Without a chosen span: from the cursor, in the row that has most to say (ops, kernels).
    TracePlace next = chosen_.value_or(TracePlace{});
    if (!chosen_) {
        for (std::size_t row = 1; row < now->rows.size(); ++row) {
            next.row = now->rows[row].spans.size() > now->rows[next.row].spans.size() ? row : next.row;
        }
    }
    const auto& spans = now->rows[next.row].spans;
    std::ptrdiff_t at = static_cast<std::ptrdiff_t>(next.index) + direction;
    if (!chosen_) {
        const base::TimeNs from = time()->cursor().value_or(time()->range().begin);
        at = static_cast<std::ptrdiff_t>(now->rows[next.row].firstEndingAfter(from)) - (direction < 0 ? 1 : 0);
    }
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(spans.size())) {
        return false;
    }
    next.index = static_cast<std::size_t>(at);
    choose(next);
    time()->goTo(spans[next.index].begin);
    return true;
}

QString TraceLane::spoken() const {
    if (chosen_ && track() != nullptr) {
        return words(*chosen_);
    }
    QStringList names;
    if (const auto at = time()->cursor(); at && track() != nullptr) {
        for (std::size_t row = 0; row < track()->rows.size(); ++row) {
            if (const auto index = track()->rows[row].at(*at)) {
                names << traceName(*input_.timeline, span({row, *index}));
            }
        }
        return tr("Cursor %1. %2.")
            .arg(instantText(*at), names.isEmpty() ? tr("Nothing runs") : names.join(QStringLiteral(", ")));
    }
    return facts();
}

} // namespace vitrine::ui
