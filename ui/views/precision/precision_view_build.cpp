// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Precision lab.
#include <QCheckBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QMenu>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/models/common/flat_tree.h"
#include "ui/views/precision/format_delegate.h"
#include "ui/views/precision/lab_export.h"
#include "ui/views/precision/lab_head.h"
#include "ui/views/precision/lab_panel.h"
#include "ui/views/precision/lab_text_pane.h"
#include "ui/views/precision/precision_view.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/group_grid.h"
#include "ui/widgets/plots/group_strip.h"
#include "ui/widgets/plots/histogram_lane.h"

namespace vitrine::ui {

namespace {

constexpr int kTensorRow = 138, kWorstRow = 20, kLowerRow = 200;

QVBoxLayout* tightColumn(QWidget* parent) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

QHBoxLayout* tightRow(QWidget* parent) {
    auto* row = new QHBoxLayout(parent);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    return row;
}

/// A list of which one row is chosen, and whose order says something: it cannot be sorted.
QTableView* chosenList(FlatTreeModel* model, const QString& name, QWidget* parent) {
    auto* list = new QTableView(parent);
    setUpTwin(list, model, name);
    list->setSortingEnabled(false);
    list->setSelectionMode(QAbstractItemView::SingleSelection);
    list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    return list;
}

/// Gives the columns of numbers their width and the first one the rest.
void placeColumns(QTableView* list, std::initializer_list<int> numbers) {
    const int rows = list->model()->rowCount() * list->verticalHeader()->defaultSectionSize();
    const bool scrolls = rows + list->horizontalHeader()->height() > list->height();
    int rest = list->width() - (scrolls ? list->verticalScrollBar()->sizeHint().width() : 0), column = 1;
    for (const int wide : numbers) {
        list->setColumnWidth(column++, wide);
        rest -= wide;
    }
    list->setColumnWidth(0, std::max(60, rest));
}

} // namespace

PrecisionView::PrecisionView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("precision"), tr("Precision lab"), context, parent), dataJob_(this) {
    buildHeader();
    buildBody();
    panel_ = new LabPanel(this);
    makeTwin(tr("Errors of each role and layer"));
    connectParts();
    setTensorSource(tensorFiles());
    followDocument();
}

void PrecisionView::buildHeader() {
    measures_ = header()->addSegments({tr("SNR"), tr("MSE"), tr("Cosine")}, tr("Measure of the error"));
    layouts_ = header()->addSegments({tr("Layer, role"), tr("Experts")}, tr("Rows of the map"));
    textName_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    textName_->setElide(true);
    header()->addControl(textName_);
    numbers_ = header()->addCheck(tr("Numbers"), true);
    export_ = new QPushButton(tr("Export"), this);
    setControlHeight(export_, 24);
    auto* menu = new QMenu(export_);
    menu->addAction(tr("Table as CSV"), this,
                    [this] { data_ ? say(exportTable(this, data_->result, cells_, a_)) : void(); });
    menu->addAction(tr("Map as SVG or PNG"), this,
                    [this] { data_ ? say(exportPicture(this, *map_, formatTitle(a_))) : void(); });
    export_->setMenu(menu);
    header()->addRightControl(export_);
}

void PrecisionView::buildBody() {
    auto* scroll = new QScrollArea(this); // a low window shows part after part
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    auto* body = new Surface(Surface::Fill::Canvas, Surface::None, scroll);
    QVBoxLayout* column = tightColumn(body);
    mapHead_ = new LabHead(tr("Signal to noise of the weights, dB"), body);
    map_ = new HeatMap(tr("Errors of weights by role and layer"), body);
    tensorHead_ = new LabHead({}, body);
    tensorHead_->setMono(true);
    groupHead_ = new LabHead(tr("Group"), body);
    grid_ = new GroupGrid(tr("Weights of one group"), body);
    column->addWidget(mapHead_);
    column->addWidget(map_);
    column->addWidget(tensorHead_);
    column->addWidget(buildTensorRow(body));
    column->addWidget(groupHead_);
    column->addWidget(grid_);
    column->addWidget(buildLowerRow(body), 1);
    scroll->setWidget(body);
    setBody(scroll);
}

