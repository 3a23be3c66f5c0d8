// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kernels/kernels_view.h"

#include <QCheckBox>
#include <QStackedWidget>
#include <QTreeView>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/kernels/kernel_list.h"
#include "ui/views/kernels/variants_panel.h"
#include "ui/widgets/plots/flame_plot.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/trace_arrows.h"

namespace vitrine::ui {

using sessions::RunInfo;

void KernelsView::showPage(Page page) {
    if (pageChoice_->current() != page) {
        pageChoice_->setCurrent(page);
        return; // the signal comes back
    }
    pages_->setCurrentIndex(page);
    const bool plot = page == Trace || page == Flame;
    if (!plot) {
        header()->setTableShown(false); // they are tables themselves
    }
    header()->setTableButton(plot);
    axis_->setEnabled(page == Trace);
    arrowsCheck_->setEnabled(page == Trace);
    updateTable();
    updateFlame();
    updateTwin();
    updateReadout();
    updateNote();
    if (page == Variants) {
        variants_->announceChosen();
    }
}

KernelsView::Page KernelsView::page() const {
    return static_cast<Page>(pageChoice_->current());
}

void KernelsView::onSelection() {
    const bool other = runA() != run_;
    run_ = runA();
    baseline_ = baseline();
    if (other) {
        search_.clear();
        timeline_.reset();
        takeTrace(nullptr);
        takeStats(nullptr);
        listA_.reset();
        flameTree_.reset();
        flame_->setFlame(nullptr);
        panel_->setKernel({});
        followedScope_ = 0;
        panel_->setShapes({});
        walkedAt_ = -1;
    }
    readShapes();
    reload();
    updateVariants();
}

/// Metrics, with them the variants, come when the run ends.
void KernelsView::onRuns() {
    updateVariants();
    updateNote();
}

void KernelsView::onEvents(sessions::RunId run) {
    if (!isVisible()) {
        reload();
    } else if (run == run_) {
        onTimeline();
    } else {
        onBaseline();
    }
}

/// Trace and statistics go over all events of a run, and while one is read they come anew many times.
void KernelsView::refresh() {
    onTimeline();
    onBaseline();
}

void KernelsView::readShapes() {
    document()->readTexts(run_, this, ifStill(run_, [this](const std::vector<sessions::RunText>& texts) {
                              for (const sessions::RunText& text : texts) {
                                  if (text.kind == "gpu.kernels") {
                                      panel_->setShapes(launchShapes(text.body));
                                  }
                              }
                          }));
}

void KernelsView::onTimeline() {
    const TimelineState state = timelineOf(run_);
    timeline_ = state.timeline;
    lanes_->setTimeline(timeline_);
    if (!timeline_) {
        traceJob_.cancel();
        statsJob_.cancel();
        takeTrace(nullptr);
        takeStats(nullptr);
        return;
    }
    const RunInfo* run = runInfo(run_);
    const Ceilings ceilings = run != nullptr ? ceilingsOf(*run) : Ceilings();
    traceJob_.start([timeline = timeline_] { return kernelTrace(*timeline); },
                    ifStill(run_, [this](KernelTracePtr trace) { takeTrace(std::move(trace)); }));
    statsJob_.start([timeline = timeline_,
                     ceilings] { return kernelStats(*timeline, ceilings, {timeline->begin(), timeline->end() + 1}); },
                    ifStill(run_, [this](KernelStatsPtr stats) { takeStats(std::move(stats)); }));
    if (state.complete && run != nullptr && run->status != sessions::RunStatus::Running) {
        readShapes(); // written at the run's end
    }
    updateRange();
    updateEmpty();
}

void KernelsView::onBaseline() {
    const TimelineState state = timelineOf(baseline_);
    const RunInfo* run = runInfo(baseline_);
    if (!state.timeline || run == nullptr) {
        statsJobB_.cancel();
        statsB_.reset();
        updateVariants();
        return;
    }
    statsJobB_.start(
        [timeline = state.timeline, ceilings = ceilingsOf(*run)] {
            return kernelStats(*timeline, ceilings, {timeline->begin(), timeline->end() + 1});
        },
        ifStill(baseline_, [this](KernelStatsPtr stats) {
            statsB_ = std::move(stats);
            updateVariants();
        }));
}

void KernelsView::takeTrace(KernelTracePtr trace) {
    trace_ = std::move(trace);
    openOnTheWork();
    lanes_->setEventTimes(trace_ ? std::shared_ptr<const std::vector<base::TimeNs>>(trace_, &trace_->eventBegins)
                                 : nullptr);
    updateLanes();
    updateCounters();
    arrows_->setTrace(trace_);
    updateLit();
    updateEmpty();
    updateNote();
    updateReadout();
}

/// A run that loads for seconds and works for a few steps opens on these steps, once.
void KernelsView::openOnTheWork() {
    constexpr double kIdleShare = 0.2;
    TimeCursor* time = context().time;
    if (!trace_ || trace_->eventBegins.empty() || openedOn_ == run_ || !timelineOf(run_).complete) {
        return;
    }
    openedOn_ = run_;
    const TimeRange all = time->extent();
    const TimeRange work = trace_->work;
    const auto idle = static_cast<double>((work.begin - all.begin) + (all.end - work.end));
    if (time->showsAll() && idle > kIdleShare * static_cast<double>(all.end - all.begin)) {
        time->setRange(work);
    }
}

void KernelsView::takeStats(KernelStatsPtr stats) {
    stats_ = std::move(stats);
    panel_->setStats(stats_);
    updateVariants();
    if (stats_ && stats_->table.launches > 0) {
        header()->setFacts(tr("%1 kernels, %2 busy, %3 inside ops")
                               .arg(countText(static_cast<qint64>(stats_->table.launches)),
                                    durationText(stats_->table.busy), shareText(stats_->table.attribution())));
    } else {
        header()->setFacts({});
    }
}

void KernelsView::updateVariants() {
    const auto start = [this](LatestJob<VariantListPtr>& job, const sessions::RunId& id,
                              VariantListPtr KernelsView::* list) {
        const RunInfo* run = runInfo(id);
        if (run == nullptr) {
            job.cancel();
            (this->*list).reset();
            return;
        }
        job.start([info = *run] { return variantList(info); }, ifStill(id, [this, list](VariantListPtr found) {
                      this->*list = std::move(found);
                      panel_->setVariants(listA_);
                      variants_->setSides(listA_ ? std::optional(VariantSide{listA_, stats_}) : std::nullopt,
                                          listB_ ? std::optional(VariantSide{listB_, statsB_}) : std::nullopt);
                      updateEmpty();
                  }));
    };
    start(listJob_, run_, &KernelsView::listA_);
    start(listJobB_, baseline_, &KernelsView::listB_);
}

void KernelsView::updateEmpty() {
    if (showMissingRun()) {
        return;
    }
    const TimelineState state = timelineOf(run_);
    const RunInfo* run = runInfo(run_);
    if ((trace_ && (trace_->ops > 0 || trace_->tracks.size() > 1)) || (listA_ && !listA_->used.empty())) {
        showEmpty({});
    } else if (!state.complete && state.error.isEmpty()) {
        showEmpty(tr("Reading the events of this run."));
    } else if (run->status == sessions::RunStatus::Running) {
        showEmpty(tr("The run has begun and launched nothing yet."));
    } else if (trace_ || !timeline_) {
        showEmpty(tr("This run recorded neither kernels nor ops. Run it again with the profile set to full."),
                  tr("Run in full"), [this] { wantExperimentWith(run_, "profile", "full"); });
    }
}

void KernelsView::updateNote() {
    const RunInfo* run = runInfo(run_);
    QString note;
    if (run != nullptr && trace_ && trace_->kernels == 0) {
        const RunSummary facts = runSummary(*run);
        const nlohmann::json metrics = base::parsedObject(run->metricsJson);
        const nlohmann::json& notes = engine::rowsOf(metrics, engine::result::kProfilerNotes);
        const QString said = notes.empty() || !notes.front().is_string()
                                 ? QString()
                                 : textOf(notes.front().get_ref<const std::string&>());
        if (facts.backend == QLatin1String("meta") || facts.virtualTime) {
            note = tr("Kernels are recorded on a GPU. This run was planned on Meta: its ops have predicted times.");
        } else if (facts.backend != QLatin1String("cuda")) {
            note = tr("Kernels are recorded on a GPU. This run was on the CPU: its ops and their times are shown.");
        } else if (!said.isEmpty()) {
            note = said;
        } else if (trace_->graphs > 0) {
            note = tr("The light profile records whole graphs. Run with the profile set to full to see their kernels.");
        } else {
            note = tr("The light profile records no single kernels. Run with the profile set to full to see them.");
        }
    }
    note_->setText(note);
    note_->setToolTip(note);
    noteStrip_->setVisible(!note.isEmpty() && page() != Table); // there it stands in place of the rows
    list_->setWhyEmpty(note);
}

void KernelsView::updateLanes() {
    const auto show = [this](TraceLane* lane, std::optional<std::size_t> track) {
        lane->setVisible(track.has_value());
        lane->setTrace(track ? trace_ : nullptr, track.value_or(0), timeline_);
    };
    std::optional<std::size_t> kernels;
    std::vector<std::size_t> others;
    for (std::size_t i = 1; trace_ && i < trace_->tracks.size(); ++i) {
        if (trace_->tracks[i].kind == TraceTrack::Kind::Kernels) {
            kernels = i;
        } else {
            others.push_back(i);
        }
    }
    const bool scopes = trace_ && trace_->tracks.front().count > 0;
    show(scopeLane_, scopes ? std::optional<std::size_t>(0) : std::nullopt);
    show(kernelLane_, kernels);
    while (otherLanes_.size() < others.size()) {
        auto* lane = new TraceLane(QString(), context().time, lanes_);
        lanes_->addLane(lane, counters_->first());
        lane->setCollapsed(window()->height() < 760);
        connectLane(lane);
        otherLanes_.push_back(lane);
    }
    for (std::size_t i = 0; i < otherLanes_.size(); ++i) {
        show(otherLanes_[i], i < others.size() ? std::optional(others[i]) : std::nullopt);
        if (i < others.size() && trace_->work.length() > 0) {
            otherLanes_[i]->foldWhileEmpty(!trace_->tracks[others[i]].anyIn(trace_->work));
        }
    }
}

void KernelsView::updateCounters() {
    const RunInfo* run = runInfo(run_);
    counters_->show(timeline_, trace_ ? std::optional(trace_->work) : std::nullopt,
                    run != nullptr ? ceilingsOf(*run).bytesPerSecond : 0);
}

void KernelsView::updateRange() {
    updateCounters();
    updateTable();
    updateFlame();
}

TimeRange KernelsView::countedRange() const {
    const auto measured = context().time->measured();
    return measured && measured->length() > 0 ? *measured : context().time->range();
}

void KernelsView::updateTable() {
    const bool needed = page() == Table || (page() == Trace && header()->tableShown());
    if (needed) {
        const RunInfo* run = runInfo(run_);
        list_->setSource(timeline_, run != nullptr ? ceilingsOf(*run) : Ceilings(), countedRange(),
                         context().time->measured() ? tr("the measured range") : tr("the visible range"));
    }
}

void KernelsView::updateFlame() {
    if (page() != Flame || !timeline_) {
        return;
    }
    flameJob_.start([timeline = timeline_,
                     range = countedRange()] { return profiler::flameTree(*timeline, range.begin, range.end); },
                    ifStill(run_, [this](profiler::FlameTreePtr flame) {
                        flameTree_ = std::move(flame);
                        flame_->setFlame(flameTree_);
                        updateTwin();
                    }));
}

void KernelsView::updateTwin() {
    if (!header()->tableShown()) {
        return;
    }
    if (page() == Flame) {
        twinModel_->setTree(flameTree_ ? flameTable(*flameTree_) : std::make_shared<FlatTree>());
    } else if (list_->stats()) {
        twinModel_->setTree(kernelTree(*list_->stats(), {}));
    } else {
        updateTable();
        return;
    }
    twin_->expandToDepth(1);
    for (int i = 0; i < twinModel_->columnCount(); ++i) {
        twin_->setColumnWidth(i, i == 0 ? 300 : 110);
    }
}

} // namespace vitrine::ui
