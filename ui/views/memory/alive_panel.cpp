// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/alive_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QEvent>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTreeView>
#include <QVBoxLayout>

#include "ui/models/alive_tree.h"
#include "ui/models/format.h"
#include "ui/models/memory_facts.h"
#include "ui/models/stack_model.h"
#include "ui/widgets/delegates.h"
#include "ui/widgets/icons.h"
#include "ui/widgets/paint.h"
#include "ui/widgets/style.h"

namespace vitrine::ui {

namespace {

constexpr int kOpenAtFirst = 6;

} // namespace

PinnedPanel::PinnedPanel(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 1, 0, 0);
    column->setSpacing(0);
    header_ = new DockHeader({}, this);
    auto* copy = iconButton(QStringLiteral("copy"), tr("Copy as text"), header_);
    auto* close = iconButton(QStringLiteral("close"), tr("Unpin"), header_);
    header_->addControl(copy);
    header_->addControl(close);
    column->addWidget(header_);
    form_ = new QWidget(this);
    rows_ = new QFormLayout(form_);
    rows_->setContentsMargins(12, 8, 12, 8);
    rows_->setHorizontalSpacing(12);
    rows_->setVerticalSpacing(8);
    rows_->setLabelAlignment(Qt::AlignLeft | Qt::AlignTop);
    rows_->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    column->addWidget(form_);
    buttons_ = new QWidget(this);
    auto* row = new QHBoxLayout(buttons_);
    row->setContentsMargins(12, 2, 12, 8);
    row->setSpacing(8);
    auto* go = new QPushButton(icon(QStringLiteral("link")), tr("Go to op"), buttons_);
    auto* only = new QPushButton(tr("Show only this"), buttons_);
    auto* text = new QPushButton(tr("Copy as text"), buttons_);
    for (QPushButton* button : {go, only, text}) {
        row->addWidget(button);
    }
    row->addStretch(1);
    column->addWidget(buttons_);
    hint_ = new TextLabel(tr("Click an allocation to pin it here."), TypeRole::Table, TextColor::Text3, false, this);
    hint_->setContentsMargins(12, 10, 12, 10);
    hint_->setWordWrap(true);
    column->addWidget(hint_);
    column->addStretch(1);
    connect(close, &QPushButton::clicked, this, &PinnedPanel::closed);
    connect(go, &QPushButton::clicked, this, [this] { emit scopeWanted(scope_); });
    connect(only, &QPushButton::clicked, this, &PinnedPanel::onlyWanted);
    for (QPushButton* button : {copy, text}) {
        connect(button, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(asText()); });
    }
    clear();
}

void PinnedPanel::addRow(const QString& name, const QString& value, const QString& more, bool warn, bool mono) {
    text_ << (more.isEmpty() ? name + QStringLiteral(": ") + value
                             : name + QStringLiteral(": ") + value + QLatin1Char(' ') + more);
    auto* label = new TextLabel(name, TypeRole::Table, TextColor::Text3, false, form_);
    label->setFixedWidth(72);
    auto* field = new QWidget(form_);
    auto* cells = new QHBoxLayout(field);
    cells->setContentsMargins(0, 0, 0, 0);
    cells->setSpacing(6);
    auto* text = new TextLabel(value, TypeRole::Table, warn ? TextColor::Warn : TextColor::Text1, false, field);
    if (mono) {
        text->setFont(Theme::instance().monoFont(TypeRole::Table));
    }
    text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    text->setToolTip(value);
    text->setElide(true);
    cells->addWidget(text, more.isEmpty() ? 1 : 0);
    if (!more.isEmpty()) {
        auto* rest = new TextLabel(more, TypeRole::Table, TextColor::Text3, false, field);
        rest->setElide(true);
        cells->addWidget(rest, 1);
    }
    rows_->addRow(label, field);
}

