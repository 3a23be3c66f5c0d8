// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/common/document_view.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QTableView>
#include <algorithm>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

void DocumentView::followDocument() {
    if (SessionDocument* followed = document()) {
        connect(followed, &SessionDocument::opened, this, &DocumentView::onSession);
        connect(followed, &SessionDocument::closed, this, &DocumentView::onSession);
        connect(followed, &SessionDocument::selectionChanged, this, &DocumentView::onSelection);
        connect(followed, &SessionDocument::runsChanged, this, &DocumentView::onRuns);
        connect(followed, &SessionDocument::timelineChanged, this, [this](qint64 run) {
            if (std::ranges::count(shownRuns(), run) > 0) {
                onEvents(run);
            }
        });
    }
    stale_ = false;
    refresh();
}

std::vector<sessions::RunId> DocumentView::shownRuns() const {
    return {runA()};
}

void DocumentView::onSession() {
    onSelection();
}

void DocumentView::onSelection() {
    reload();
}

void DocumentView::onRuns() {
    reload();
}

void DocumentView::onEvents(sessions::RunId) {
    reload();
}

void DocumentView::reload() {
    stale_ = !isVisible() && document() != nullptr && document()->isOpen();
    if (!stale_) {
        refresh();
    }
}

void DocumentView::activated() {
    if (stale_) {
        stale_ = false;
        refresh();
    }
}

bool DocumentView::settled() const {
    return allRead(shownRuns());
}

const sessions::RunInfo* DocumentView::runInfo(sessions::RunId run) const {
    return document() != nullptr && run != 0 ? document()->run(run) : nullptr;
}

TimelineState DocumentView::timelineOf(sessions::RunId run) const {
    return document() != nullptr && run != 0 ? document()->timeline(run) : TimelineState{};
}

bool DocumentView::live(sessions::RunId run) const {
    const sessions::RunInfo* info = runInfo(run);
    return info != nullptr && info->status == sessions::RunStatus::Running;
}

bool DocumentView::read(sessions::RunId run) const {
    if (document() == nullptr || run == 0) {
        return true;
    }
    const TimelineState& state = document()->timeline(run);
    return state.complete || !state.error.isEmpty();
}

bool DocumentView::allRead(const std::vector<sessions::RunId>& runs) const {
    return std::ranges::all_of(runs, [this](sessions::RunId run) { return read(run); });
}

void DocumentView::wantExperimentWith(sessions::RunId run, const char* key, const std::string& value) {
    const sessions::RunInfo* info = runInfo(run);
    if (auto experiment = info != nullptr ? engine::Experiment::read(info->specJson) : std::nullopt) {
        experiment->set(key, value);
        emit experimentWanted(textOf(experiment->jsonText()));
    }
}

bool DocumentView::zoom(const QString& action) {
    TimeCursor* axis = ownAxis();
    if (axis == nullptr) {
        return false;
    }
    if (action == QLatin1String("zoom.fit")) {
        axis->fitSelection();
    } else if (action == QLatin1String("zoom.all")) {
        axis->fitAll();
    } else if (action == QLatin1String("zoom.back")) {
        axis->back();
    } else if (action == QLatin1String("select.clear") && (axis->cursor() || axis->measured())) {
        axis->setMeasured(std::nullopt);
        axis->setCursor(std::nullopt);
    } else {
        return false;
    }
    return true;
}

bool DocumentView::perform(const QString& action) {
    bool done = false;
    for (LaneStack* stack : laneStacks()) {
        done = stack->perform(action) || done; // a unit of time is that of all stacks
    }
    if (done || zoom(action)) {
        return true;
    }
    const bool why = action == QLatin1String("edit.copy-why");
    if (why || action == QLatin1String("edit.copy")) {
        if (const QString text = why ? whyText() : copyText(); !text.isNull()) {
            QGuiApplication::clipboard()->setText(text);
            return true;
        }
    }
    return View::perform(action);
}

QString DocumentView::whyNot(const QString& action) const {
    QString reason;
    for (const LaneStack* stack : laneStacks()) {
        reason = stack->whyNot(action);
        if (reason.isEmpty()) {
            break; // one that can do it is enough
        }
    }
    return reason.isEmpty() ? View::whyNot(action) : reason;
}

QList<QWidget*> DocumentView::focusStops() const {
    if (emptyShown()) {
        return {};
    }
    return header()->tableShown() ? tableStops() : bodyStops();
}

QList<QWidget*> DocumentView::tableStops() const {
    return twin_ != nullptr ? QList<QWidget*>{twin_} : QList<QWidget*>{};
}

void DocumentView::makeTwin(const QString& name) {
    twin_ = new QTableView(this);
    twinModel_ = new FlatTreeModel(this);
    setUpTwin(twin_, twinModel_, name);
    setTable(twin_);
}

QString DocumentView::shownText() const {
    return header()->tableShown() ? asTabSeparated(*twinModel_, twin_->selectionModel()->selectedRows()) : readout();
}

} // namespace vitrine::ui
