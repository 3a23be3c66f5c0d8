// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/planner_view.h"

#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QTableView>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/workload/experiment/experiment.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
#include "ui/views/planner/change_list.h"
#include "ui/views/planner/plan_budget.h"
#include "ui/views/planner/plan_curves.h"
#include "ui/views/planner/plan_form.h"
#include "ui/views/planner/set_delegate.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/forms/named_combo.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr double kGibibyte = 0x1p30;

/// What lies free between tensors: a part of the bar that has no category.
BudgetShare freeShare(std::uint64_t bytes) {
    const ThemeTokens& t = themeTokens();
    return {QString(), bytes, {t.canvas, t.text2, Hatch::BackDiagonal, 10}};
}

/// What is held at the peak, and what lies free between it.
std::vector<BudgetShare> sharesOf(const engine::PlanPrice& price) {
    std::vector<BudgetShare> parts;
    std::uint64_t sum = 0;
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const auto category = static_cast<base::MemoryCategory>(i);
        if (const std::uint64_t bytes = price.byCategory[static_cast<std::size_t>(i)]; bytes > 0) {
            parts.push_back({textOf(base::categoryName(category)), bytes, themeTokens().category(category)});
            sum += bytes;
        }
    }
    if (price.reserved > sum) {
        parts.push_back(freeShare(price.reserved - sum));
    }
    return parts;
}

/// "prompts 16, samples 8"
QString numbersText(const PlanDraft& draft) {
    QStringList facts;
    for (const PlanNumber& number : draft.numbers()) {
        facts << PlannerView::tr("%1 %2").arg(number.label.section(QLatin1Char(','), 0, 0).toLower(),
                                              countText(number.value));
    }
    return facts.join(QStringLiteral(", "));
}

PlanCurve curveOf(const engine::WhatIfSet& set, bool chosen) {
    PlanCurve curve;
    curve.name = setName(set.spec);
    std::int64_t last = 0;
    for (const engine::PlanPoint& point : set.line.points) {
        if (point.tokens < last + last / 8 && point.tokens != set.line.points.back().tokens) {
            continue; // the tries of a search lie close together, where an allocator near its end shows
        }
        last = point.tokens;
        curve.points.emplace_back(static_cast<double>(point.tokens), static_cast<double>(point.reserved) / kGibibyte);
    }
    curve.slope = set.line.slope().reserved / kGibibyte;
    curve.longest = set.line.longest;
    curve.chosen = chosen;
    return curve;
}

} // namespace

void PlannerView::refresh() {
    const sessions::RunInfo* run = runInfo(runA());
    if (!touched_ && run != nullptr && run->id != filledBy_) {
        if (std::optional<PlanDraft> draft = PlanDraft::of(run->specJson)) {
            filledBy_ = run->id;
            if (const QString device = runDevice(*run); !device.isEmpty()) {
                draft->setDevice(device);
            }
            setDraft(*std::move(draft));
        }
    }
    readPast();
    if (!answer_) {
        sayWhatIsMissing();
    }
}

void PlannerView::resizeEvent(QResizeEvent* event) {
    DocumentView::resizeEvent(event);
    fit();
}

void PlannerView::fit() {
    constexpr int kNarrowPage = 1000;
    const bool narrow = width() < kNarrowPage; // the inspector is then below the page, so its first words stand here
    budget_->setBraces(!narrow);
    top_->setVisible(narrow && answer_ != nullptr);
    curves_->setMinimumHeight(narrow ? 260 : 230);
}

void PlannerView::takeExperiment(const QString& experimentJson) {
    if (std::optional<PlanDraft> draft = PlanDraft::of(experimentJson.toStdString())) {
        touched_ = true;
        setDraft(*std::move(draft));
    } else {
        showError(tr("This workload cannot be planned over a context; plan fine-tuning, generate or batch"));
    }
}

void PlannerView::deactivated() {
    job_->cancel();
}

void PlannerView::activated() {
    DocumentView::activated();
    if (draft_.complete() && (!answer_ || !answer_->complete)) {
        delay_.start(); // it was cancelled when the view went
    }
}

bool PlannerView::settled() const {
    return !delay_.isActive() && !job_->busy() && !pastJob_.busy() && DocumentView::settled();
}

bool PlannerView::sayWhatIsMissing() {
    if (draft_.complete()) {
        showEmpty({});
        return false;
    }
    showEmpty(tr("Choose a model and a device."), tr("Open the model list"), [this] { model_->showPopup(); });
    return true;
}

void PlannerView::fillChoices() {
    const QSignalBlocker models(model_), devices(device_), workloads(workload_);
    if (model_->currentText() != draft_.model()) {
        model_->setCurrentText(draft_.model());
    }
    int device = device_->findData(draft_.device());
    if (device < 0) { // a profile file of the user's own
        device_->addItem(draft_.device(), draft_.device());
        device = device_->count() - 1;
    }
    device_->setCurrentIndex(device);
    workload_->setCurrentIndex(workload_->findData(draft_.workload()));
}

