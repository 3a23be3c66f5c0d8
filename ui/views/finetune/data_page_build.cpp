// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "ui/models/finetune/data_text.h"
#include "ui/models/run/experiment_form.h"
#include "ui/views/finetune/data_bar.h"
#include "ui/views/finetune/data_form.h"
#include "ui/views/finetune/data_inspector.h"
#include "ui/views/finetune/data_page.h"
#include "ui/views/finetune/section_head.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/mask_pixels.h"
#include "ui/widgets/plots/pack_strip.h"
#include "ui/widgets/plots/token_grid.h"

namespace vitrine::ui {

namespace {

constexpr int kSentenceWidth = 760, kSentencePixels = 20;
constexpr int kAllHeight = 52, kReadDelayMs = 300;

QVBoxLayout* plainColumn(QWidget* parent) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

} // namespace

DataPage::DataPage(const ViewServices& context, ExperimentForm* form, QWidget* parent)
    : QWidget(parent), context_(context), form_(form), job_(this), sequenceJob_(this), rowJob_(this), lineJob_(this),
      inspector_(new DataInspector), inspectorHeader_(new DockHeader(tr("Rows and tokens"))) {
    auto* note = new TextLabel(tr("after the template"), TypeRole::Table, TextColor::Text3, false, inspectorHeader_);
    inspectorHeader_->addControl(note);
    QPushButton* csv = iconButton(QStringLiteral("export"), tr("Export the summary as CSV"), inspectorHeader_);
    inspectorHeader_->addControl(csv);
    connect(csv, &QPushButton::clicked, this, &DataPage::exportSummary);
    auto* column = plainColumn(this);
    column->addWidget(buildSentence());
    auto* row = new QHBoxLayout;
    row->setSpacing(0);
    fields_ = new DataForm(form_, this);
    row->addWidget(fields_);
    row->addWidget(buildMiddle(), 1);
    column->addLayout(row, 1);
    bar_ = new DataBar(context_.runs, [this] { return form_->priceableText(); }, this);
    column->addWidget(bar_);
    setAcceptDrops(true);
    typing_.setSingleShot(true);
    typing_.setInterval(kReadDelayMs);
    connectPlots();
    showState();
}

DataPage::~DataPage() = default;

QWidget* DataPage::buildSentence() {
    auto* strip = new Surface(Surface::Fill::Panel, Surface::Bottom, this);
    sentenceStrip_ = strip;
    auto* column = new QVBoxLayout(strip);
    column->setContentsMargins(12, 6, 12, 6);
    column->setSpacing(2);
    auto* row = new QHBoxLayout;
    sentence_ = new QLabel(strip);
    QFont font = Theme::instance().font(TypeRole::Sentence);
    font.setPixelSize(kSentencePixels);
    sentence_->setFont(font);
    sentence_->setWordWrap(true);
    sentence_->setTextFormat(Qt::RichText);
    sentence_->setMaximumWidth(kSentenceWidth);
    sentence_->setAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    row->addWidget(sentence_, 1);
    stop_ = new QPushButton(tr("Stop"), strip);
    stop_->setToolTip(tr("What was read is kept"));
    setControlHeight(stop_, 24);
    stop_->hide();
    row->addWidget(stop_, 0, Qt::AlignTop);
    row->addStretch(0);
    column->addLayout(row, 1);
    second_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, strip);
    second_->setElide(true);
    column->addWidget(second_);
    return strip;
}

QWidget* DataPage::buildMiddle() {
    middle_ = new QStackedWidget(this);
    auto* page = new Surface(Surface::Fill::Canvas, Surface::None, middle_);
    auto* column = plainColumn(page);
    all_ = new QWidget(page);
    auto* all = plainColumn(all_);
    allHead_ = new SectionHead(tr("All sequences"), all_);
    bars_ = new SequenceBars(tr("All sequences"), all_);
    bars_->setFixedHeight(kAllHeight);
    all->addWidget(allHead_);
    all->addWidget(bars_);
    column->addWidget(all_);
    column->addWidget(buildSequence(page));
    auto* low = new QHBoxLayout;
    low->setSpacing(0);
    low->addWidget(buildTokens(page), 1);
    low->addWidget(buildMask(page));
    column->addLayout(low, 1);
    nothing_ = new EmptyState(middle_);
    middle_->addWidget(page);
    middle_->addWidget(nothing_);
    return middle_;
}

QWidget* DataPage::buildSequence(QWidget* parent) {
    auto* part = new QWidget(parent);
    auto* column = plainColumn(part);
    sequenceHead_ = new SectionHead({}, part);
    auto* back = iconButton(QStringLiteral("chevron-left"), tr("Sequence before"), sequenceHead_);
    auto* on = iconButton(QStringLiteral("chevron-right"), tr("Next sequence"), sequenceHead_);
    number_ = new QLineEdit(sequenceHead_);
    number_->setFixedSize(52, 20);
    number_->setAccessibleName(tr("Number of the sequence"));
    sequenceHead_->addControl(back);
    sequenceHead_->addControl(number_);
    sequenceHead_->addControl(on);
    connect(back, &QPushButton::clicked, this, [this] { showSequence(sequence_.index - 1); });
    connect(on, &QPushButton::clicked, this, [this] { showSequence(sequence_.index + 1); });
    connect(number_, &QLineEdit::returnPressed, this, [this] {
        bool good = false;
        const qlonglong number = number_->text().remove(QLatin1Char(',')).toLongLong(&good);
        if (good) {
            showSequence(number - 1);
        }
    });
    strip_ = new PackStrip(tr("Sequence"), part);
    column->addWidget(sequenceHead_);
    column->addWidget(strip_);
    column->addWidget(new PackLegend(PackLegend::Of::Sequence, part));
    return part;
}

