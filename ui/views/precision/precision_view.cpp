// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/precision_view.h"

#include <QCheckBox>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QPushButton>
#include <QScrollArea>
#include <QStackedWidget>
#include <QTableView>
#include <algorithm>

#include "engine/workload/experiment/experiment.h"
#include "ui/models/common/format.h"
#include "ui/models/finetune/training_text.h"
#include "ui/models/precision/precision_tables.h"
#include "ui/views/precision/keep_panel.h"
#include "ui/views/precision/lab_head.h"
#include "ui/views/precision/lab_panel.h"
#include "ui/views/precision/lab_text_pane.h"
#include "ui/widgets/plots/expert_strip.h"
#include "ui/widgets/plots/group_grid.h"
#include "ui/widgets/plots/group_strip.h"
#include "ui/widgets/plots/histogram_lane.h"
#include "ui/widgets/plots/scored_text.h"

namespace vitrine::ui {

namespace {

const std::string kLabWorkload = "precision";

} // namespace

void PrecisionView::connectParts() {
    for (PlotWidget* plot : std::initializer_list<PlotWidget*>{map_, histogram_, strip_, grid_, text(), experts()}) {
        connect(plot, &PlotWidget::readoutChanged, this, [this](const QString& words) { setReadout(words); });
    }
    connect(measures_, &SegmentedControl::currentChanged, this, [this] { updateAll(); });
    connect(layouts_, &SegmentedControl::currentChanged, this, [this] { updateMap(); });
    connect(numbers_, &QCheckBox::toggled, this, [this] { updateMap(); });
    connect(panes_, &SegmentedControl::currentChanged, this, &PrecisionView::showPane);
    connect(map_, &HeatMap::cellChosen, this, &PrecisionView::chooseCell);
    connect(map_, &HeatMap::rowChosen, this,
            [this](int row) { chooseCell(row, map_->selected() ? map_->selected()->second : 0); });
    connect(map_, &HeatMap::columnChosen, this,
            [this](int column) { chooseCell(map_->selected() ? map_->selected()->first : 0, column); });
    connect(strip_, &GroupStrip::groupChosen, this, &PrecisionView::askGroup);
    connect(experts(), &ItemPlot::itemClicked, this, [this](int expert) {
        const PrecisionCell& cell = cells_.cell(roleOf(*weight_), data_->result.weights[*weight_].layer);
        selectWeight(cell.weights[static_cast<std::size_t>(expert)]);
    });
    connect(worst_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& row) {
        if (const FlatNode* node = worstModel_->node(row); node != nullptr && !choosing_) {
            askGroup(static_cast<std::int64_t>(node->key));
        }
    });
    connect(formats_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& row) {
        if (!choosing_ && row.isValid() && !QGuiApplication::keyboardModifiers().testFlag(Qt::ShiftModifier)) {
            setFormats(static_cast<std::size_t>(row.row()), b_);
        }
    });
    connect(formats_, &QTableView::clicked, this, [this](const QModelIndex& row) {
        if (QGuiApplication::keyboardModifiers().testFlag(Qt::ShiftModifier)) {
            setFormats(a_, static_cast<std::size_t>(row.row()));
        }
    });
    connect(text(), &ScoredText::tokenOpened, this, &PrecisionView::openToken);
    connect(textPane_, &LabTextPane::scoresWanted, this,
            [this] { wantAfter([](const std::string& spec) { return scoreExperiment(spec, kTokensToScore); }); });
    connect(keep()->measureButton(), &QPushButton::clicked, this, [this] {
        wantAfter([&](const std::string& spec) { return measureExperiment(spec, keep()->checkedPatterns()); });
    });
    connect(keep()->convertButton(), &QPushButton::clicked, this,
            [this] { emit experimentWanted(convertExperiment(*data_, a_, keep()->checkedPatterns())); });
    connect(panel_->effectsButton(), &QPushButton::clicked, this, [this] { wantAfter(keepEffectsExperiment); });
}

void PrecisionView::setTensorSource(TensorSource source) {
    delete reader_;
    reader_ = new TensorReader(std::move(source), this);
    connect(reader_, &TensorReader::tensorRead, this, &PrecisionView::takeTensor);
    connect(reader_, &TensorReader::formatsRead, this, [this](const std::shared_ptr<const PrecisionTensor>& tensor) {
        if (tensor_ && tensor->error.isEmpty()) {
            tensor_ = tensor;
            panel_->showTensor(tensor.get(), formatTitle(a_));
            panel_->showPinnable(shownPin());
        }
    });
    connect(reader_, &TensorReader::groupRead, this, [this](const std::shared_ptr<const PrecisionGroup>& group) {
        if (!group->error.isEmpty()) {
            showError(group->error);
            return;
        }
        showGroup({group, &group->detail});
    });
    askTensor();
}