void PlannerView::setDraft(PlanDraft draft) {
    draft_ = std::move(draft);
    draftChanged();
}

void PlannerView::draftChanged() {
    fillChoices();
    form_->setDraft(draft_);
    showError({});
    if (sayWhatIsMissing()) {
        job_->cancel();
        return;
    }
    delay_.start();
}

void PlannerView::ask() {
    if (draft_.complete()) {
        asked_ = draft_;
        job_->ask(draft_.toPlan(), draft_.context());
    }
}

void PlannerView::take(const WhatIfPtr& answer, double seconds) {
    answer_ = answer;
    planned_ = asked_;
    if (!form_->held()) { // axes keep their range while a knob is held
        axisTop_ = contextAxisTop(*answer);
    }
    form_->setAnswer(*answer, axisTop_);
    updateAll();
    updateBusy();
    if (answer->complete && isVisible()) {
        emit priced(tr("%1 sets and %2 limits priced in %3 s")
                        .arg(answer->sets.size())
                        .arg(answer->sets.size())
                        .arg(seconds, 0, 'f', 2));
    }
}

/// The form stays where the model can be planned: one choice may need another one, which is made next.
void PlannerView::sayFailure(const QString& error) {
    panel_->widget()->hide(); // nothing is offered for a plan that does not exist
    panelFacts_->setText({});
    const QString words = tr("There is no plan of this: %1").arg(error);
    if (answer_ && planned_.model() == draft_.model() && planned_.workload() == draft_.workload()) {
        topStart_->setEnabled(false);
        showError(tr("%1. The plan before it is shown").arg(words));
        return;
    }
    answer_.reset();
    showEmpty(words);
}

void PlannerView::updateBusy() {
    const bool shown = job_->busy() && !busyDelay_.isActive();
    cancel_->setVisible(shown);
    const bool begun = answer_ && !answer_->complete;
    const auto lineMissing = [](const engine::WhatIfSet& set) { return !set.lineKnown; };
    QString facts;
    if (!job_->busy()) {
        facts = begun ? tr("stopped: not all is known") : QString();
    } else if (shown && begun && std::ranges::any_of(answer_->sets, lineMissing)) {
        facts = tr("searching the longest contexts");
    } else if (shown && begun && !answer_->changesKnown) {
        facts = tr("searching changes that fit");
    } else if (shown) {
        facts = tr("pricing");
    }
    header()->setFacts(facts);
}

void PlannerView::updateAll() {
    if (!answer_) {
        return;
    }
    showEmpty({});
    panel_->widget()->show();
    updateBudget();
    updateCurves();
    updateTables();
    updateVerdict();
    updateChanges();
    updateGoal();
    updatePast();
    updateTwin();
}

void PlannerView::updateBudget() {
    const engine::PlanPrice& price = answer_->set().price;
    std::vector<BudgetShare> parts = sharesOf(price);
    const std::uint64_t held =
        std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const BudgetShare& part) { return sum + part.bytes; });
    PlanBudgetPicture picture{std::move(parts), held, price.budget, band().share, 0, 0};
    picture.slope = answer_->set().line.slope().reserved;
    const double grows = picture.slope * static_cast<double>(answer_->context);
    picture.fixed = static_cast<std::uint64_t>(std::max(static_cast<double>(picture.reserved) - grows, 0.0));
    budget_->setPicture(std::move(picture));
    const QString peak =
        QStringLiteral("%1 \u00B1%2")
            .arg(gibText(price.reserved),
                 gibText(static_cast<std::uint64_t>(static_cast<double>(price.reserved) * band().share)));
    const QString of = tr("%1 of %2").arg(peak, bytesText(price.budget));
    budgetFacts_->setText(price.place.empty()
                              ? tr("set %1: %2").arg(answer_->chosen + 1).arg(of)
                              : tr("set %1, %2: %3").arg(answer_->chosen + 1).arg(textOf(price.place), of));
}

void PlannerView::updateCurves() {
    PlanPicture picture;
    for (std::size_t i = 0; i < answer_->sets.size(); ++i) {
        picture.curves.push_back(curveOf(answer_->sets[i], i == answer_->chosen));
    }
    picture.device = static_cast<double>(answer_->set().price.budget) / kGibibyte;
    picture.context = answer_->context;
    picture.axisTop = axisTop_;
    picture.band = band().share;
    picture.beside = answer_->changed;
    bars_->setPicture(picture);
    curves_->setPicture(std::move(picture));
    curveFacts_->setText(tr("%1; circles: the longest context that fits").arg(numbersText(draft_)));
    barFacts_->setText(tr("same axis as above; ratio to set 1"));
}

