// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Compare view: header, words, tables, lane, inspector.
#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/views/compare/compare_view.h"
#include "ui/views/compare/rl_compare_page.h"
#include "ui/views/compare/titled_box.h"
#include "ui/views/compare/training_compare.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/compare_delegates.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/timeline/compare_lane.h"
#include "ui/widgets/timeline/compare_ruler.h"
#include "ui/widgets/timeline/difference_lane.h"
#include "ui/widgets/timeline/lane_stack.h"

namespace vitrine::ui {

namespace {

constexpr int kRoomForTables = 420, kRoomForTrainingTables = 560;
constexpr int kTrainingShare = 9; ///< of the height, beside 3 of the tables

} // namespace

void CompareView::buildHeader() {
    pickA_ = header()->addCombo(tr("Run A"));
    pickB_ = header()->addCombo(tr("Run B, the baseline"));
    for (QComboBox* box : {pickA_, pickB_}) {
        box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    }
    more_ = new QPushButton(QStringLiteral("+"), header());
    more_->setAccessibleName(tr("More runs in the table of metrics"));
    more_->setToolTip(more_->accessibleName());
    setControlHeight(more_, 24);
    more_->setFixedWidth(30);
    moreMenu_ = new QMenu(more_);
    connect(more_, &QPushButton::clicked, this,
            [this] { moreMenu_->popup(more_->mapToGlobal(QPoint(0, more_->height()))); });
    header()->addControl(more_);
    extent_ = header()->addSegments({tr("One step"), tr("Whole run")}, tr("What is compared"));
    align_ = header()->addSegments({tr("Phase"), tr("Step"), tr("Time")}, tr("Align by"));
    changedOnly_ = header()->addCheck(tr("Changed only"), true);
    copy_ = new QPushButton(tr("Copy as text"), header());
    setControlHeight(copy_, 24);
    header()->addRightControl(copy_);
    const auto pick = [this](bool first) {
        return [this, first](int index) {
            if (filling_ || document() == nullptr || index < 0) {
                return;
            }
            const auto id = (first ? pickA_ : pickB_)->itemData(index).toLongLong();
            chooseRun(first, id);
        };
    };
    connect(pickA_, &QComboBox::activated, this, pick(true));
    connect(pickB_, &QComboBox::activated, this, pick(false));
    connect(align_, &SegmentedControl::currentChanged, this, &CompareView::updateLane);
    connect(extent_, &SegmentedControl::currentChanged, this, &CompareView::updateLane);
    connect(changedOnly_, &QCheckBox::toggled, this, &CompareView::updateTables);
    connect(copy_, &QPushButton::clicked, this, [this] { perform(QStringLiteral("edit.copy-why")); });
}

/// What can be done where two runs cannot be compared.
QWidget* CompareView::buildOffers(QWidget* parent) {
    anyway_ = new QWidget(parent);
    auto* offers = new QHBoxLayout(anyway_);
    offers->setContentsMargins(12, 8, 12, 8);
    partner_ = new QPushButton(anyway_);
    setControlHeight(partner_, 24);
    showNumbers_ = new QPushButton(tr("Show numbers anyway"), anyway_);
    showNumbers_->setCheckable(true);
    setControlHeight(showNumbers_, 24);
    offers->addWidget(partner_);
    offers->addWidget(showNumbers_);
    offers->addStretch(1);
    connect(partner_, &QPushButton::clicked, this, [this] { chooseRun(false, partnerRun_); });
    connect(showNumbers_, &QPushButton::toggled, this, &CompareView::reload);
    return anyway_;
}

void CompareView::buildBody() {
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, this);
    auto* column = new QVBoxLayout(body);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    sentence_ = new TextLabel({}, TypeRole::Sentence, TextColor::Text1, false, body);
    sentence_->setWordWrap(true);
    sentence_->setTextFormat(Qt::RichText);
    sentence_->setContentsMargins(12, 12, 12, 2);
    cause_ = new TextLabel({}, TypeRole::Body, TextColor::Text2, false, body);
    cause_->setWordWrap(true);
    cause_->setContentsMargins(12, 0, 12, 2);
    answers_ = new TextLabel({}, TypeRole::Body, TextColor::Text2, false, body);
    answers_->setWordWrap(true);
    answers_->setContentsMargins(12, 0, 12, 2);
    column->addWidget(sentence_);
    column->addWidget(cause_);
    column->addWidget(answers_);
    column->addSpacing(10);
    notice_ = new ErrorStrip(body, ErrorStrip::Tone::Warn);
    column->addWidget(notice_);
    column->addWidget(buildOffers(body));
    auto* splitter = new QSplitter(Qt::Horizontal, body);
    specView_ = new QTableView(splitter);
    metricView_ = new QTableView(splitter);
    specModel_ = new FlatTreeModel(this);
    metricModel_ = new FlatTreeModel(this);
    setUpTwin(specView_, specModel_, tr("Settings of both runs"));
    setUpTwin(metricView_, metricModel_, tr("Results of the runs"));
    for (QTableView* view : {specView_, metricView_}) {
        view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        view->horizontalHeader()->setStretchLastSection(false);
    }
    specTitle_ = new TextLabel(tr("Set differently"), TypeRole::Table, TextColor::Text1, true, splitter);
    splitter->addWidget(titledBox(specTitle_, specView_, splitter));
    metricView_->setItemDelegate(new NoiseDelegate(metricView_));
    metricBox_ = titledBox(new TextLabel(tr("Results, B − A; hatched: the noise around A, inside it the change is ="),
                                         TypeRole::Table, TextColor::Text1, true, splitter),
                           metricView_, splitter);
    splitter->addWidget(metricBox_);
    splitter->setStretchFactor(0, 2);
    splitter->setStretchFactor(1, 3);
    splitter->setChildrenCollapsible(false);
    splitter->setSizes({400, 600});
    tables_ = splitter;
    column->addWidget(splitter, 3);
    time_ = new TimeCursor(this);
    stack_ = new LaneStack(time_, LaneStack::WithBands, body);
    rulerA_ = new CompareRuler(QLatin1Char('A'), time_, stack_);
    rulerB_ = new CompareRuler(QLatin1Char('B'), time_, stack_);
    stack_->addStrip(rulerA_, true);
    stack_->addStrip(rulerB_, false);
    lane_ = new CompareLane(tr("Total memory: A solid, B dashed"), time_, stack_);
    stack_->addLane(lane_);
    difference_ = new DifferenceLane(tr("B − A by category"), time_, stack_);
    stack_->addLane(difference_);
    column->addWidget(stack_, 4);
    training_ = new TrainingCompare(body);
    training_->hide();
    column->addWidget(training_, kTrainingShare);
    policies_ = new RlComparePage(body);
    policies_->hide();
    column->addWidget(policies_, kTrainingShare);
    connect(training_, &TrainingCompare::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(policies_, &RlComparePage::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(policies_, &RlComparePage::wordsChanged, this, &CompareView::sayPolicies);
    setBody(body);
    connect(time_, &TimeCursor::cursorChanged, this, [this] { setReadout(lane_->spoken()); });
}

/// In a low window the figure has the place.
void CompareView::showTables() {
    const bool training = training_->isVisibleTo(this) || policies_->isVisibleTo(this);
    const bool figure = training || stack_->isVisibleTo(this);
    tables_->setVisible(height() >= (training ? kRoomForTrainingTables : kRoomForTables) || nothingComparable_ ||
                        !figure);
}

void CompareView::buildInspector() {
    auto* area = new QScrollArea;
    area->setFrameShape(QFrame::NoFrame);
    area->setWidgetResizable(true);
    area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, area);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    deltas_ = new FactTable(tr("Bytes at the peak"), content);
    opTimes_ = new FactTable(tr("Time of prefill by op"), content);
    for (FactTable* table : {deltas_, opTimes_}) {
        table->setNumberWidths({57, 57, 130});
        table->view()->setItemDelegateForColumn(3, new DeltaBarDelegate(table->view()));
        column->addWidget(table);
    }
    column->setSpacing(8);
    opTimes_->hide();
    column->addStretch(1);
    area->setWidget(content);
    panel_ = area;
    panelHeader_ = new DockHeader(tr("Memory, B − A by"));
    groupBy_ = new QComboBox(panelHeader_);
    groupBy_->setAccessibleName(tr("Group by"));
    groupBy_->addItems({tr("Category"), tr("Layer"), tr("Op")});
    setControlHeight(groupBy_, 22);
    panelHeader_->addControl(groupBy_);
    connect(groupBy_, &QComboBox::currentIndexChanged, this, &CompareView::updateDeltas);
}

} // namespace vitrine::ui
