// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/memory/alive_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollArea>
#include <QSplitter>
#include <QTreeView>
#include <QVBoxLayout>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/format.h"
#include "ui/models/common/stack_model.h"
#include "ui/models/memory/alive_tree.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kOpenAtFirst = 6;

} // namespace

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
    connect(pinned_, &PinnedPanel::allocationWanted, this, [this](quint64 id) {
        time_->select({id, 0});
        if (const auto row = timeline_ ? timeline_->memory().findAllocation(id) : std::nullopt) {
            time_->goTo(timeline_->memory().allocations()[*row].born);
        }
    });
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
        peakTime_ = timeline_->memory().peak(timeline_->begin(), timeline_->end() + 1).maxTime;
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
    tree_->setHeaderHidden(!timeline_); // a head without columns is a white strip
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
    const auto row = timeline_ && id != 0 ? timeline_->memory().findAllocation(id) : std::nullopt;
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