KeepPanel* PrecisionView::keep() const {
    return panel_->keep();
}

ExpertStrip* PrecisionView::experts() const {
    return panel_->experts();
}

ScoredText* PrecisionView::text() const {
    return textPane_->text();
}

TokenReadout* PrecisionView::tokenReadout() const {
    return textPane_->readout();
}

const sessions::RunInfo* PrecisionView::labRun() const {
    if (document() == nullptr || !document()->isOpen()) {
        return nullptr;
    }
    const sessions::RunInfo* found = nullptr;
    for (const sessions::RunInfo& run : document()->runs()) {
        if (run.workload == kLabWorkload && (run.id == runA() || found == nullptr || found->id != runA())) {
            found = &run; // run A where it is one, else the newest
        }
    }
    return found;
}

void PrecisionView::refresh() {
    const sessions::RunInfo* run = labRun();
    Source source;
    if (run != nullptr) {
        source = {document()->path(), run->id, run->status, std::hash<std::string>()(run->metricsJson),
                  document()->runs().size()};
    }
    if (run != nullptr && source == source_) {
        return; // another run of the session has changed
    }
    source_ = source;
    dataJob_.cancel();
    if (run == nullptr) {
        takeData(nullptr);
        return;
    }
    // Many thousand weights are a long JSON: it is read on a worker.
    dataJob_.start([run = *run, all = document()->runs()] { return precisionData(run, all); },
                   ifStill(source_, [this](PrecisionDataPtr data) { takeData(std::move(data)); }));
}

/// Whether the data are those of the same run with more in them.
bool PrecisionView::grows(const PrecisionDataPtr& data) const {
    return data && data_ && data_->live && shownRun_ == source_.run &&
           data->result.weights.size() == data_->result.weights.size() &&
           data->result.formats.size() == data_->result.formats.size();
}

/// What is looked at stays.
void PrecisionView::takeGrown(PrecisionDataPtr data) {
    data_ = std::move(data);
    const std::size_t before = a_;
    if (!ownFormats_) {
        a_ = data_->live ? formatInWork(data_->result) : firstFormat(data_->result);
    }
    if (!data_->live && !weight_) {
        weight_ = worstWeightOf(data_->result, a_, cells_); // one looks at the worst first
    }
    updateAll();
    if (a_ != before || !tensor_) {
        askTensor();
        emit availabilityChanged();
    }
}

void PrecisionView::takeData(PrecisionDataPtr data) {
    if (grows(data)) {
        takeGrown(std::move(data));
        return;
    }
    data_ = std::move(data);
    shownRun_ = source_.run;
    ownFormats_ = false;
    panel_->unpin();
    wantedToken_.reset();
    weight_.reset();
    lastExpert_.clear();
    reader_->cancel();
    tensor_.reset();
    showError({});
    if (!data_) {
        cells_ = {};
        sayWhyEmpty(labRun());
        panel_->clear();
        map_->setContent({});
        clearTensor({}, false);
        emit availabilityChanged();
        return;
    }
    showEmpty({});
    cells_ = precisionMap(data_->result);
    b_ = 0;
    a_ = data_->live ? formatInWork(data_->result) : firstFormat(data_->result);
    if (!data_->live) { // of a live run the worst is not known yet, and its files are busy
        weight_ = worstWeightOf(data_->result, a_, cells_); // one looks at the worst first
    }
    updateAll();
    askTensor();
    emit availabilityChanged();
}

void PrecisionView::sayWhyEmpty(const sessions::RunInfo* run) {
    if (run != nullptr) {
        showEmpty(run->status == sessions::RunStatus::Running
                      ? tr("The run reads the model. The map appears with its first matrix.")
                      : tr("This run kept no comparison of weights."),
                  tr("Compare again"), [this, spec = run->specJson] { emit experimentWanted(textOf(spec)); });
        return;
    }
    const sessions::RunInfo* shown = runInfo(runA());
    const auto experiment = shown != nullptr ? engine::Experiment::read(shown->specJson) : std::nullopt;
    const std::string model = experiment && experiment->has("model") ? experiment->text("model") : std::string();
    if (model.empty()) {
        showEmpty(tr("No weights were compared in this session."), tr("Prepare a run"),
                  [this] { emit openView(QStringLiteral("run")); });
        return;
    }
    const auto comparison = experimentComparing(*shown); // of a model that was trained for a format
    showEmpty(tr("One format in this session."), tr("Compare with BF16"),
              [this, experiment = comparison ? textOf(*comparison) : labExperiment(model)] {
                  emit experimentWanted(experiment);
              });
}

ErrorMeasure PrecisionView::measure() const {
    return static_cast<ErrorMeasure>(measures_->current());
}

bool PrecisionView::expertsShown() const {
    return layouts_->current() == 1;
}