void PinnedPanel::show(const profiler::MemoryTimeline& timeline, std::size_t index) {
    const profiler::AllocationRow row = timeline.allocations()[index];
    while (rows_->rowCount() > 0) {
        rows_->removeRow(0);
    }
    text_.clear();
    const QString name = shortTensorName(timeline.text(row.name));
    text_ << name;
    header_->setTitle(name);
    header_->setCategory(row.category);
    scope_ = row.scope;
    addRow(tr("Size"), bytesText(row.bytes), exactBytesText(row.bytes));
    if (const QString tensor = tensorText(row); !tensor.isEmpty()) {
        addRow(tr("Tensor"), tensor, {}, false, true);
    }
    addRow(tr("Category"), textOf(base::categoryName(row.category)));
    const std::string path = timeline.scopePath(row.scope);
    if (!path.empty()) {
        addRow(tr("Scope"), QString::fromStdString(path));
    }
    addRow(tr("Address"), addressText(row.address) + QStringLiteral(" + ") + bytesText(row.bytes));
    const profiler::ScopeRow* scope = timeline.scope(row.scope);
    addRow(tr("Made"), instantText(row.born),
           scope != nullptr ? tr("by %1").arg(textOf(timeline.text(scope->name))) : QString());
    if (row.freed >= 0) {
        addRow(tr("Freed"), instantText(row.freed), tr("after %1").arg(durationText(row.freed - row.born)));
    } else if (!timeline.outOfMemory().empty()) {
        addRow(tr("Freed"), tr("never: the run stopped at %1").arg(instantText(timeline.end())), {}, true);
    } else {
        addRow(tr("Freed"), tr("at the end of the run"));
    }
    header_->setVisible(true);
    form_->setVisible(true);
    buttons_->setVisible(true);
    hint_->setVisible(false);
}

void PinnedPanel::clear() {
    header_->setVisible(false);
    form_->setVisible(false);
    buttons_->setVisible(false);
    hint_->setVisible(true);
    text_.clear();
}

QString PinnedPanel::asText() const {
    return text_.join(QLatin1Char('\n'));
}

void PinnedPanel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), themeTokens().panel);
    hairline(painter, 0, width(), 0, themeTokens().line1);
}

AlivePanel::AlivePanel(TimeCursor* time, QWidget* parent) : QWidget(parent), time_(time), job_(this) {
    header_ = new DockHeader(tr("Alive"), this);
    group_ = new QComboBox(header_);
    group_->setAccessibleName(tr("Group by"));
    group_->addItems({tr("Category"), tr("Layer"), tr("Op"), tr("Dtype")});
    setControlHeight(group_, 22);
    header_->addControl(new TextLabel(tr("Group"), TypeRole::Table, TextColor::Text3, false, header_));
    header_->addControl(group_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 0, 0, 0);
    column->setSpacing(0);
    splitter_ = new QSplitter(Qt::Vertical, this);
    QSplitter* splitter = splitter_;
    tree_ = new QTreeView(splitter);
    tree_->setAccessibleName(tr("Alive at the cursor"));
    setUpTable(tree_, true, true);
    model_ = new FlatTreeModel(this);
    tree_->setModel(model_);
    tree_->setItemDelegateForColumn(2, new ShareBarDelegate(tree_));
    tree_->header()->setSortIndicator(1, Qt::DescendingOrder);
    tree_->installEventFilter(this);
    tree_->viewport()->installEventFilter(this);
    auto* area = new QScrollArea(splitter);
    area->setFrameShape(QFrame::NoFrame);
    area->setWidgetResizable(true);
    pinned_ = new PinnedPanel(area);
    area->setWidget(pinned_);
    splitter->addWidget(tree_);
    splitter->addWidget(area);
    splitter->setStretchFactor(0, 442);
    splitter->setStretchFactor(1, 340);
    splitter->setChildrenCollapsible(false);
    splitter->setSizes({442, 340});
    column->addWidget(splitter);
    connect(group_, &QComboBox::currentIndexChanged, this, [this](int index) {
        setGroupBy(static_cast<profiler::GroupBy>(index));
        emit groupChanged(index);
    });
    connect(time, &TimeCursor::cursorChanged, this, &AlivePanel::refresh);
    connect(time, &TimeCursor::selectionChanged, this, &AlivePanel::showPinned);
    connect(pinned_, &PinnedPanel::closed, this, [this] { time_->select({}); });
    const auto choose = [this](const QModelIndex& index) {
        const FlatNode* node = model_->node(index);
        if (node != nullptr && (node->key >> 63) == 0 && node->key != 0) {
            time_->select({node->key, 0});
        }
    };
    connect(tree_, &QTreeView::clicked, this, choose);
    connect(tree_, &QTreeView::activated, this, choose);
}

