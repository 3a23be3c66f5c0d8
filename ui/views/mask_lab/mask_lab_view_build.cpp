// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the Mask Lab, and who hears of what.
#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/models/common/flat_tree.h"
#include "ui/models/mask_lab/mask_drafts.h"
#include "ui/views/mask_lab/capture_panel.h"
#include "ui/views/mask_lab/heads_panel.h"
#include "ui/views/mask_lab/mask_inspector.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/views/mask_lab/number_field.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/code_edit.h"
#include "ui/widgets/forms/number_slider.h"
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

void MaskLabView::buildHeader() {
    sideChoice_ = header()->addSegments({tr("A"), tr("B"), tr("A − B")}, tr("Which mask"));
    sideChoice_->button(0)->setToolTip(tr("Mask A; hold Space over the map to see the other one"));
    sideChoice_->button(1)->setToolTip(tr("Mask B; hold Space over the map to see the other one"));
    sideChoice_->button(2)->setToolTip(tr("What only A or only B allows"));
    contentChoice_ = header()->addSegments({tr("Mask"), tr("Score")}, tr("What the map shows"));
    scores_ = header()->addCombo(tr("Scores before the score program"));
    scores_->addItems({tr("q·k = 0"), tr("q·k = 1"), tr("q, k of file")});
    scores_->setToolTip(tr("What the score program starts from"));
    scores_->hide();
    block_ = header()->addCombo(tr("Block size"));
    block_->setMinimumWidth(88);
    scores_->setMinimumWidth(84);
    block_->setToolTip(tr("Queries and keys of a block"));
    queries_ = new NumberField(tr("q"), tr("Queries: 16384, 16k, 1M"), 68, 24, header());
    keys_ = new NumberField(tr("kv"), tr("Keys: 16384, 16k, 1M"), 68, 24, header());
    header()->addControl(queries_);
    header()->addControl(keys_);
    link_ = header()->addCheck(tr("Link"), true);
    link_->setToolTip(tr("Link rows and columns: one scale, one range"));
    export_ = new QPushButton(tr("Arrays"), header());
    export_->setAccessibleName(tr("Export arrays"));
    export_->setToolTip(tr("Write the BlockMask arrays as PyTorch has them, a safetensors file"));
    copy_ = new QPushButton(tr("Picture"), header());
    copy_->setToolTip(tr("Copy or save the map as a picture"));
    measure_ = new QPushButton(tr("Measure"), header());
    setPrimary(measure_);
    auto* menu = new QMenu(copy_);
    for (const char* id : {"mask.copy-picture", "mask.save-png", "mask.save-svg"}) {
        menu->addAction(context().actions->action(QString::fromLatin1(id)));
    }
    copy_->setMenu(menu);
    for (QPushButton* button : {export_, copy_, measure_}) {
        setControlHeight(button, 24);
        header()->addRightControl(button);
    }
    connect(sideChoice_, &SegmentedControl::currentChanged, this,
            [this](int index) { showSide(static_cast<BlockMap::Side>(index)); });
    connect(contentChoice_, &SegmentedControl::currentChanged, this, [this](int index) {
        map_->setContent(static_cast<BlockMap::Content>(index));
        scores_->setVisible(index == 1);
    });
    connect(scores_, &QComboBox::activated, this,
            [this](int index) { lab_->setScores(static_cast<MaskLab::Scores>(index)); });
    connect(block_, &QComboBox::activated, this, [this] {
        MaskSizes sizes = lab_->sizes();
        sizes.block = block_->currentData().toLongLong();
        lab_->setSizes(sizes);
    });
    const auto lengths = [this] {
        MaskSizes sizes = lab_->sizes();
        sizes.queries = queries_->value();
        sizes.keys = keys_->value();
        lab_->setSizes(sizes);
    };
    connect(queries_, &NumberField::changed, this, lengths);
    connect(keys_, &NumberField::changed, this, lengths);
    connect(link_, &QCheckBox::toggled, this, [this](bool on) { map_->setLinked(on); });
    connect(export_, &QPushButton::clicked, context().actions->action(QStringLiteral("mask.export")),
            &QAction::trigger);
    connect(measure_, &QPushButton::clicked, this,
            [this] { runs_->measuring() ? runs_->stop() : runs_->measure(shown_); });
}

