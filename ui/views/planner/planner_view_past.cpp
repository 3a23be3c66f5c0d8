// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The part of the Planner view that shows what earlier plans said of runs that were then measured.
#include <utility>

#include "ui/views/planner/planner_view.h"
#include "ui/widgets/plots/chart.h"

namespace vitrine::ui {

void PlannerView::readPast() {
    const std::vector<sessions::RunInfo> runs =
        document() != nullptr ? document()->runs() : std::vector<sessions::RunInfo>();
    const std::vector<sessions::RunId> done = doneRuns(runs);
    if (pastKnown_ && done == pastIds_) {
        return;
    }
    pastKnown_ = true;
    pastIds_ = done;
    pastJob_.start([runs] { return predictedRuns(measuredRuns(runs)); },
                   [this](std::vector<PastRun> past) {
                       pastRuns_ = std::move(past);
                       updateAll();
                   });
}

ErrorBand PlannerView::band() const {
    return errorBand(pastRuns_, draft_.model(), draft_.device());
}

void PlannerView::updatePast() {
    pastDots_ = showPastRuns(*past_, pastRuns_, draft_.model(), draft_.device());
    pastFacts_->setText(pastRunsText(pastRuns_.size()));
}

} // namespace vitrine::ui
