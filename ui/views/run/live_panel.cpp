// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/run/live_panel.h"

#include <QBoxLayout>
#include <QFormLayout>
#include <QHeaderView>
#include <QPainter>
#include <QTreeView>
#include <cmath>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_filter.h"
#include "ui/models/session/run_summary.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/roofline_plot.h"
#include "ui/widgets/timeline/stack_painter.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kLastRuns = 5;
constexpr double kStripGutter = 52;
constexpr int kSideBySide = 640; ///< from this width on the blocks stand beside each other

} // namespace

MemoryStrip::MemoryStrip(QWidget* parent) : QWidget(parent) {
    setFixedHeight(120);
    setAccessibleName(tr("Memory by category"));
    connect(&Theme::instance(), &Theme::changed, this, qOverload<>(&QWidget::update));
}

void MemoryStrip::setTimeline(TimelinePtr timeline) {
    timeline_ = std::move(timeline);
    update();
}

void MemoryStrip::paintEvent(QPaintEvent*) {
    const ThemeTokens& t = themeTokens();
    QPainter painter(this);
    painter.fillRect(rect(), t.canvas);
    if (!timeline_ || timeline_->memory().events() == 0) {
        drawText(painter, rect(), Qt::AlignCenter, tr("No memory was recorded yet"), t.text3,
                 Theme::instance().font(TypeRole::Table));
        return;
    }
    const double dpr = devicePixelRatioF();
    if (drawn_ != timeline_ || drawnTheme_ != t.name || image_.size() != (QSizeF(size()) * dpr).toSize()) {
        PlotFrame frame;
        frame.size = size();
        frame.dpr = dpr;
        frame.gutter = kStripGutter;
        StackInput input;
        input.axis = AxisMap::ofTime({timeline_->begin(), std::max(timeline_->end(), timeline_->begin() + 1)},
                                     frame.plot().width());
        input.model = categoryStack(*timeline_, input.axis, frame.columns());
        input.labels = false;
        image_ = paintStack(input, frame, t);
        drawn_ = timeline_;
        drawnTheme_ = t.name;
        const profiler::MemoryColumn peak = timeline_->memory().peak(timeline_->begin(), timeline_->end() + 1);
        setToolTip(tr("Peak %1 at %2").arg(peakText(peak.maxTotal, peak.incomplete), instantText(peak.maxTime)));
    }
    painter.drawImage(QPointF(0, 0), image_);
}

LivePanel::LivePanel(QWidget* parent) : QWidget(parent) {
    header_ = new DockHeader(tr("Live"), this);
    blocks_ = new QBoxLayout(QBoxLayout::TopToBottom, this);
    blocks_->setContentsMargins(1, 0, 0, 0);
    blocks_->setSpacing(0);
    blocks_->addWidget(buildNumbers());
    blocks_->addWidget(buildMemory());
    blocks_->addWidget(buildRoofline());
    blocks_->addWidget(buildRuns(), 1);
}

namespace {

TextLabel* caption(const QString& text, QWidget* parent) {
    auto* label = new TextLabel(text, TypeRole::Table, TextColor::Text1, true, parent);
    label->setContentsMargins(12, 4, 12, 6);
    return label;
}

QVBoxLayout* columnOf(QWidget* block) {
    auto* column = new QVBoxLayout(block);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    return column;
}

} // namespace

QWidget* LivePanel::buildNumbers() {
    auto* block = new QWidget(this);
    QVBoxLayout* column = columnOf(block);
    auto* rows = new QFormLayout;
    rows->setContentsMargins(12, 8, 12, 10);
    rows->setHorizontalSpacing(12);
    rows->setVerticalSpacing(6);
    rows->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    const QString names[] = {tr("State"),  tr("Speed"),    tr("First token"),
                             tr("Tokens"), tr("KV cache"), tr("Peak memory")};
    for (std::size_t i = 0; i < values_.size(); ++i) {
        auto* label = new TextLabel(names[i], TypeRole::Table, TextColor::Text3, false, block);
        label->setFixedWidth(84);
        values_[i] = new TextLabel(unknownText(), TypeRole::Table, TextColor::Text1, false, block);
        values_[i]->setElide(true);
        rows->addRow(label, values_[i]);
    }
    column->addLayout(rows);
    ending_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, block);
    ending_->setWordWrap(true);
    ending_->setContentsMargins(12, 0, 12, 10);
    ending_->hide();
    column->addWidget(ending_);
    column->addStretch(1);
    return block;
}

QWidget* LivePanel::buildMemory() {
    auto* block = new QWidget(this);
    QVBoxLayout* column = columnOf(block);
    column->addWidget(caption(tr("Memory by category"), block));
    strip_ = new MemoryStrip(block);
    column->addWidget(strip_);
    column->addSpacing(8);
    column->addStretch(1);
    return block;
}