QWidget* MaskLabView::buildLeft() {
    auto* left = new Surface(Surface::Fill::Panel, Surface::Right, this);
    auto* column = new QVBoxLayout(left);
    column->setContentsMargins(0, 0, 1, 0);
    column->setSpacing(0);
    auto* halves = new QSplitter(Qt::Vertical, left);
    halves->setChildrenCollapsible(false);
    program_ = new ProgramPanel(halves);
    program_->setMinimumHeight(190);
    auto* scroll = new QScrollArea(halves);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, scroll);
    auto* parts = new QVBoxLayout(content);
    parts->setContentsMargins(0, 0, 0, 0);
    parts->setSpacing(0);
    auto* head = new DockHeader(tr("Parameters"), content);
    parameterHead_ = head;
    parts->addWidget(head);
    sliderColumn_ = new QVBoxLayout;
    sliderColumn_->setContentsMargins(0, 2, 0, 2);
    sliderColumn_->setSpacing(0);
    parts->addLayout(sliderColumn_);
    captures_ = new CapturePanel(content);
    parts->addWidget(captures_);
    heads_ = new HeadsPanel(content);
    parts->addWidget(heads_);
    parts->addStretch(1);
    scroll->setWidget(content);
    halves->addWidget(program_);
    halves->addWidget(scroll);
    halves->setStretchFactor(0, 0);
    halves->setStretchFactor(1, 1);
    halves->setSizes({312, 466});
    column->addWidget(halves);
    left->setMinimumWidth(260);
    return left;
}

void MaskLabView::buildTable() {
    twin_ = new QTableView(this);
    twinModel_ = new FlatTreeModel(this);
    setUpTwin(twin_, twinModel_, tr("Rows of blocks"));
    setTable(twin_);
    header()->setTableButton(false); // T and the View menu: the header is full
    connect(header(), &ViewHeader::tableToggled, this, &MaskLabView::updateTable);
}

MaskLabView::MaskLabView(const ViewServices& context, QWidget* parent)
    : View(QStringLiteral("mask"), tr("Mask Lab"), context, parent), lab_(new MaskLab(this)),
      runs_(new MaskRuns(lab_, context.document, context.runs, context.devices, this)), modelJob_(this),
      exportJob_(this) {
    panel_ = new MaskInspector(this);
    map_ = new BlockMap(this);
    map_->setEmptyText(tr("Write a program, or choose one from the catalogue."));
    map_->installEventFilter(this);
    buildHeader();
    left_ = buildLeft();
    auto* body = new QWidget(this);
    auto* row = new QHBoxLayout(body);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    dockTab_ = new SideTab(tr("Program"), body);
    dockTab_->setToolTip(tr("Open or fold the program, its parameters and heads"));
    dockTab_->hide();
    split_ = new QSplitter(Qt::Horizontal, body);
    split_->addWidget(left_);
    split_->addWidget(map_);
    split_->setStretchFactor(0, 0);
    split_->setStretchFactor(1, 1);
    split_->setCollapsible(1, false);
    split_->setSizes({kLeftWidth, 700});
    row->addWidget(dockTab_);
    row->addWidget(split_, 1);
    setBody(body);
    buildTable();
    program_->setSizesOf([this] { return lab_->sizes(); });
    connect(dockTab_, &QToolButton::clicked, this, &MaskLabView::setDockOpen);
    connectLab();
    connectPanels();
    connectRuns();
    updateSizes();
    restoreDrafts(*lab_, context.settingsFile);
    updateMeasure();
    readModel({}, {});
}

MaskLabView::~MaskLabView() {
    keepDrafts(*lab_, context().settingsFile);
}

