// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/finetune_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QPushButton>
#include <QShortcut>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "engine/workload/precision/precision_format.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/data_text.h"
#include "ui/models/finetune/training_text.h"
#include "ui/views/finetune/answer_table.h"
#include "ui/views/finetune/data_inspector.h"
#include "ui/views/finetune/data_page.h"
#include "ui/views/finetune/finetune_form.h"
#include "ui/views/finetune/finetune_panel.h"
#include "ui/views/finetune/live_lanes.h"
#include "ui/views/finetune/step_page.h"
#include "ui/views/run/fit_line.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/option_form.h"
#include "ui/widgets/plots/fact_strip.h"
#include "ui/widgets/plots/token_grid.h"
#include "ui/widgets/timeline/lane_stack.h"
#include "ui/widgets/timeline/lanes.h"
#include "ui/widgets/timeline/mark_strip.h"
#include "ui/widgets/timeline/part_strip.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

namespace {

constexpr double kSmoothings[] = {0, 0.6, 0.9, 0.98, 0.998};
constexpr int kUsualSmoothing = 2;
constexpr std::chrono::milliseconds kRefreshEvery{100};
QStackedWidget* stackOf(QWidget* first, QWidget* second) {
    auto* stack = new QStackedWidget;
    stack->addWidget(first);
    stack->addWidget(second);
    return stack;
}

/// Takes texts while the page is the one that is seen.
template <typename F> auto whileShown(const QWidget* page, F take) {
    return [page, take = std::move(take)](const QString& text) {
        if (page->isVisible()) {
            take(text);
        }
    };
}

} // namespace