QWidget* LivePanel::buildRoofline() {
    rooflineBlock_ = new QWidget(this);
    QVBoxLayout* column = columnOf(rooflineBlock_);
    column->addWidget(caption(tr("Decode roofline"), rooflineBlock_));
    rooflineSentence_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, rooflineBlock_);
    rooflineSentence_->setWordWrap(true);
    rooflineSentence_->setContentsMargins(12, 0, 12, 4);
    column->addWidget(rooflineSentence_);
    roofline_ = new RooflinePlot(rooflineBlock_);
    column->addWidget(roofline_);
    column->addSpacing(8);
    column->addStretch(1);
    rooflineBlock_->hide();
    return rooflineBlock_;
}

QWidget* LivePanel::buildRuns() {
    auto* block = new QWidget(this);
    QVBoxLayout* column = columnOf(block);
    column->addWidget(caption(tr("Last runs"), block));
    runs_ = new QTreeView(block);
    runs_->setAccessibleName(tr("Last runs"));
    setUpTable(runs_, false, true);
    runs_->setSortingEnabled(false);
    model_ = new FlatTreeModel(this);
    runs_->setModel(model_);
    column->addWidget(runs_, 1);
    const auto open = [this](const QModelIndex& index) {
        if (const FlatNode* node = model_->node(index)) {
            emit runWanted(static_cast<qint64>(node->key));
        }
    };
    connect(runs_, &QTreeView::clicked, this, open);
    connect(runs_, &QTreeView::activated, this, open);
    return block;
}

void LivePanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    blocks_->setDirection(width() > kSideBySide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
}

void LivePanel::setRoofline(const std::optional<profiler::RooflineSummary>& facts) {
    rooflineBlock_->setVisible(facts.has_value());
    rooflineSentence_->setText(facts ? textOf(profiler::rooflineSentence(*facts)) : QString());
    roofline_->setToolTip(facts ? textOf(profiler::rooflineFootnote(*facts)) : QString());
    roofline_->setFacts(facts.value_or(profiler::RooflineSummary{}));
}

void LivePanel::setNumbers(const QString& title, const LiveNumbers& numbers) {
    header_->setTitle(title);
    values_[0]->setText(numbers.state.isEmpty() ? unknownText() : numbers.state);
    values_[1]->setText(numbers.tokensPerSecond && *numbers.tokensPerSecond > 0
                            ? tr("%1 tok/s").arg(countText(static_cast<qint64>(std::llround(*numbers.tokensPerSecond))))
                            : unknownText());
    values_[2]->setText(numbers.firstTokenSeconds && *numbers.firstTokenSeconds > 0
                            ? durationText(static_cast<base::TimeNs>(*numbers.firstTokenSeconds * 1e9))
                            : unknownText());
    values_[3]->setText(!numbers.tokens        ? unknownText()
                        : numbers.wantedTokens ? tr("%1 of %2")
                                                     .arg(countText(static_cast<qint64>(*numbers.tokens)),
                                                          countText(static_cast<qint64>(*numbers.wantedTokens)))
                                               : countText(static_cast<qint64>(*numbers.tokens)));
    values_[4]->setText(bytesText(numbers.kvBytes));
    values_[5]->setText(bytesText(numbers.peakBytes));
    ending_->setText(numbers.ending.isEmpty() ? QString() : tr("The run %1.").arg(numbers.ending));
    ending_->setVisible(!numbers.ending.isEmpty());
}

void LivePanel::setTimeline(TimelinePtr timeline) {
    strip_->setTimeline(std::move(timeline));
}

void LivePanel::setRuns(const std::vector<sessions::RunInfo>& runs, sessions::RunId shown) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{tr("Name"), false}, {tr("tok/s"), true}, {tr("Peak"), true}};
    for (std::size_t i = runs.size(); i-- > 0 && runs.size() - i <= kLastRuns;) {
        const sessions::RunInfo& run = runs[i];
        const auto rate = runTokensPerSecond(run);
        FlatNode node;
        node.key = static_cast<quint64>(run.id);
        node.cells = {FlatCell(runTitle(run)),
                      FlatCell(rate ? countText(static_cast<qint64>(std::llround(*rate))) : unknownText()),
                      FlatCell(bytesText(runSummary(run).peak))};
        node.cells[0].tip = runTitle(run);
        tree->nodes.push_back(std::move(node));
    }
    model_->setTree(tree);
    runs_->header()->setStretchLastSection(false);
    runs_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    runs_->setColumnWidth(1, 60);
    runs_->setColumnWidth(2, 84);
    const QModelIndex now = model_->indexOfKey(static_cast<quint64>(shown));
    if (now.isValid()) {
        runs_->setCurrentIndex(now);
    }
}

void LivePanel::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), themeTokens().panel);
}

} // namespace vitrine::ui