void PlannerView::updateTables() {
    setsTitle_->setText(tr("Sets at %1 tokens").arg(countText(answer_->context)));
    sets_->setTable(planSetTable(*answer_));
    setLook_->setChosen(static_cast<int>(answer_->chosen));
    sets_->view()->selectRow(static_cast<int>(answer_->chosen));
    facts_->setTable(planFactTable(*answer_, band()));
    const FlatTreePtr slopes = planSlopeTable(*answer_);
    slopes_->setTable(slopes);
    slopes_->setVisible(!slopes->nodes.empty());
    slopesHead_->setVisible(!slopes->nodes.empty());
    factsSet_->setText(tr("set %1").arg(answer_->chosen + 1));
    slopesLine_->setText(tr("slope of line %1").arg(answer_->chosen + 1));
}

QString PlannerView::verdict() const {
    return answer_ ? verdictText(answer_->set(), band()) : QString();
}

void PlannerView::updateVerdict() {
    const engine::PlanPrice& price = answer_->set().price;
    const PlanVerdict verdict = planVerdict(price, band());
    mark_->setText(verdict == PlanVerdict::DoesNotFit ? QStringLiteral("\u2715") : QStringLiteral("\u2713"));
    mark_->setColor(verdict == PlanVerdict::Fits    ? TextColor::Good
                    : verdict == PlanVerdict::Tight ? TextColor::Warn
                                                    : TextColor::Bad);
    sentence_->setText(this->verdict());
    reason_->setText(verdictReason(answer_->set(), band()));
    panelFacts_->setText(tr("%1, %2 usable").arg(device_->currentText(), bytesText(price.budget)));
    const bool stops = verdict == PlanVerdict::DoesNotFit;
    topSentence_->setText(this->verdict());
    topSentence_->setColor(stops ? TextColor::Bad : TextColor::Text1);
    fit();
    stops_->setVisible(stops);
    stops_->setText(price.place.empty() ? tr("The run will stop when memory runs out.")
                                        : tr("The run will stop before or in %1.").arg(textOf(price.place)));
    const RunController* runs = context().runs;
    start_->setEnabled(runs != nullptr && !runs->running());
    topStart_->setEnabled(start_->isEnabled());
}

void PlannerView::updateChanges() {
    const bool any = answer_->changed < answer_->sets.size();
    changesTitle_->setText(any ? tr("What would make set %1 fit").arg(answer_->changed + 1)
                               : tr("What would make it fit"));
    if (!any) {
        changes_->clear();
        changesFacts_->setText(answer_->changesKnown ? tr("all sets fit") : tr("searching"));
        note_->hide();
        return;
    }
    const engine::WhatIfSet& set = answer_->sets[answer_->changed];
    const engine::Experiment experiment = engine::edited(draft_.toPlan(), set.spec.edits);
    changesFacts_->setText(tr("%1 over").arg(bytesText(static_cast<std::uint64_t>(std::abs(set.price.spare())))));
    changes_->setChanges(answer_->changes, experiment, set.price);
    const bool fits = std::ranges::any_of(answer_->changes, [](const auto& change) { return change.price.fits; });
    note_->setText(!answer_->changesKnown ? tr("pricing single changes, then pairs")
                   : fits                 ? QString()
                                          : tr("No change and no pair of changes fits, on no device that is known."));
    note_->setVisible(!note_->text().isEmpty());
}

void PlannerView::updateGoal() {
    const QString facts = goalFacts(*answer_);
    goalHead_->setVisible(!facts.isEmpty());
    goal_->setVisible(!facts.isEmpty());
    goalFacts_->setText(facts);
    goal_->setText(goalText(*answer_, draft_.experiment()));
}

void PlannerView::updateTwin() {
    if (answer_ && header()->tableShown()) {
        twinModel()->setTree(planContextTable(*answer_, axisTop_));
    }
}

void PlannerView::clickSet(int set, int column) {
    constexpr int kWhere = 3;
    takeSet(set);
    if (answer_ && column == kWhere && set >= 0 && set < static_cast<int>(answer_->sets.size())) {
        openStepOf(answer_->sets[static_cast<std::size_t>(set)].price.place);
    }
}

void PlannerView::takeSet(int set) {
    if (!answer_ || set < 0 || set >= static_cast<int>(answer_->sets.size())) {
        return;
    }
    touched_ = true;
    PlanDraft draft = draft_;
    draft.edit(answer_->sets[static_cast<std::size_t>(set)].spec.edits);
    setDraft(std::move(draft));
}

void PlannerView::tryChange(int row) {
    if (!answer_ || row < 0 || row >= static_cast<int>(answer_->changes.size()) ||
        answer_->changed >= answer_->sets.size()) {
        return;
    }
    touched_ = true;
    before_ = draft_;
    PlanDraft draft = draft_;
    draft.edit(answer_->sets[answer_->changed].spec.edits);
    draft.edit(answer_->changes[static_cast<std::size_t>(row)].edits);
    setDraft(std::move(draft));
    setReadout(tr("X brings back the plan before this change"));
}

QString PlannerView::copyText() const {
    return header()->tableShown() ? shownText() : answer_ ? verdict() + QLatin1Char('\n') + sets_->asText() : QString();
}

} // namespace vitrine::ui
