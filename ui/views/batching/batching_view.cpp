// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/batching/batching_view.h"

#include <QApplication>
#include <QCheckBox>
#include <QStackedWidget>
#include <algorithm>

#include "ui/models/batching/batch_tables.h"
#include "ui/models/batching/request_choice.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/batching/batch_plots.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/timeline/lanes.h"

namespace vitrine::ui {

using sessions::RunInfo;

void BatchingView::showPage(Page page) {
    if (pageChoice_->current() != page) {
        pageChoice_->setCurrent(page);
        return; // the signal comes back
    }
    // A page that goes hands its focus to the one that comes: Qt would give it to whatever lane is next.
    const bool focused = pages_->isAncestorOf(QApplication::focusWidget());
    pages_->setCurrentIndex(page == SweepOfSlots ? 1 : 0);
    axisChoice_->setEnabled(page != SweepOfSlots);
    runningOnly_->setVisible(page == Requests);
    updateVisible();
    updateRunning();
    if (focused) {
        focusPlot();
    }
    updateSweep();
    updateTwin();
    updateReadout();
    emit availabilityChanged();
}

BatchingView::Page BatchingView::page() const {
    return static_cast<Page>(pageChoice_->current());
}

BatchAxis BatchingView::axisOf() const {
    return axisChoice_->current() == 1 ? BatchAxis::Steps : BatchAxis::Time;
}

void BatchingView::setAxisOf(BatchAxis axis) {
    axisChoice_->setCurrent(axis == BatchAxis::Steps ? 1 : 0);
}

void BatchingView::activated() {
    DocumentView::activated();
    takeShared();
    focusPlot();
    emit priced(batchAgreement(pair_)); // who leaves a view clears what it says
}

/// Not the field of the sweep, where single keys would be typed.
void BatchingView::focusPlot() {
    if (page() == SweepOfSlots && !header()->tableShown()) {
        pageChoice_->button(page())->setFocus();
        return;
    }
    const QList<QWidget*> stops = focusStops();
    if (!stops.isEmpty() && !emptyShown()) {
        stops.front()->setFocus();
    }
}

/// Makes what is shown from the runs as they are: a side again only when its run, its events or its end are new.
void BatchingView::refresh() {
    std::array<sessions::RunId, 2> wanted{};
    if (document() != nullptr && document()->isOpen()) {
        const auto pick = [this](sessions::RunId id) {
            const RunInfo* run = runInfo(id);
            return run != nullptr && isBatchRun(*run) ? id : 0;
        };
        wanted = {pick(runA()), pick(baseline())};
    }
    if (wanted != runs_) {
        runs_ = wanted;
        request_ = slot_ = -1;
        if (context().time != nullptr) {
            RequestChoice::of(context().time).choose(-1);
        }
    }
    updateTraces();
    struct Input {
        std::optional<RunInfo> run;
        Source source;
    };
    std::array<Input, 2> inputs;
    QString error;
    bool any = false;
    for (std::size_t i = 0; i < 2; ++i) {
        const RunInfo* run = runInfo(runs_[i]);
        if (run == nullptr) {
            sources_[i] = {};
            continue;
        }
        const TimelineState state = timelineOf(runs_[i]);
        error = !state.error.isEmpty() ? state.error : error;
        Source now{runs_[i], state.timeline, run->status, nullptr};
        const Source& old = sources_[i];
        if (old.run == now.run && old.timeline == now.timeline && old.status == now.status) {
            now.side = old.side;
        }
        sources_[i] = now;
        inputs[i] = {*run, now};
        any = any || now.timeline != nullptr;
    }
    showError(error);
    if (!any) {
        job_.cancel();
        take({});
        return;
    }
    job_.start(
        [inputs = std::move(inputs), axis = axisOf()] {
            Built built;
            std::array<BatchSidePtr, 2> sides;
            for (std::size_t i = 0; i < 2; ++i) {
                const Source& source = inputs[i].source;
                sides[i] = source.side       ? source.side
                           : source.timeline ? batchSide(*inputs[i].run, *source.timeline)
                                             : nullptr;
                if (sides[i] && sides[i]->empty()) {
                    sides[i] = nullptr;
                }
                built.maps[i] = sides[i] ? BatchMap::make(sides[i], axis) : nullptr;
            }
            built.pair =
                batchPair(sides[0], sides[1], inputs[0].source.timeline.get(), inputs[1].source.timeline.get());
            return built;
        },
        ifStill(runs_, [this](Built built) { take(std::move(built)); }));
    updateEmpty();
}

void BatchingView::take(Built built) {
    pair_ = std::move(built.pair);
    maps_ = std::move(built.maps);
    sources_[0].side = pair_.a;
    sources_[1].side = pair_.b;
    updateEmpty();
    updateVisible();
    updateExtent();
    updateLanes();
    updateRunning();
    updateCurves();
    // Pictures follow a live run at once; numbers that nobody could read so fast follow a few times a second.
    constexpr int kNumbersMs = 250;
    const bool live = (pair_.a && pair_.a->live) || (pair_.b && pair_.b->live);
    if (!live || !filled_.isValid() || filled_.elapsed() >= kNumbersMs) {
        filled_.start();
        updateInspector();
        updateSweep();
        updateTwin();
    }
    updateReadout();
    emit priced(batchAgreement(pair_));
    emit availabilityChanged();
}

void BatchingView::updateEmpty() {
    if (document() == nullptr || showMissingRun()) {
        return;
    }
    if (pair_.a || pair_.b) {
        showEmpty({});
        return;
    }
    const sessions::RunId looked = runs_[0] != 0 ? runs_[0] : runs_[1];
    if (looked == 0) {
        sessions::RunId other = 0;
        for (const RunInfo& run : document()->runs()) {
            other = isBatchRun(run) ? run.id : other;
        }
        if (other != 0) {
            showEmpty(tr("No requests were batched in this run."), tr("Open a batch run"), [this, other] {
                document()->setRunA(other);
                document()->setRunB(batchPartner(document()->runs(), other));
            });
        } else {
            showEmpty(tr("No requests were batched in this run. Batch runs replay a trace of requests, static or "
                         "continuous."),
                      tr("Prepare a run"), [this] { emit openView(QStringLiteral("run")); });
        }
        return;
    }
    const RunInfo* run = runInfo(looked);
    if (!read(looked) || job_.busy()) {
        showEmpty(tr("Reading the events of this run."));
    } else if (run->status == sessions::RunStatus::Running) {
        showEmpty(tr("The run has begun; no request has arrived yet."));
    } else if (runMetric(*run, "requests").value_or(-1) == 0) {
        showEmpty(tr("No request came while this run went on."));
    } else if (!run->error.empty()) {
        showEmpty(tr("This run ended before its first step: %1").arg(QString::fromStdString(run->error)));
    } else {
        showEmpty(tr("This run recorded no steps. Run it again with the profile set to light."), tr("Prepare that run"),
                  [this, looked] { wantExperimentWith(looked, "profile", "light"); });
    }
}

void BatchingView::updateVisible() {
    for (std::size_t i = 0; i < 2; ++i) {
        const bool there = maps_[i] != nullptr;
        slotLanes_[i]->setVisible(there && page() == Slots);
        requestLanes_[i]->setVisible(there && page() == Requests);
    }
}

/// Both runs on one axis, with a little air after the later end.
void BatchingView::updateExtent() {
    base::TimeNs length = 0;
    for (const BatchMapPtr& map : maps_) {
        length = std::max(length, map ? map->length() : 0);
    }
    const bool steps = axisOf() == BatchAxis::Steps;
    ruler_->setCounted(steps ? kStepLength : 0, steps ? tr("steps") : QString());
    const TimeRange extent{0, std::max<base::TimeNs>(kStepLength, length + length / 50)};
    const bool live = (pair_.a && pair_.a->live) || (pair_.b && pair_.b->live);
    if (live && lastAxis_ == axisOf() && shownRuns_ == runs_) {
        time_->setExtent(extent);
    } else if (!(time_->extent() == extent) || lastAxis_ != axisOf() || shownRuns_ != runs_) {
        time_->reset(extent);
    }
    lastAxis_ = axisOf();
    shownRuns_ = runs_;
}

void BatchingView::updateLanes() {
    for (std::size_t i = 0; i < 2; ++i) {
        const BatchMapPtr& map = maps_[i];
        for (BatchLane* lane : {static_cast<BatchLane*>(slotLanes_[i]), static_cast<BatchLane*>(requestLanes_[i])}) {
            lane->setTitle(map ? pair_.titles[i] : QString());
            lane->setFacts(map ? sideText(map->side()) : QString());
            lane->setMap(map);
            lane->setChosen(request_);
        }
        std::optional<SlotGain> gain;
        if (map && maps_[1 - i]) {
            const BatchSide &own = map->side(), &other = maps_[1 - i]->side();
            gain = SlotGain{maps_[1 - i]->length(), {}};
            const double ratio =
                map->length() > 0 ? static_cast<double>(gain->otherEnd) / static_cast<double>(map->length()) : 0;
            if (ratio >= 1.005 && !own.live && !other.live) {
                gain->text = axisOf() == BatchAxis::Time
                                 ? tr("%1 times sooner").arg(QString::number(ratio, 'f', 2))
                                 : tr("%1 times fewer steps").arg(QString::number(ratio, 'f', 2));
            }
        }
        slotLanes_[i]->setGain(gain);
    }
}

/// What few slots do not need goes to the curves, where one is open.
void BatchingView::updateRoom() {
    const CurveLane* curves[] = {rateLane_, queueLane_, runningLane_, pageLane_};
    const bool open = std::ranges::any_of(curves, [](const CurveLane* lane) { return !lane->collapsed(); });
    for (SlotLane* lane : slotLanes_) {
        lane->setFills(!open);
    }
}

void BatchingView::updateCurves() {
    const BatchCurves curves = batchCurves(maps_, lanes_->axis());
    const auto show = [](CurveLane* lane, const BatchCurves::Lane& content) {
        lane->setTopText(content.topText, content.middleText);
        lane->setFacts(content.facts);
        lane->setCurves(content.curves, content.top, false);
    };
    show(rateLane_, curves.rate);
    show(queueLane_, curves.queue);
    show(runningLane_, curves.running);
    show(pageLane_, curves.pages);
}

void BatchingView::updateLegend() {
    legend_->setVisible(page() != SweepOfSlots); // its lines carry their names
    QString facts = page() == Requests ? tr("one row is one request, by arrival") : tr("one row is one slot");
    if (page() == Requests && runningOnly_->isChecked()) {
        QStringList counts;
        for (std::size_t i = 0; i < 2; ++i) {
            if (maps_[i]) {
                counts << tr("%1 %2 of %3")
                              .arg(i == 0 ? QLatin1Char('A') : QLatin1Char('B'))
                              .arg(requestLanes_[i]->rowCount())
                              .arg(countText(static_cast<qint64>(maps_[i]->side().requests.size())));
            }
        }
        facts = (time_->cursor() ? tr("who runs at the cursor: %1") : tr("who runs now: %1"))
                    .arg(counts.join(QStringLiteral(", ")));
    }
    legend_->setItems(batchLegend(page() == Requests), facts);
}

/// The check box: who runs at the cursor. Without one it is set in the middle of what is shown, but for a run that goes
/// on, of which the present is meant.
void BatchingView::showRunning() {
    const BatchMapPtr& map = maps_[0] ? maps_[0] : maps_[1];
    if (runningOnly_->isChecked() && !time_->cursor() && map && !map->side().live) {
        const TimeRange shown = time_->range();
        time_->setCursor(std::min(shown.begin + shown.length() / 2, map->length() - 1));
    }
    updateRunning();
}

/// Brings those into sight who run at the cursor: rows for them only, or the list scrolled to them. Where both runs lie
/// under each other their lists scroll together, and A leads.
void BatchingView::updateRunning() {
    const bool only = runningOnly_->isChecked();
    const bool clicking = requestLanes_[0]->clicking() || requestLanes_[1]->clicking();
    bool led = false;
    for (std::size_t i = 0; i < 2 && page() == Requests; ++i) {
        if (!maps_[i]) {
            continue;
        }
        if (only) {
            requestLanes_[i]->setOnly(maps_[i]->runningAt(time_->cursor().value_or(maps_[i]->length() - 1)),
                                      tr("No request runs at this moment."));
            continue;
        }
        requestLanes_[i]->setOnly(std::nullopt);
        const bool leads = !led && !clicking && time_->cursor();
        if (const auto running = leads ? maps_[i]->runningAt(*time_->cursor()) : std::vector<std::int32_t>();
            !running.empty()) {
            requestLanes_[i]->reveal(running);
            led = true;
        }
    }
    updateLegend();
}

} // namespace vitrine::ui