QWidget* DataPage::buildTokens(QWidget* parent) {
    auto* part = new QWidget(parent);
    auto* column = plainColumn(part);
    rowHead_ = new SectionHead({}, part);
    turns_ = new TurnStrip(tr("Turns of the row"), part);
    grid_ = new TokenGrid(tr("Tokens of the row"), part);
    column->addWidget(rowHead_);
    column->addWidget(turns_);
    column->addWidget(grid_, 1);
    column->addWidget(new PackLegend(PackLegend::Of::Tokens, part));
    return part;
}

QWidget* DataPage::buildMask(QWidget* parent) {
    maskPart_ = new Surface(Surface::Fill::Canvas, Surface::Left, parent);
    auto* column = new QVBoxLayout(maskPart_);
    column->setContentsMargins(1, 0, 0, 0);
    column->setSpacing(0);
    maskHead_ = new SectionHead(tr("Block mask"), maskPart_);
    kinds_ = new SegmentedControl({tr("Full layers"), tr("Sliding")}, maskHead_);
    kinds_->setAccessibleName(tr("Layers"));
    kinds_->setFixedHeight(20);
    maskHead_->addControl(kinds_);
    mask_ = new MaskPixels(tr("Block mask"), maskPart_);
    counts_ = new MaskCounts(maskPart_);
    auto* inner = new QVBoxLayout;
    inner->setContentsMargins(10, 7, 12, 0);
    inner->setSpacing(0);
    inner->addWidget(mask_);
    inner->addWidget(counts_);
    inner->addStretch(1);
    column->addWidget(maskHead_);
    column->addLayout(inner, 1);
    return maskPart_;
}

void DataPage::connectPlots() {
    connect(&typing_, &QTimer::timeout, this, &DataPage::read);
    const auto changed = [this] {
        if (isVisible()) {
            typing_.start();
        }
    };
    connect(form_, &ExperimentForm::changedText, this, changed);
    connect(form_, &ExperimentForm::reloaded, this, changed);
    connect(fields_, &DataForm::openWanted, this, &DataPage::chooseFile);
    connect(stop_, &QPushButton::clicked, this, &DataPage::stopReading);
    connect(&job_, &DataJob::counted, this,
            [this](const DataCounts& counts) { showSentence(readingSentence(counts), {}); });
    connect(&job_, &DataJob::ready, this, &DataPage::take);
    connect(&job_, &DataJob::failed, this, [this](const QString& error) {
        forget();
        emit failed(error);
        showState();
    });
    connect(bars_, &ItemPlot::itemClicked, this, [this](int item) { showSequence(item); });
    connect(strip_, &ItemPlot::itemClicked, this, [this](int item) { showRow(item); });
    connect(mask_, &ItemPlot::itemClicked, this, [this](int item) { showRow(item); });
    connect(turns_, &ItemPlot::itemClicked, this,
            [this](int item) { grid_->setCurrentToken(row_.turns[static_cast<std::size_t>(item)].begin, true); });
    connect(strip_, &PackStrip::positionHovered, this, [this](qint64 position) {
        const std::int64_t token = position - row_.place + row_.keptBegin;
        const bool mine = position >= 0 && row_.row >= 0 && token >= row_.keptBegin && token < row_.keptEnd;
        if (mine) {
            hoverToken(token, false);
        }
    });
    connect(grid_, &TokenGrid::tokenHovered, this, [this](qint64 token) { hoverToken(token, true); });
    connect(grid_, &TokenGrid::tokenChosen, this, [this](qint64 token) { hoverToken(token, true); });
    connect(grid_, &TokenGrid::viewChanged, this, &DataPage::updateInView);
    grid_->setSpoken([this](std::int64_t token) { return tokenSpoken(row_, token); });
    connect(kinds_, &SegmentedControl::currentChanged, this, &DataPage::showMask);
    for (PlotWidget* plot : {static_cast<PlotWidget*>(bars_), static_cast<PlotWidget*>(strip_),
                             static_cast<PlotWidget*>(turns_), static_cast<PlotWidget*>(mask_)}) {
        connect(plot, &PlotWidget::readoutChanged, this, &DataPage::readoutChanged);
    }
    connect(inspector_, &DataInspector::lineWanted, this, &DataPage::showLine);
    connect(inspector_, &DataInspector::tableWanted, this, &DataPage::listRows);
    connect(inspector_, &DataInspector::exceptionWanted, this, &DataPage::except);
    connect(inspector_, &DataInspector::readoutChanged, this, &DataPage::readoutChanged);
    connect(bar_, &DataBar::startWanted, this, &DataPage::startWanted);
    connect(bar_, &DataBar::experimentWanted, this, [this](const QString& json) { emit failed(form_->load(json)); });
    connect(bar_, &DataBar::commandWanted, this, &DataPage::copyCommand);
    connect(bar_, &DataBar::stepSecondsChanged, inspector_, &DataInspector::setStepSeconds);
    connect(&Theme::instance(), &Theme::changed, this, [this] {
        if (set_) {
            showSentence(dataSentence(*set_), dataSecondLine(*set_));
        }
    });
}

} // namespace vitrine::ui
