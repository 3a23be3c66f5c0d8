// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Planner view.
#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QTableView>
#include <QVBoxLayout>
#include <utility>

#include "ui/models/common/device_feed.h"
#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"
#include "ui/views/planner/change_list.h"
#include "ui/views/planner/plan_budget.h"
#include "ui/views/planner/plan_curves.h"
#include "ui/views/planner/plan_form.h"
#include "ui/views/planner/plan_tabs.h"
#include "ui/views/planner/planner_view.h"
#include "ui/views/planner/set_delegate.h"
#include "ui/views/run/preset_bar.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/named_combo.h"
#include "ui/widgets/forms/number_slider.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kHeadHeight = 24;

/// A line over a part of the page: what it is, and facts at the right.
QWidget* sectionHead(const QString& title, TextLabel*& facts, QWidget* parent, TextLabel** titleLabel = nullptr) {
    auto* head = new Surface(Surface::Fill::Panel, Surface::Top | Surface::Bottom, parent);
    head->setFixedHeight(kHeadHeight);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(12, 0, 12, 0);
    auto* words = new TextLabel(title, TypeRole::Table, TextColor::Text1, true, head);
    facts = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, head);
    facts->setElide(true);
    facts->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row->addWidget(words);
    row->addWidget(facts, 1);
    if (titleLabel != nullptr) {
        *titleLabel = words;
    }
    return head;
}

QVBoxLayout* plainColumn(QWidget* parent) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

/// Words of several lines; `inset`: with the air of a part of its own.
TextLabel* wrappedWords(QWidget* parent, TextColor color, bool inset) {
    auto* words = new TextLabel({}, TypeRole::Table, color, false, parent);
    words->setWordWrap(true);
    if (inset) {
        words->setContentsMargins(12, 8, 12, 10);
    }
    return words;
}

} // namespace

PlannerView::PlannerView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("planner"), tr("Planner"), context, parent), job_(new PlannerJob(this)),
      pastJob_(this) {
    buildHeader();
    buildBody();
    buildInspector();
    makeTwin(tr("Peak memory of each set over context"));
    delay_.setSingleShot(true);
    delay_.setInterval(40);
    busyDelay_.setSingleShot(true);
    busyDelay_.setInterval(400); // short work says nothing of itself
    connect(&delay_, &QTimer::timeout, this, &PlannerView::ask);
    connect(&busyDelay_, &QTimer::timeout, this, &PlannerView::updateBusy);
    connect(job_, &PlannerJob::found, this, &PlannerView::take);
    connect(job_, &PlannerJob::failed, this, &PlannerView::sayFailure);
    connect(job_, &PlannerJob::busyChanged, this, [this] {
        if (job_->busy()) {
            busyDelay_.start();
        } else {
            busyDelay_.stop();
        }
        updateBusy();
    });
    connect(header(), &ViewHeader::tableToggled, this, &PlannerView::updateTwin);
    if (context.runs != nullptr) {
        connect(context.runs, &RunController::refused, this, [this](const QString& error) {
            if (isVisible()) {
                showError(error);
            }
        });
    }
    connect(&Theme::instance(), &Theme::changed, this, &PlannerView::updateAll); // the bar keeps its colours
    fillChoices();
    followDocument();
}

