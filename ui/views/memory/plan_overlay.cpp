// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/plan_overlay.h"

#include <algorithm>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "ui/models/memory/same_experiment.h"

namespace vitrine::ui {

PlanOverlay::PlanOverlay(const ViewServices& context, QObject* parent) : QObject(parent), context_(context) {
    connect(context_.document, &SessionDocument::timelineChanged, this, [this](qint64 run) {
        if (run == sessionRun_ && run != 0) {
            takeSessionPlan();
        }
    });
    if (context_.runs != nullptr) {
        connect(context_.runs, &RunController::rehearsed, this,
                [this](quint64 ticket, const TimelinePtr& timeline, const QString& error) {
                    if (ticket == ticket_ && ticket != 0) {
                        ticket_ = 0;
                        timeline_ = timeline;
                        error_ = timeline ? QString() : error;
                        emit changed();
                    }
                });
    }
}

void PlanOverlay::setRun(sessions::RunId run) {
    if (run == run_) {
        return;
    }
    run_ = run;
    sessionRun_ = 0;
    asked_ = complete_ = false;
    ticket_ = 0;
    timeline_.reset();
    error_.clear();
    if (shown_) {
        ask();
    }
    emit changed();
}

void PlanOverlay::setShown(bool shown) {
    shown_ = shown;
    if (shown && !asked_) {
        ask();
    }
    emit changed();
}

QString PlanOverlay::whyNot() const {
    const sessions::RunInfo* run = context_.document->run(run_);
    if (run == nullptr) {
        return tr("No run is open");
    }
    if (!engine::Experiment::read(run->specJson)) {
        return tr("This run has no experiment that could be planned");
    }
    return {};
}

void PlanOverlay::ask() {
    asked_ = true;
    const sessions::RunInfo* run = context_.document->run(run_);
    if (run == nullptr || !whyNot().isEmpty()) {
        return;
    }
    const auto& runs = context_.document->runs();
    const auto planned = std::find_if(runs.rbegin(), runs.rend(), [&](const sessions::RunInfo& other) {
        return other.id != run_ && other.workload.starts_with("plan ") && other.status == sessions::RunStatus::Done &&
               sameExperiment(run->specJson, other.specJson);
    });
    if (planned != runs.rend()) {
        sessionRun_ = planned->id;
        takeSessionPlan();
    } else if (context_.runs != nullptr) {
        ticket_ = context_.runs->rehearse(run->specJson);
        error_ = ticket_ == 0 ? tr("Plans cannot be made here") : QString();
    } else {
        error_ = tr("The session holds no plan of this experiment");
    }
}

void PlanOverlay::takeSessionPlan() {
    const TimelineState& state = context_.document->timeline(sessionRun_);
    timeline_ = state.timeline;
    complete_ = state.complete || !state.error.isEmpty();
    emit changed();
}

} // namespace vitrine::ui