QWidget* PrecisionView::buildTensorRow(QWidget* parent) {
    auto* page = new QWidget(parent);
    page->setFixedHeight(kTensorRow);
    tensorRow_ = tightRow(page);
    histogram_ = new HistogramLane(tr("Weights by value"), page);
    strip_ = new GroupStrip(tr("Error of each group"), page);
    worstModel_ = new FlatTreeModel(this);
    worst_ = chosenList(worstModel_, tr("Worst groups"), page);
    worst_->verticalHeader()->setMinimumSectionSize(kWorstRow);
    worst_->verticalHeader()->setDefaultSectionSize(kWorstRow);
    tensorRow_->addWidget(histogram_, 320);
    tensorRow_->addWidget(strip_, 410);
    tensorRow_->addWidget(worst_, 293);
    return page;
}

QWidget* PrecisionView::buildLowerRow(QWidget* parent) {
    auto* page = new QWidget(parent);
    page->setMinimumHeight(kLowerRow);
    QVBoxLayout* column = tightColumn(page);
    paneBar_ = new Surface(Surface::Fill::Panel, Surface::Top, page);
    auto* bar = new QHBoxLayout(paneBar_);
    bar->setContentsMargins(12, 3, 12, 3);
    panes_ = new SegmentedControl({tr("Text"), tr("Formats"), tr("Worst groups")}, paneBar_);
    panes_->setAccessibleName(tr("Part below the group"));
    bar->addWidget(panes_);
    bar->addStretch(1);
    paneBar_->hide();
    column->addWidget(paneBar_);
    auto* row = new QWidget(page);
    lowerRow_ = tightRow(row);
    textPane_ = new LabTextPane(row);
    lowerRow_->addWidget(textPane_, 487);
    lowerRow_->addWidget(buildFormatPane(row), 536);
    column->addWidget(row, 1);
    return page;
}

QWidget* PrecisionView::buildFormatPane(QWidget* parent) {
    formatPane_ = new Surface(Surface::Fill::Canvas, Surface::None, parent);
    QVBoxLayout* column = tightColumn(formatPane_);
    formatHead_ = new LabHead(tr("Formats"), formatPane_);
    formatModel_ = new FlatTreeModel(this);
    formats_ = chosenList(formatModel_, tr("Formats of the whole model"), formatPane_);
    formatLook_ = new FormatDelegate(formats_);
    formats_->setItemDelegate(formatLook_);
    formats_->setToolTip(tr("Click: look at this format. Shift+click: compare with it."));
    keptNote_ = new TextLabel({}, TypeRole::Axis, TextColor::Text3, false, formatPane_);
    keptNote_->setElide(true);
    keptNote_->setContentsMargins(12, 4, 12, 6);
    column->addWidget(formatHead_);
    column->addWidget(formats_, 1);
    column->addWidget(keptNote_);
    return formatPane_;
}

QWidget* PrecisionView::inspector() {
    return panel_->panel();
}

QWidget* PrecisionView::inspectorHeader() {
    return panel_->header();
}

void PrecisionView::placeParts() {
    constexpr int kNarrowLab = 1000; ///< the inspector is then below the page
    const bool narrow = width() < kNarrowLab;
    if (narrow != narrow_) {
        narrow_ = narrow;
        paneBar_->setVisible(narrow);
        (narrow ? lowerRow_ : tensorRow_)->addWidget(worst_, 293);
    }
    showPane(panes_->current());
    placeColumns(worst_, {70, 62, 66});
    placeColumns(formats_, {56, 52, 66, 64, 72, 72});
}

void PrecisionView::showPane(int pane) {
    textPane_->setVisible(!narrow_ || pane == 0);
    formatPane_->setVisible(!narrow_ || pane == 1);
    worst_->setVisible(!narrow_ || pane == 2);
}

} // namespace vitrine::ui
