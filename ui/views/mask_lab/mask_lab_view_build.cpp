// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Mask Lab, and what a change of each of them changes.
#include <QHBoxLayout>
#include <QPainter>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>

#include "ui/models/common/flat_tree.h"
#include "ui/models/mask_lab/mask_drafts.h"
#include "ui/views/mask_lab/mask_controls.h"
#include "ui/views/mask_lab/mask_editor.h"
#include "ui/views/mask_lab/mask_exports.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kTabWidth = 28;

/// The tab of the folded editor: its word runs upwards.
class SideTab final : public QToolButton {
public:
    SideTab(const QString& text, QWidget* parent) : QToolButton(parent) {
        setText(text);
        setCheckable(true);
        setAccessibleName(text);
        setFixedWidth(kTabWidth);
        setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Expanding);
        setFocusPolicy(Qt::TabFocus);
    }

protected:
    void paintEvent(QPaintEvent*) override {
        const ThemeTokens& theme = themeTokens();
        QPainter painter(this);
        painter.fillRect(rect(), isChecked() || underMouse() ? theme.hover : theme.panel);
        plumbline(painter, width() - 1, 0, height(), theme.line1);
        painter.save();
        painter.rotate(-90);
        drawText(painter, QRectF(-120, 0, 110, width() - 1), Qt::AlignRight | Qt::AlignVCenter, text(),
                 isChecked() ? theme.text1 : theme.text2, Theme::instance().font(TypeRole::Table, true));
        painter.restore();
        if (hasFocus()) {
            painter.setPen(QPen(theme.accent, 2));
            painter.drawRect(rect().adjusted(1, 1, -2, -2));
        }
    }
};

} // namespace

MaskLabView::MaskLabView(const ViewServices& context, QWidget* parent)
    : View(QStringLiteral("mask"), tr("Mask Lab"), context, parent), lab_(new MaskLab(this)),
      runs_(new MaskRuns(lab_, context.document, context.runs, context.devices, this)), map_(new BlockMap(this)),
      exports_(new MaskExports(map_, this)), controls_(new MaskControls(lab_, map_, *context.actions, header())),
      panel_(new MaskInspector(this)) {
    map_->setEmptyText(tr("Write a program, or choose one from the catalogue."));
    map_->installEventFilter(this);
    buildBody();
    buildTable();
    connectLab();
    connectParts();
    connectRuns();
    updateSizes();
    restoreDrafts(*lab_, context.settingsFile);
    updateMeasure();
    editor_->readModel({}, {});
}

MaskLabView::~MaskLabView() {
    keepDrafts(*lab_, context().settingsFile);
}

void MaskLabView::buildBody() {
    auto* body = new QWidget(this);
    auto* row = new QHBoxLayout(body);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    dockTab_ = new SideTab(tr("Program"), body);
    dockTab_->setToolTip(tr("Open or fold the program, its parameters and heads"));
    dockTab_->hide();
    connect(dockTab_, &QToolButton::clicked, this, &MaskLabView::setDockOpen);
    auto* split = new QSplitter(Qt::Horizontal, body);
    editor_ = new MaskEditor(lab_, this);
    split->addWidget(editor_);
    split->addWidget(map_);
    split->setStretchFactor(0, 0);
    split->setStretchFactor(1, 1);
    split->setCollapsible(1, false);
    split->setSizes({kLeftWidth, 700});
    row->addWidget(dockTab_);
    row->addWidget(split, 1);
    setBody(body);
}

void MaskLabView::buildTable() {
    twin_ = new QTableView(this);
    twinModel_ = new FlatTreeModel(this);
    setUpTwin(twin_, twinModel_, tr("Rows of blocks"));
    setTable(twin_);
    header()->setTableButton(false); // T and the View menu: the header is full
    connect(header(), &ViewHeader::tableToggled, this, &MaskLabView::updateTable);
}

void MaskLabView::connectLab() {
    connect(lab_, &MaskLab::studyChanged, this, [this](int side) {
        if (side == shownSide()) {
            updateStudy();
        }
    });
    connect(lab_, &MaskLab::mapChanged, this, &MaskLabView::updateMaps);
    connect(lab_, &MaskLab::numbersChanged, this, &MaskLabView::updateNumbers);
    connect(lab_, &MaskLab::timesChanged, this, &MaskLabView::updateNumbers);
    connect(lab_, &MaskLab::sizesChanged, this, &MaskLabView::updateSizes);
    connect(lab_, &MaskLab::workingChanged, this, &MaskLabView::updateStatus);
    // The mark of the status is a picture in a colour of the theme.
    connect(&Theme::instance(), &Theme::changed, this, &MaskLabView::updateStudy);
}

void MaskLabView::connectParts() {
    connect(controls_, &MaskControls::sideChosen, this, &MaskLabView::showSide);
    connect(controls_, &MaskControls::measureClicked, this, [this] { runs_->measure(shownSide()); });
    connect(controls_, &MaskControls::stopClicked, runs_, &MaskRuns::stop);
    connect(editor_, &MaskEditor::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(editor_, &MaskEditor::fromRunWanted, this,
            [this](const QString& capture) { runs_->takeLengths(shownSide(), capture); });
    connect(panel_, &MaskInspector::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(panel_, &MaskInspector::blockSizeChosen, this, [this](qint64 block) {
        MaskSizes sizes = lab_->sizes();
        sizes.block = block;
        lab_->setSizes(sizes);
    });
    connect(exports_, &MaskExports::failed, this, [this](const QString& error) { showError(error); });
    connect(exports_, &MaskExports::saidChanged, this, [this] { setReadout(exports_->said()); });
    connect(map_, &BlockMap::cellChanged, this, &MaskLabView::updatePointed);
    connect(map_, &PlotWidget::readoutChanged, this, &MaskLabView::updatePointed);
}

void MaskLabView::connectRuns() {
    connect(runs_, &MaskRuns::sidesSwapped, this, &MaskLabView::updateStudy);
    connect(runs_, &MaskRuns::modelNamed, this,
            [this](const std::string& name, const std::map<std::string, std::string>& overrides, qint64 tokens) {
                if (!editor_->showsModel(name, overrides)) {
                    editor_->readModel(name, overrides, true, tokens);
                }
            });
    connect(runs_, &MaskRuns::measuringChanged, this, &MaskLabView::updateMeasure);
    connect(runs_, &MaskRuns::measuringSaid, panel_, &MaskInspector::setMeasuring);
    connect(runs_, &MaskRuns::failed, this, [this](const QString& sentence) { showError(sentence); });
    connect(runs_, &MaskRuns::waiting, this, [this](const QString& sentence) { setReadout(sentence); });
}

QWidget* MaskLabView::inspector() {
    return panel_;
}

QWidget* MaskLabView::inspectorHeader() {
    return panel_->header();
}

} // namespace vitrine::ui