void PlannerView::buildHeader() {
    const auto addCombo = [this](const QString& name, bool editable) {
        auto* combo = new NamedCombo(name, editable, this);
        combo->setMinimumWidth(96); // long names give way before the header is clipped
        header()->addControl(combo);
        return combo;
    };
    model_ = addCombo(tr("Model"), true);
    model_->setMinimumContentsLength(18);
    device_ = addCombo(tr("Device"), false);
    workload_ = addCombo(tr("Workload"), false);
    model_->addItems(knownModels(context().settingsFile));
    model_->setCurrentText({});
    for (const PlanDevice& device : planDevices()) {
        device_->addItem(device.name, device.id);
    }
    markOwnDevices();
    if (context().devices != nullptr) {
        connect(context().devices, &DeviceFeed::devicesChanged, this, &PlannerView::markOwnDevices);
    }
    for (const auto& [name, title] : PlanDraft::workloads()) {
        workload_->addItem(title, name);
    }
    cancel_ = new QPushButton(tr("Cancel"), this);
    setControlHeight(cancel_, 24);
    cancel_->setVisible(false);
    export_ = new QPushButton(tr("Export"), this);
    setControlHeight(export_, 24);
    auto* menu = new QMenu(export_);
    menu->addAction(tr("Table as CSV"), this, &PlannerView::exportTable);
    menu->addAction(tr("Curves as SVG or PNG"), this, &PlannerView::exportPicture);
    menu->addAction(tr("Command line"), this, &PlannerView::exportCommand);
    export_->setMenu(menu);
    header()->addRightControl(cancel_);
    header()->addRightControl(export_);
    connect(cancel_, &QPushButton::clicked, job_, &PlannerJob::cancel);
    const auto edit = [this](auto change) {
        touched_ = true;
        PlanDraft draft = draft_;
        change(draft);
        setDraft(std::move(draft));
    };
    const auto takeModel = [this, edit] {
        if (const QString model = model_->currentText().trimmed(); model != draft_.model()) {
            edit([&](PlanDraft& draft) { draft.setModel(model); });
        }
    };
    connect(model_, &QComboBox::activated, this, takeModel);
    connect(model_->lineEdit(), &QLineEdit::editingFinished, this, takeModel);
    connect(device_, &QComboBox::activated, this,
            [this, edit] { edit([this](PlanDraft& draft) { draft.setDevice(device_->currentData().toString()); }); });
    connect(workload_, &QComboBox::activated, this, [this, edit] {
        edit([this](PlanDraft& draft) { draft.setWorkload(workload_->currentData().toString()); });
    });
}

void PlannerView::markOwnDevices() {
    if (context().devices == nullptr) {
        return;
    }
    for (const DeviceEntry& entry : context().devices->devices()) {
        const QString id = deviceNamed(entry.name);
        if (const int at = device_->findData(id); !id.isEmpty() && at >= 0) {
            device_->setItemText(at, tr("%1, in this machine").arg(entry.name));
        }
    }
}