void MaskLabView::connectLab() {
    connect(lab_, &MaskLab::sourceChanged, this,
            [this](int side) { program_->setSource(side, lab_->side(side).source); });
    connect(lab_, &MaskLab::studyChanged, this, [this](int side) {
        if (side == shown_) {
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

void MaskLabView::connectPanels() {
    connect(program_, &ProgramPanel::textEdited, this, [this] { lab_->setText(shown_, program_->editor()->text()); });
    connect(program_, &ProgramPanel::expressionsChosen, this, [this](const QString& mask, const QString& score) {
        // What the text would choose by itself stays its own choice.
        const MaskStudyPtr& study = lab_->side(shown_).study;
        const MaskSource& source = lab_->side(shown_).source;
        const auto kept = [&study](const std::string& asked, const std::string& own, const QString& chosen) {
            const std::string now = chosen.toStdString();
            return study && asked.empty() && (now == own || (own.empty() && now == kNoMod)) ? std::string() : now;
        };
        MaskSource chosen = source;
        chosen.mask = kept(source.mask, study ? study->maskName : std::string(), mask);
        chosen.score = kept(source.score, study ? study->scoreName : std::string(), score);
        const MaskSource whole = withCatalogueText(chosen);
        if (whole.text == source.text) {
            lab_->setExpressions(shown_, chosen.mask, chosen.score);
        } else {
            lab_->setSource(shown_, whole);
        }
    });
    connect(program_, &ProgramPanel::sourceChosen, this,
            [this](const MaskSource& source) { lab_->setSource(shown_, source); });
    connect(program_, &ProgramPanel::captureWanted, this, [this](const QString& name) {
        lab_->setCapture(shown_, name.toStdString(), suggestedCapture(name.toStdString(), lab_->sizes()));
    });
    connect(program_, &ProgramPanel::modelFolderWanted, this, &MaskLabView::chooseModelFolder);
    connect(program_, &ProgramPanel::layerChosen, this, [this](int layer) {
        MaskSizes sizes = lab_->sizes();
        sizes.heads = model_->heads.heads;
        sizes.kvHeads = model_->heads.kvHeads;
        sizes.headDim = model_->heads.headDim;
        lab_->setSizes(sizes);
        lab_->setSource(shown_, model_->layers[static_cast<std::size_t>(layer)].source);
    });
    connect(captures_, &CapturePanel::edited, this, [this](const QString& name, const QString& line) {
        lab_->setCapture(shown_, name.toStdString(), line.toStdString());
    });
    connect(captures_, &CapturePanel::fromRunWanted, this,
            [this](const QString& capture) { runs_->takeLengths(shown_, capture); });
    connect(captures_, &CapturePanel::fileWanted, this, &MaskLabView::chooseTensors);
    connect(heads_, &HeadsPanel::planeChosen, this, [this](qint64 batch, qint64 head) {
        lab_->setPlane(batch, head);
        heads_->setSizes(lab_->sizes(), lab_->batch(), lab_->head());
    });
    connect(heads_, &HeadsPanel::sizesChosen, lab_, &MaskLab::setSizes);
    connect(heads_, &HeadsPanel::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(panel_, &MaskInspector::readoutChanged, this, [this](const QString& text) { setReadout(text); });
    connect(panel_, &MaskInspector::blockSizeChosen, this, [this](qint64 block) {
        MaskSizes sizes = lab_->sizes();
        sizes.block = block;
        lab_->setSizes(sizes);
    });
    connect(map_, &BlockMap::cellChanged, this, &MaskLabView::updatePointed);
    connect(map_, &PlotWidget::readoutChanged, this, &MaskLabView::updatePointed);
}

void MaskLabView::connectRuns() {
    connect(runs_, &MaskRuns::sidesSwapped, this, &MaskLabView::updateStudy);
    connect(runs_, &MaskRuns::modelNamed, this,
            [this](const std::string& name, const std::map<std::string, std::string>& overrides) {
                if (name != modelName_) {
                    readModel(name, overrides);
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