FinetuneView::FinetuneView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("fine-tune"), tr("Fine-tune"), context, parent), time_(new TimeCursor(this)),
      panel_(new FinetunePanel), job_(this), pace_(kRefreshEvery, [this] { refresh(); }, this) {
    body_ = new QStackedWidget(this);
    form_ = new FinetuneForm(context, body_);
    buildHeader();
    body_->addWidget(form_);
    buildData();
    buildLive();
    buildStep();
    setBody(body_);
    makeTwin(tr("Steps of the run"));
    connect(form_, &FinetuneForm::failed, this, [this](const QString& sentence) { showError(sentence); });
    connect(form_, &FinetuneForm::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(panel_, &FinetunePanel::continueWanted, this,
            [this](qint64 step, bool branch) { continueFrom(step, branch, {}, {}); });
    connect(panel_, &FinetunePanel::branchWanted, this,
            [this](qint64 step, const QString& key, const QString& value) { continueFrom(step, true, key, value); });
    connect(panel_, &FinetunePanel::planKnown, lanes_, &LiveLanes::setPlan);
    connect(panel_, &FinetunePanel::outlineWanted, lanes_, &LiveLanes::setOutline);
    connect(header(), &ViewHeader::tableToggled, this, &FinetuneView::updateTwin);
    connect(twin(), &QTableView::activated, this,
            [this](const QModelIndex& index) { data_->showNode(page() == Data ? twinModel()->node(index) : nullptr); });
    connect(time_, &TimeCursor::cursorChanged, this, [this] {
        updateFacts();
        lanes_->updateMarks();
        shareCursor();
    });
    connect(time_, &TimeCursor::rangeChanged, this, [this] {
        if (placing_) {
            return;
        }
        placed_ = false; // somebody looks elsewhere
        const QSignalBlocker quiet(follow_);
        follow_->setChecked(false);
    });
    connectRuns();
    for (const int direction : {-1, 1}) {
        auto* turn = new QShortcut(direction > 0 ? Qt::CTRL | Qt::Key_PageDown : Qt::CTRL | Qt::Key_PageUp, this);
        turn->setContext(Qt::WidgetWithChildrenShortcut);
        connect(turn, &QShortcut::activated, this,
                [this, direction] { showPage(static_cast<Page>(std::clamp<int>(page() + direction, Form, Step))); });
    }
    showPage(Form);
    followDocument();
}

void FinetuneView::buildHeader() {
    pages_ = header()->addSegments({tr("Form"), tr("Data"), tr("Live"), tr("Step")}, tr("Page"));
    ranges_ = header()->addSegments({tr("So far"), tr("Last 100"), tr("All")}, tr("Steps that are shown"));
    follow_ = header()->addCheck(tr("Follow"), true);
    follow_->setToolTip(tr("The newest step stays in sight while the run goes on"));
    plan_ = header()->addCheck(tr("Plan"), true);
    plan_->setToolTip(tr("What the planner says of this run, over its memory"));
    smoothing_ = header()->addCombo(tr("Smoothing of the loss"));
    for (const double share : kSmoothings) {
        smoothing_->addItem(share > 0 ? tr("Smoothing %1").arg(share) : tr("Not smoothed"), share);
    }
    smoothing_->setCurrentIndex(kUsualSmoothing);
    run_ = new QPushButton(icon(QStringLiteral("run")), tr("Run"), this);
    setPrimary(run_);
    setControlHeight(run_, 24);
    fitBox_ = new QWidget(header());
    auto* fit = new QHBoxLayout(fitBox_);
    fit->setContentsMargins(0, 0, 0, 0);
    fit->setSpacing(8);
    fit->addWidget(form_->fit()->sentence());
    fit->addWidget(form_->fit()->whyButton());
    save_ = new QPushButton(tr("Save checkpoint"), this);
    setControlHeight(save_, 24);
    connect(save_, &QPushButton::clicked, this, [this] {
        context().runs->saveCheckpoint();
        setReadout(tr("A checkpoint is saved after this step"));
    });
    header()->addRightControl(fitBox_);
    try_ = new QPushButton(tr("Try the adapter"), this);
    try_->setToolTip(tr("Opens the Run view with the model and what this run has saved"));
    setControlHeight(try_, 24);
    connect(try_, &QPushButton::clicked, this, [this] {
        const sessions::RunInfo* shown = runInfo(shownRun_);
        if (const auto experiment = shown != nullptr ? experimentTrying(*shown) : std::nullopt) {
            emit experimentWanted(QString::fromStdString(*experiment));
        }
    });
    compare_ = new QPushButton(tr("Compare formats"), this);
    setControlHeight(compare_, 24);
    connect(compare_, &QPushButton::clicked, this, [this] {
        const sessions::RunInfo* shown = runInfo(shownRun_);
        if (const auto experiment = shown != nullptr ? experimentComparing(*shown) : std::nullopt) {
            emit experimentWanted(QString::fromStdString(*experiment));
        }
    });
    header()->addRightControl(try_);
    header()->addRightControl(compare_);
    header()->addRightControl(save_);
    header()->addRightControl(run_);
    connect(pages_, &SegmentedControl::currentChanged, this, [this](int index) { showPage(static_cast<Page>(index)); });
    connect(ranges_, &SegmentedControl::currentChanged, this, &FinetuneView::applyRange);
    connect(follow_, &QCheckBox::toggled, this, [this](bool on) {
        if (on) {
            applyRange();
        }
    });
    connect(plan_, &QCheckBox::toggled, this, [this](bool on) { lanes_->setPlanShown(on); });
    connect(smoothing_, &QComboBox::currentIndexChanged, this, [this] { refresh(); });
    connect(run_, &QPushButton::clicked, this, [this] { running() ? stop() : start(); });
}

void FinetuneView::buildData() {
    data_ = new DataPage(context(), form_->form(), body_);
    body_->addWidget(data_);
    inspectors_ = stackOf(data_->inspector(), panel_);
    inspectorHeads_ = stackOf(data_->inspectorHeader(), panel_->header());
    connect(data_, &DataPage::readoutChanged, this, whileShown(data_, [this](const QString& t) { setReadout(t); }));
    connect(data_, &DataPage::failed, this, whileShown(data_, [this](const QString& t) { showError(t); }));
    connect(data_, &DataPage::tableWanted, header(), &ViewHeader::setTableShown);
    connect(data_, &DataPage::startWanted, this, &FinetuneView::start);
    connect(data_, &DataPage::loaded, this, &FinetuneView::inspectorWanted);
}

void FinetuneView::buildLive() {
    auto* page = new Surface(Surface::Fill::Canvas, Surface::None, body_);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    facts_ = new FactStrip(tr("Form"), tr("Copy to form"), page);
    connect(facts_->link(), &QPushButton::clicked, this, [this] {
        if (const sessions::RunInfo* run = runInfo(shownRun_)) {
            takeExperiment(textOf(run->specJson));
        }
    });
    live_ = new QStackedWidget(page);
    lanes_ = new LiveLanes(time_, live_);
    answers_ = new AnswerTable(page);
    nothing_ = new EmptyState(live_);
    live_->addWidget(lanes_->stack());
    live_->addWidget(nothing_);
    column->addWidget(facts_);
    column->addWidget(live_, 1);
    column->addWidget(answers_);
    body_->addWidget(page);
    connect(lanes_->stack(), &LaneStack::axisChanged, this, &FinetuneView::updateAnswers);
    connect(lanes_, &LiveLanes::factsChanged, this, &FinetuneView::updateFacts);
    connect(lanes_, &LiveLanes::checkpointClicked, panel_, &FinetunePanel::choose);
    connect(lanes_, &LiveLanes::answersClicked, answers_, &AnswerTable::show);
    connect(answers_, &AnswerTable::chosen, this,
            [this] { lanes_->setShownAnswers(answers_->leftStep(), answers_->rightStep()); });
    connect(answers_, &AnswerTable::promptsWanted, this, [this] {
        showPage(Form);
        if (QWidget* editor = form_->fields()->editor(QStringLiteral("sample_prompts"))) {
            form_->fields()->ensureWidgetVisible(editor);
            editor->setFocus();
        }
    });
}

void FinetuneView::connectRuns() {
    RunController* runs = context().runs;
    if (runs == nullptr) {
        return;
    }
    connect(runs, &RunController::started, this, [this](qint64 run) {
        startedRun_ = started_ ? run : 0;
        started_ = false;
        updateButtons();
        onRuns();
    });
    connect(runs, &RunController::refused, this, [this](const QString& error) {
        if (started_) {
            showError(error);
        }
        started_ = false;
        updateButtons();
    });
    connect(runs, &RunController::progress, this, [this](const QString& what, quint64, quint64) {
        if (page() == Live && (training_ == nullptr || training_->empty())) {
            setReadout(what);
        }
    });
    connect(runs, &RunController::ended, this, [this](const QString&, const QString& error, const QString&) {
        if (started_) { // it ended before it began
            showError(error);
            started_ = false;
        }
        updateButtons();
    });
}

QWidget* FinetuneView::inspector() {
    return inspectors_;
}

QWidget* FinetuneView::inspectorHeader() {
    return inspectorHeads_;
}

bool FinetuneView::wantsInspector() const {
    return page() == Live || page() == Step || (page() == Data && data_->hasData());
}

QString FinetuneView::find(const QString& text, int direction) {
    return page() == Data ? data_->find(text, direction) : DocumentView::find(text, direction);
}

QList<LaneStack*> FinetuneView::laneStacks() const {
    return page() == Live   ? QList<LaneStack*>{lanes_->stack()}
           : page() == Step ? step_->laneStacks()
                            : QList<LaneStack*>();
}

QList<QWidget*> FinetuneView::bodyStops() const {
    switch (page()) {
    case Form:
        return form_->stops();
    case Data:
        return data_->stops();
    case Live:
        return lanes_->stack()->focusStops() << answers_->view();
    default:
        return step_->stops();
    }
}

FinetuneView::Page FinetuneView::page() const {
    return static_cast<Page>(pages_->current());
}

void FinetuneView::showPage(Page page) {
    pages_->setCurrent(page);
    body_->setCurrentIndex(page);
    header()->setTableShown(false);
    for (QWidget* control : {static_cast<QWidget*>(ranges_), static_cast<QWidget*>(follow_),
                             static_cast<QWidget*>(plan_), static_cast<QWidget*>(smoothing_)}) {
        control->setVisible(page == Live);
    }
    step_->showControls(page == Step);
    fitBox_->setVisible(page == Form);
    header()->setTableButton(page != Form);
    for (QStackedWidget* stack : {inspectors_, inspectorHeads_}) {
        stack->setCurrentIndex(std::max(0, static_cast<int>(page) - Data));
    }
    showRunError();
    updateButtons();
    updateStep();
    page == Step ? setReadout(step_->readout()) : updateFacts();
    emit inspectorWanted();
    emit availabilityChanged();
}

bool FinetuneView::running() const {
    return context().runs != nullptr && context().runs->running();
}

void FinetuneView::start() {
    started_ = true;
    if (!form_->start(sessionFolder_)) {
        started_ = false;
        if (page() != Form && !running()) {
            showPage(Form);
        }
        return;
    }
    follow_->setChecked(true);
    showPage(Live);
}

void FinetuneView::stop() {
    if (running()) {
        context().runs->stop();
        setReadout(tr("Stopping the run"));
    }
}

void FinetuneView::updateButtons() {
    const bool can = context().runs != nullptr, stops = running();
    run_->setVisible(page() == Form || stops);
    run_->setText(stops ? tr("Stop") : tr("Run"));
    run_->setIcon(icon(stops ? QStringLiteral("stop") : QStringLiteral("run"), themeTokens().onAccent));
    run_->setEnabled(can);
    const sessions::RunInfo* shown = page() == Live && stops && live(shownRun_) ? runInfo(shownRun_) : nullptr;
    save_->setVisible(shown != nullptr);
    save_->setEnabled(shown != nullptr && experimentFrom(*shown, 1, false).has_value());
    save_->setToolTip(save_->isEnabled() ? tr("After the step that goes on; the run goes on too")
                                         : tr("The run has no output folder"));
    const sessions::RunInfo* ended = page() == Live && !stops ? runInfo(shownRun_) : nullptr;
    try_->setVisible(ended != nullptr && experimentTrying(*ended).has_value());
    updateComparing(ended);
    data_->refreshRuns();
    run_->setToolTip(!can    ? tr("Nothing can be started here")
                     : stops ? tr("What was recorded is kept")
                             : tr("Ctrl+Return"));
}

void FinetuneView::updateComparing(const sessions::RunInfo* ended) {
    const std::string format = ended != nullptr ? formatTrainedFor(*ended) : std::string();
    compare_->setVisible(!format.empty());
    compare_->setEnabled(!format.empty() && experimentComparing(*ended).has_value());
    compare_->setToolTip(compare_->isEnabled()
                             ? tr("Compares the saved model in BF16 and in %1, in the Precision lab")
                                   .arg(textOf(engine::precisionFormat(format).title))
                             : tr("The run saved no whole model: it has no output folder, or its adapter "
                                  "was not merged"));
}

bool FinetuneView::settled() const {
    return !job_.busy() && !pace_.waiting() && panel_->settled() && step_->settled() && form_->fit()->settled() &&
           (page() != Data || data_->settled()) && DocumentView::settled();
}

void FinetuneView::activated() {
    DocumentView::activated();
    updateButtons();
    const std::array<QWidget*, 4> first{form_->fields(), data_->grid(), lanes_->loss(), step_->bands()};
    first[page()]->setFocus();
}

bool FinetuneView::perform(const QString& action) {
    if (action == QLatin1String("run.queue") && form_->form()->problem().second.isEmpty()) {
        emit queueWanted(textOf(form_->form()->experimentText()));
        return true;
    }
    if (action == QLatin1String("run.start") && (page() == Form || page() == Data)) {
        start();
        return true;
    }
    if (action == QLatin1String("run.stop")) {
        stop();
        return true;
    }
    if (page() == Live && action == QLatin1String("measure.filter") && lanes_->shownStep()) {
        openStep(training_->steps()[*lanes_->shownStep()].step);
        return true;
    }
    if (page() == Step && action.startsWith(QLatin1String("go.peak"))) {
        step_->showPeak();
        return true;
    }
    if (page() == Live && action.startsWith(QLatin1String("go.peak"))) {
        lanes_->nextPeak();
        return true;
    }
    if (page() == Live && (action == QLatin1String("select.next") || action == QLatin1String("select.previous"))) {
        return lanes_->stepItem(action == QLatin1String("select.next") ? 1 : -1);
    }
    if (page() == Step && (action == QLatin1String("select.next") || action == QLatin1String("select.previous"))) {
        step_->stepItem(action == QLatin1String("select.next") ? 1 : -1);
        return true;
    }
    const bool undo = action == QLatin1String("edit.undo");
    if (page() == Form && (undo || action == QLatin1String("edit.redo"))) {
        undo ? form_->fields()->stack()->undo() : form_->fields()->stack()->redo();
        return true;
    }
    return DocumentView::perform(action);
}

QString FinetuneView::whyNot(const QString& action) const {
    if (action == QLatin1String("run.start") && context().runs == nullptr) {
        return tr("Nothing can be started here");
    }
    if (action == QLatin1String("run.start") && page() == Live) {
        return tr("Open the form first");
    }
    if (action == QLatin1String("edit.undo") && (page() != Form || !form_->fields()->stack()->canUndo())) {
        return tr("Nothing was changed here");
    }
    if (action == QLatin1String("edit.redo") && (page() != Form || !form_->fields()->stack()->canRedo())) {
        return tr("Nothing was undone here");
    }
    return DocumentView::whyNot(action);
}

void FinetuneView::takeExperiment(const QString& experimentJson) {
    showPage(Form);
    showError(form_->take(experimentJson, true));
}

void FinetuneView::takeFolder(const QString& path) {
    form_->takeFolder(path);
    showPage(Form);
}

void FinetuneView::takeData(const QString& path) {
    showPage(Data);
    data_->takeFile(path);
}

void FinetuneView::continueFrom(std::int64_t step, bool branch, const QString& key, const QString& value) {
    const sessions::RunInfo* run = runInfo(shownRun_);
    if (const auto experiment = run != nullptr ? experimentFrom(*run, step, branch) : std::nullopt) {
        takeExperiment(textOf(*experiment));
        if (!key.isEmpty()) {
            form_->fields()->edit(key, value);
        }
        setReadout(branch ? tr("A branch from step %1: change what shall differ, then run it").arg(countText(step))
                          : tr("Goes on from step %1 when it is run").arg(countText(step)));
    }
}

SeriesLane* FinetuneView::lossLane() const {
    return lanes_->loss();
}

StackLane* FinetuneView::memoryLane() const {
    return lanes_->memory();
}

MarkStrip* FinetuneView::marks() const {
    return lanes_->marks();
}

QString FinetuneView::whyText() const {
    return page() == Live   ? panel_->asText() + QStringLiteral("\n\n") + answers_->asText()
           : page() == Data ? data_->whyText()
           : page() == Step ? step_->whyText()
                            : form_->commandText();
}

} // namespace vitrine::ui