void AlivePanel::setTimeline(TimelinePtr timeline) {
    const bool other = !timeline_ != !timeline;
    timeline_ = std::move(timeline);
    expandedOnce_ = expandedOnce_ && !other;
    if (timeline_) {
        peakTime_ = timeline_->peak(timeline_->begin(), timeline_->end() + 1).maxTime;
    }
    refresh();
    showPinned();
}

void AlivePanel::setGroupBy(profiler::GroupBy groupBy) {
    if (groupBy_ != groupBy) {
        groupBy_ = groupBy;
        group_->setCurrentIndex(static_cast<int>(groupBy));
        refresh();
    }
}

base::TimeNs AlivePanel::shownTime() const {
    return time_->cursor().value_or(peakTime_);
}

void AlivePanel::refresh() {
    if (!timeline_) {
        header_->setTitle(tr("Alive"));
        model_->setTree(nullptr);
        return;
    }
    const base::TimeNs at = shownTime();
    header_->setTitle(time_->cursor() ? tr("Alive at %1").arg(instantText(at)) : tr("Alive at the peak"));
    job_.start([timeline = timeline_, at, by = groupBy_] { return aliveTree(*timeline, at, by); },
               [this](FlatTreePtr tree) {
                   const bool fresh = model_->tree().nodes.empty() || model_->sortColumn() < 0;
                   std::vector<quint64> open;
                   for (const FlatNode& node : model_->tree().nodes) {
                       const QModelIndex index = model_->indexOfKey(node.key);
                       if (tree_->isExpanded(index)) {
                           open.push_back(node.key);
                       }
                   }
                   model_->setTree(std::move(tree));
                   for (const quint64 key : open) {
                       tree_->expand(model_->indexOfKey(key));
                   }
                   fitColumns();
                   if (fresh || !expandedOnce_) {
                       model_->sort(1, Qt::DescendingOrder);
                       for (int row = 0; row < std::min(3, model_->rowCount()); ++row) {
                           const QModelIndex group = model_->index(row, 0);
                           if (model_->rowCount(group) <= kOpenAtFirst) { // long groups would hide the others
                               tree_->expand(group);
                           }
                       }
                       expandedOnce_ = true;
                   }
                   showPinned();
               });
}

void AlivePanel::fitColumns() {
    // The name takes what the numbers leave.
    const int wide = tree_->viewport()->width();
    const int size = 84, share = 80, blocks = 50;
    tree_->header()->setStretchLastSection(false);
    tree_->setColumnWidth(0, std::max(90, wide - size - share - blocks));
    tree_->setColumnWidth(1, size);
    tree_->setColumnWidth(2, share);
    tree_->setColumnWidth(3, blocks);
}

void AlivePanel::showPinned() {
    const std::uint64_t id = time_->selection().allocation;
    const auto row = timeline_ && id != 0 ? timeline_->findAllocation(id) : std::nullopt;
    if (!row) {
        pinned_->clear();
        tree_->clearSelection();
        return;
    }
    pinned_->show(*timeline_, *row);
    const QModelIndex index = model_->indexOfKey(id);
    if (index.isValid()) {
        tree_->setCurrentIndex(index);
        tree_->scrollTo(index);
    } else {
        tree_->clearSelection();
    }
}

void AlivePanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    // Below the plot the panel is wide and low: its parts stand side by side.
    const bool wide = width() > 640;
    if (wide != (splitter_->orientation() == Qt::Horizontal)) {
        splitter_->setOrientation(wide ? Qt::Horizontal : Qt::Vertical);
        splitter_->setSizes(wide ? QList<int>{width() * 3 / 5, width() * 2 / 5} : QList<int>{442, 340});
    }
}

bool AlivePanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == tree_->viewport() && event->type() == QEvent::Resize) {
        fitColumns();
    }
    if (watched == tree_ && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy)) {
        QApplication::clipboard()->setText(asTabSeparated(*model_, tree_->selectionModel()->selectedRows()));
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void AlivePanel::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), themeTokens().panel);
}

} // namespace vitrine::ui
