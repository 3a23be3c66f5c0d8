// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Selection, commands, search and readout of the Batching view.
#include <QCheckBox>
#include <QScrollArea>
#include <QStackedWidget>
#include <algorithm>

#include "ui/models/batching/batch_tables.h"
#include "ui/models/batching/request_choice.h"
#include "ui/models/common/format.h"
#include "ui/views/batching/batch_panel.h"
#include "ui/views/batching/batch_plots.h"
#include "ui/views/batching/batching_view.h"
#include "ui/views/batching/sweep_panel.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

void BatchingView::chooseRequest(std::int32_t request) {
    request_ = request;
    slot_ = -1;
    for (std::size_t i = 0; i < 2; ++i) {
        slotLanes_[i]->setChosen(request);
        requestLanes_[i]->setChosen(request);
    }
    updateDetail();
    // Requests are numbered by the trace, which both runs share: other views show the one that A is.
    if (context().time != nullptr && pair_.a) {
        RequestChoice::of(context().time).choose(request);
    }
    emit availabilityChanged();
}

/// What another view has chosen and where its cursor stands, as far as A has it.
void BatchingView::takeShared() {
    TimeCursor* shared = context().time;
    if (shared == nullptr || !pair_.a) {
        return;
    }
    if (const std::int32_t wanted = RequestChoice::of(shared).request(); wanted != request_) {
        chooseRequest(wanted);
    }
    const base::TimeNs at = shared->cursor().value_or(0) - pair_.a->origin;
    if (shared->cursor() && at >= 0 && at <= pair_.a->end) {
        time_->setCursor(maps_[0]->place(at));
    }
}

/// The cursor of A's run stands where ours does: the map of pages, the memory and the kernels of that instant.
void BatchingView::shareCursor() {
    if (context().time != nullptr && pair_.a && time_->cursor() && isVisible()) {
        context().time->setCursor(pair_.a->origin + maps_[0]->timeAt(*time_->cursor()));
    }
}

void BatchingView::chooseSlot(int side, std::int32_t slot) {
    slotSide_ = side;
    slot_ = slot;
    updateDetail();
}

QString BatchingView::placeText(base::TimeNs place) const {
    return axisOf() == BatchAxis::Steps ? tr("Step %1").arg(countText(place / kStepLength)) : instantText(place);
}

void BatchingView::updateReadout() {
    if (page() == SweepOfSlots || emptyShown()) {
        setReadout({});
        return;
    }
    if (!pointed_.isEmpty()) {
        setReadout(pointed_);
        return;
    }
    std::optional<base::TimeNs> at = time_->cursor();
    for (const TimeStrip* strip : lanes_->findChildren<TimeStrip*>()) {
        at = strip->hovered() ? strip->hovered() : at;
    }
    const auto measured = time_->measured();
    if (measured && measured->length() > 0) {
        const QString length = axisOf() == BatchAxis::Steps
                                   ? tr("%1 steps").arg(countText(measured->length() / kStepLength))
                                   : durationText(measured->length());
        setReadout(tr("Range %1 from %2").arg(length, placeText(measured->begin)));
        return;
    }
    setReadout(at ? tr("%1: %2").arg(placeText(*at), batchWordsAt(maps_, lanes_->axis(), *at)) : QString());
}

bool BatchingView::perform(const QString& action) {
    static constexpr const char* kPages[] = {"batching.slots", "batching.requests", "batching.sweep"};
    for (int i = 0; i < 3; ++i) {
        if (action == QLatin1String(kPages[i])) {
            showPage(static_cast<Page>(i));
            return true;
        }
    }
    if (action == QLatin1String("batching.axis")) {
        setAxisOf(axisOf() == BatchAxis::Time ? BatchAxis::Steps : BatchAxis::Time);
        return true;
    }
    if (action == QLatin1String("batching.running")) {
        const bool shown = page() == Requests && runningOnly_->isChecked();
        showPage(Requests);
        runningOnly_->setChecked(!shown);
        return true;
    }
    if (action == QLatin1String("select.next") || action == QLatin1String("select.previous")) {
        Lane* lane = lanes_->focusedLane();
        Lane* fallback = page() == Requests ? static_cast<Lane*>(requestLanes_[maps_[0] ? 0 : 1])
                                            : static_cast<Lane*>(slotLanes_[maps_[0] ? 0 : 1]);
        (qobject_cast<BatchLane*>(lane) != nullptr ? lane : fallback)
            ->step(action.endsWith(QLatin1String("next")) ? 1 : -1);
        return true;
    }
    if (action == QLatin1String("zoom.follow")) {
        time_->setFollowing(!time_->following());
        return true;
    }
    if (action == QLatin1String("select.clear")) {
        chooseRequest(-1);
        slot_ = -1;
        time_->setMeasured(std::nullopt);
        time_->setCursor(std::nullopt);
        return true;
    }
    return DocumentView::perform(action);
}

QString BatchingView::whyText() const {
    return panel_->asText();
}

QString BatchingView::whyNot(const QString& action) const {
    if (action.startsWith(QLatin1String("mark.")) || action == QLatin1String("measure.filter")) {
        return tr("Both runs have an axis of their own here: marks and filters belong to one run");
    }
    const bool spans = action == QLatin1String("select.next") || action == QLatin1String("select.previous");
    return spans && emptyShown() ? tr("This run has no requests") : DocumentView::whyNot(action);
}

/// A number finds the request; Enter goes to where it was worked on.
QString BatchingView::find(const QString& text, int direction) {
    const BatchMapPtr& map = maps_[0] ? maps_[0] : maps_[1];
    if (text.isEmpty() || !map) {
        return {};
    }
    bool number = false;
    const int wanted = QString(text).remove(tr("request"), Qt::CaseInsensitive).trimmed().toInt(&number);
    const auto count = static_cast<qint64>(map->side().requests.size());
    if (!number || map->side().request(wanted) == nullptr) {
        return tr("request 0 to %1").arg(countText(std::max<qint64>(0, count - 1)));
    }
    if (direction != 0) {
        chooseRequest(wanted);
        if (const auto spans = map->spansOf(wanted); !spans.empty()) {
            time_->goTo(map->spanRange(spans.front()).begin);
        }
    }
    return tr("request %1 of %2").arg(wanted).arg(countText(count));
}

QList<QWidget*> BatchingView::bodyStops() const {
    if (page() == SweepOfSlots) {
        return sweepPage_->focusStops();
    }
    return lanes_->focusStops();
}

bool BatchingView::settled() const {
    return document() == nullptr || (!job_.busy() && DocumentView::settled());
}

} // namespace vitrine::ui