const ErrorScale& PrecisionView::scale() {
    const std::pair<QString, int> key(document() != nullptr ? document()->path() : QString(), measures_->current());
    if (data_->live) { // the range is not known before the end
        return liveScale_ = sessionScale(data_->result, cells_, measure());
    }
    const auto found = scales_.find(key);
    return found != scales_.end() ? found->second
                                  : scales_.emplace(key, sessionScale(data_->result, cells_, measure())).first->second;
}

std::size_t PrecisionView::roleOf(std::size_t weight) const {
    const auto role = std::ranges::find(cells_.roles, data_->result.weights[weight].role);
    return static_cast<std::size_t>(role - cells_.roles.begin());
}

QString PrecisionView::formatTitle(std::size_t format) const {
    return QString::fromStdString(data_->result.formats[format].title);
}

void PrecisionView::setFormats(std::size_t a, std::size_t b) {
    const std::size_t count = data_ ? data_->result.formats.size() : 0;
    if (a >= count || b >= count || (a == a_ && b == b_)) {
        return;
    }
    if (a == b) { // a format is not compared with itself: they change places
        (a == a_ ? a : b) = a == a_ ? b_ : a_;
    }
    ownFormats_ = true;
    const bool other = a != a_;
    a_ = a;
    b_ = b;
    updateAll();
    if (other) {
        askTensor();
        emit availabilityChanged(); // the tool bar has the rule of the format
    }
}

void PrecisionView::flip() {
    setFormats(b_, a_);
}

void PrecisionView::chooseCell(int row, int column) {
    if (!data_ || !map_->content().has(row, column)) {
        return;
    }
    const std::size_t role = expertsShown() && weight_ ? roleOf(*weight_) : static_cast<std::size_t>(row);
    const PrecisionCell& cell = cells_.cell(role, column);
    if (cell.weights.empty()) {
        setReadout(cellWords(data_->result, cells_, measure(), a_, role, column));
        return;
    }
    std::optional<std::size_t> wanted;
    if (expertsShown()) {
        wanted = cell.weights[std::min(static_cast<std::size_t>(row), cell.weights.size() - 1)];
    } else if (const auto last = lastExpert_.find(column); last != lastExpert_.end()) {
        const auto same = std::ranges::find_if(
            cell.weights, [&](std::size_t w) { return data_->result.weights[w].expert == last->second; });
        wanted = same != cell.weights.end() ? std::optional(*same) : std::nullopt;
    }
    if (!wanted) {
        wanted = worstWeightOf(data_->result, a_, cell);
    }
    if (wanted) {
        selectWeight(*wanted);
    }
}

void PrecisionView::selectWeight(std::size_t weight) {
    if (!data_ || weight >= data_->result.weights.size()) {
        return;
    }
    const bool otherRole = !weight_ || data_->result.weights[*weight_].role != data_->result.weights[weight].role;
    weight_ = weight;
    if (const engine::LabWeight& looked = data_->result.weights[weight]; looked.expert >= 0) {
        lastExpert_[looked.layer] = looked.expert;
    }
    if (otherRole && expertsShown()) {
        updateMap();
    }
    updateWeight();
    setReadout(map_->spoken());
    askTensor();
}

void PrecisionView::askTensor() {
    tensor_.reset();
    if (!data_ || !weight_) {
        clearTensor({}, false);
    } else if (a_ == 0) {
        clearTensor(tr("BF16 is the reference: it has no error"), false);
    } else if (awaited(data_->result, a_, *weight_)) {
        clearTensor(tr("%1 is not measured yet").arg(formatTitle(a_)), false);
    } else if (!data_->result.effect(a_, *weight_).packable) {
        clearTensor(tr("%1 has no groups for this shape").arg(formatTitle(a_)), false);
    } else {
        clearTensor({}, false);
        reader_->askTensor(data_, *weight_, a_);
        return;
    }
    reader_->cancel();
}

void PrecisionView::askGroup(std::int64_t group) {
    if (data_ && weight_ && a_ != 0) {
        reader_->askGroup(data_, *weight_, a_, group);
    }
}

bool PrecisionView::settled() const {
    return DocumentView::settled() && !dataJob_.busy() && !reader_->busy() && strip_->settled();
}

QList<QWidget*> PrecisionView::bodyStops() const {
    QList<QWidget*> stops{map_, histogram_, strip_};
    for (QWidget* part : std::initializer_list<QWidget*>{worst_, grid_, text(), formats_}) {
        if (part->isVisibleTo(this)) {
            stops << part;
        }
    }
    return stops;
}

void PrecisionView::resizeEvent(QResizeEvent* event) {
    DocumentView::resizeEvent(event);
    placeParts();
}

void PrecisionView::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Space && event->modifiers() == Qt::NoModifier && data_) {
        flip();
        return;
    }
    DocumentView::keyPressEvent(event);
}

} // namespace vitrine::ui