void PlannerView::buildBody() {
    auto* scroll = new QScrollArea(this); // a small window shows all of it, part after part
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, scroll);
    QVBoxLayout* column = plainColumn(body);
    form_ = new PlanForm(body);
    curves_ = new PlanCurves(body);
    bars_ = new LimitBars(body);
    budget_ = new PlanBudget(body);
    auto* budgetPage = new Surface(Surface::Fill::Panel, Surface::None, body);
    auto* budgetRow = new QVBoxLayout(budgetPage);
    budgetRow->setContentsMargins(12, 4, 12, 4);
    budgetRow->addWidget(budget_);
    column->addWidget(buildTop(body));
    column->addWidget(form_);
    column->addWidget(sectionHead(tr("Memory at the peak, GiB"), budgetFacts_, body));
    column->addWidget(budgetPage);
    column->addWidget(sectionHead(tr("Peak memory over context, GiB"), curveFacts_, body));
    column->addWidget(curves_, 1);
    column->addWidget(sectionHead(tr("Longest context that fits, tokens"), barFacts_, body));
    column->addWidget(bars_);
    column->addWidget(buildTable(body));
    scroll->setWidget(body);
    setBody(scroll);
    const auto change = [this](auto what) {
        touched_ = true;
        PlanDraft draft = draft_;
        what(draft);
        setDraft(std::move(draft));
    };
    const auto toContext = [change](qint64 tokens) { change([&](PlanDraft& draft) { draft.setContext(tokens); }); };
    connect(form_, &PlanForm::contextChanged, this, toContext);
    connect(curves_, &PlanCurves::contextPicked, this, toContext);
    connect(form_, &PlanForm::numberChanged, this, [change](const QString& key, qint64 value) {
        change([&](PlanDraft& draft) { draft.setNumber(key.toStdString(), value); });
    });
    connect(form_, &PlanForm::choiceChanged, this, [change](const QString& key, const QString& value) {
        change([&](PlanDraft& draft) { draft.setChoice(key.toStdString(), value); });
    });
    connect(form_, &PlanForm::switchChanged, this, [this, change](int row, bool on) {
        const auto specs = engine::planSwitches(draft_.experiment());
        const engine::PlanSwitchSpec& spec = specs[static_cast<std::size_t>(row)];
        change([&](PlanDraft& draft) { draft.edit({on ? spec.on : spec.off}); });
    });
    connect(bars_, &ItemPlot::itemClicked, this, &PlannerView::takeSet);
    connect(budget_, &PlanBudget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(past_, &Chart::dotClicked, this, &PlannerView::openPast);
    connect(past_, &Chart::dotHovered, this,
            [this](int series, int point) { setReadout(pastRunText(pastRunAt(pastRuns_, pastDots_, series, point))); });
    for (PlotWidget* plot : std::initializer_list<PlotWidget*>{curves_, bars_, past_}) {
        connect(plot, &PlotWidget::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    }
}

QWidget* PlannerView::buildTop(QWidget* parent) {
    top_ = new Surface(Surface::Fill::Panel, Surface::Bottom, parent);
    auto* row = new QHBoxLayout(top_);
    row->setContentsMargins(12, 6, 12, 6);
    topSentence_ = new TextLabel({}, TypeRole::Sentence, TextColor::Text1, false, top_);
    topSentence_->setElide(true);
    topStart_ = new QPushButton(tr("Start this run"), top_);
    setPrimary(topStart_);
    row->addWidget(topSentence_, 1);
    row->addWidget(topStart_);
    top_->hide();
    connect(topStart_, &QPushButton::clicked, this, &PlannerView::start);
    return top_;
}

QWidget* PlannerView::buildTable(QWidget* parent) {
    auto* lower = new QWidget(parent);
    auto* row = new QHBoxLayout(lower);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    auto* left = new Surface(Surface::Fill::Canvas, Surface::Right, lower);
    QVBoxLayout* leftColumn = plainColumn(left);
    TextLabel* tableFacts = nullptr;
    leftColumn->addWidget(sectionHead(tr("Sets"), tableFacts, left, &setsTitle_));
    sets_ = new FactTable(tr("Sets of techniques at this context"), left);
    sets_->setNumberWidths({66, 76, 152, 78, 56, 64, 78});
    setLook_ = new SetDelegate(sets_->view());
    sets_->view()->setItemDelegate(setLook_);
    leftColumn->addWidget(sets_);
    auto* note = new TextLabel(tr("A set that does not fit is priced as if the device were larger."), TypeRole::Axis,
                               TextColor::Text3, false, left);
    note->setElide(true);
    note->setContentsMargins(12, 6, 12, 4);
    leftColumn->addWidget(note);
    leftColumn->addStretch(1);
    auto* right = new Surface(Surface::Fill::Canvas, Surface::None, lower);
    QVBoxLayout* rightColumn = plainColumn(right);
    rightColumn->addWidget(sectionHead(tr("Measured against predicted peak, %"), pastFacts_, right));
    past_ = new Chart(tr("Measured against predicted peak"), right);
    past_->setMinimumHeight(140);
    rightColumn->addWidget(past_, 1);
    row->addWidget(left, 701);
    row->addWidget(right, 322);
    lower->setFixedHeight(190);
    connect(sets_->view(), &QTableView::clicked, this,
            [this](const QModelIndex& index) { clickSet(index.row(), index.column()); });
    return lower;
}

void PlannerView::buildInspector() {
    panel_ = new QScrollArea;
    panel_->setFrameShape(QFrame::NoFrame);
    panel_->setWidgetResizable(true);
    panel_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, panel_);
    QVBoxLayout* column = plainColumn(content);
    auto* verdict = new QWidget(content);
    auto* lines = new QVBoxLayout(verdict);
    lines->setContentsMargins(12, 10, 12, 12);
    lines->setSpacing(6);
    auto* top = new QHBoxLayout;
    mark_ = new TextLabel({}, TypeRole::Sentence, TextColor::Good, false, verdict);
    mark_->setAlignment(Qt::AlignTop);
    sentence_ = new TextLabel({}, TypeRole::Sentence, TextColor::Text1, false, verdict);
    sentence_->setWordWrap(true);
    top->addWidget(mark_);
    top->addWidget(sentence_, 1);
    reason_ = wrappedWords(verdict, TextColor::Text2, false);
    auto* buttons = new QHBoxLayout;
    start_ = new QPushButton(icon(QStringLiteral("run"), themeTokens().onAccent), tr("Start this run"), verdict);
    setPrimary(start_);
    copy_ = new QPushButton(tr("Copy command"), verdict);
    buttons->addWidget(start_);
    buttons->addWidget(copy_);
    buttons->addStretch(1);
    stops_ = wrappedWords(verdict, TextColor::Bad, false);
    lines->addLayout(top);
    lines->addWidget(reason_);
    lines->addLayout(buttons);
    lines->addWidget(stops_);
    QVBoxLayout* planColumn = plainColumn(new QWidget(content));
    facts_ = new FactTable(tr("This plan"), content);
    slopes_ = new FactTable(tr("Bytes a token at the peak"), content);
    facts_->setNumberWidth(210);
    slopes_->setNumberWidth(120);
    planColumn->addWidget(sectionHead(tr("This plan"), factsSet_, content));
    planColumn->addWidget(facts_);
    slopesHead_ = sectionHead(tr("Bytes a token at the peak"), slopesLine_, content);
    planColumn->addWidget(slopesHead_);
    planColumn->addWidget(slopes_);
    QVBoxLayout* otherColumn = plainColumn(new QWidget(content));
    changes_ = new ChangeList(content);
    note_ = wrappedWords(content, TextColor::Text2, true);
    otherColumn->addWidget(sectionHead(tr("What would make it fit"), changesFacts_, content, &changesTitle_));
    otherColumn->addWidget(changes_);
    otherColumn->addWidget(note_);
    goalHead_ = sectionHead(tr("For %1 tokens").arg(countText(engine::WhatIfGoal().tokens)), goalFacts_, content);
    goal_ = wrappedWords(content, TextColor::Text2, true);
    otherColumn->addWidget(goalHead_);
    otherColumn->addWidget(goal_);
    QWidget *plan = planColumn->parentWidget(), *other = otherColumn->parentWidget();
    column->addWidget(verdict);
    column->addWidget(plan);
    column->addWidget(other);
    column->addStretch(1);
    panel_->setWidget(content);
    content->hide(); // until there is a plan
    panelHeader_ = new DockHeader(tr("Verdict"));
    new PlanTabs({{tr("Verdict"), verdict}, {tr("Plan"), plan}, {tr("Changes"), other}}, panel_, panelHeader_);
    panelFacts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, panelHeader_);
    panelHeader_->addControl(panelFacts_);
    connect(start_, &QPushButton::clicked, this, &PlannerView::start);
    connect(copy_, &QPushButton::clicked, this, [this] { perform(QStringLiteral("edit.copy-why")); });
    connect(changes_, &ChangeList::tried, this, &PlannerView::tryChange);
}

QComboBox* PlannerView::modelChoice() const {
    return model_;
}

QComboBox* PlannerView::deviceChoice() const {
    return device_;
}

QComboBox* PlannerView::workloadChoice() const {
    return workload_;
}

QList<QWidget*> PlannerView::bodyStops() const {
    return {form_, curves_, bars_, sets_->view(), past_};
}

QWidget* PlannerView::inspectorHeader() {
    return panelHeader_;
}

} // namespace vitrine::ui
