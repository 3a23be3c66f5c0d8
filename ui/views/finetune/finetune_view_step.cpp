// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The page Step in the view: which runs it shows, and the ways to it and from it.
#include <QMouseEvent>
#include <QStackedWidget>
#include <functional>
#include <utility>
#include <vector>

#include "profiler/timeline/run_timeline.h"
#include "ui/models/finetune/training_text.h"
#include "ui/models/planner/past_plans.h"
#include "ui/views/finetune/finetune_panel.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/views/finetune/live_lanes.h"
#include "ui/views/finetune/step_page.h"
#include "ui/views/finetune/step_panel.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

namespace {

/// Reports the place of a double click in the plot of a lane; it does nothing else then.
class PlaceOpener final : public QObject {
public:
    PlaceOpener(std::function<bool(base::TimeNs)> open, QObject* parent) : QObject(parent), open_(std::move(open)) {}

protected:
    bool eventFilter(QObject* watched, QEvent* event) override {
        const auto* lane = qobject_cast<const Lane*>(watched);
        if (lane == nullptr || event->type() != QEvent::MouseButtonDblClick) {
            return false;
        }
        const QPointF at = static_cast<QMouseEvent*>(event)->position();
        return at.x() >= lane->gutter() && at.y() > Lane::kHeaderHeight && open_(lane->timeAt(at.x()));
    }

private:
    std::function<bool(base::TimeNs)> open_;
};

} // namespace

void FinetuneView::buildStep() {
    step_ = new StepPage(header(), body_);
    body_->addWidget(step_);
    inspectors_->addWidget(step_->panel());
    inspectorHeads_->addWidget(step_->panel()->header());
    inspectorHeads_->setFixedHeight(panel_->header()->sizeHint().height());
    auto* opener = new PlaceOpener(
        [this](base::TimeNs place) {
            const auto step = training_ != nullptr ? training_->stepAt(place) : std::nullopt;
            if (step) {
                openStep(training_->steps()[*step].step);
            }
            return step.has_value();
        },
        this);
    for (Lane* lane : lanes_->stack()->lanes()) {
        lane->installEventFilter(opener);
    }
    connect(step_, &StepPage::readoutChanged, this, [this](const QString& text) {
        if (page() == Step) {
            setReadout(text);
        }
    });
    connect(step_, &StepPage::pairChanged, this, &FinetuneView::updateTwin);
    connect(step_, &StepPage::experimentWanted, this, &FinetuneView::takeExperiment);
    connect(step_, &StepPage::formWanted, this, [this] { showPage(Form); });
    connect(step_, &StepPage::memoryWanted, this, [this](qint64 begin, qint64 end, qint64 at) {
        if (context().time != nullptr) {
            context().time->jumpTo({begin, end});
            context().time->setCursor(at);
        }
        emit openView(QStringLiteral("memory"));
    });
}

std::vector<sessions::RunId> FinetuneView::shownRuns() const {
    std::vector<sessions::RunId> runs{runA()};
    const sessions::RunInfo* other = runInfo(baseline());
    if (page() == Step && other != nullptr && isTrainingRun(*other)) {
        runs.push_back(other->id);
    }
    return runs;
}

/// The other runs are read only while the page is shown.
void FinetuneView::updateStep() {
    if (page() != Step) {
        return;
    }
    const sessions::RunInfo* run = runInfo(shownRun_);
    if (const QString nothing = whyNothing(); run == nullptr || !nothing.isEmpty()) {
        return step_->setRuns(nullptr, {}, {}, nullptr, nothing);
    }
    const auto readOf = [this](sessions::RunId id) -> TimelinePtr {
        const TimelineState state = timelineOf(id);
        return state.complete || live(id) ? state.timeline : nullptr;
    };
    const std::vector<sessions::RunId> shown = shownRuns();
    const TimelinePtr mine = readOf(shownRun_);
    step_->setRuns(mine, run->specJson, runDevice(*run), shown.size() > 1 ? readOf(shown[1]) : nullptr,
                   mine ? QString() : tr("Reading the events of this run."));
}

void FinetuneView::openStep(std::int64_t step) {
    showPage(Step);
    step_->openStep(step);
}

void FinetuneView::showPage(const QString& page) {
    if (page == QLatin1String("step")) {
        showPage(Step);
    }
}

TimeCursor* FinetuneView::ownAxis() const {
    return page() == Step ? step_->axis() : time_;
}

} // namespace vitrine::ui
