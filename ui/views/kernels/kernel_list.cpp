// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kernels/kernel_list.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QStackedLayout>
#include <QTreeView>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

KernelList::KernelList(bool panel, QWidget* parent) : QWidget(parent), job_(this) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* bar = new Surface(Surface::Fill::Panel, Surface::Bottom, this);
    bar->setFixedHeight(32);
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(12);
    filter_ = new QLineEdit(bar);
    filter_->setPlaceholderText(tr("Kernel or op"));
    filter_->setAccessibleName(tr("Filter kernels"));
    filter_->setClearButtonEnabled(true);
    filter_->setFixedWidth(240);
    setControlHeight(filter_, panel ? 22 : 24);
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, bar);
    facts_->setElide(true);
    facts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row->addWidget(filter_);
    row->addWidget(facts_, 1);
    column->addWidget(bar);
    auto* body = new QWidget(this);
    stack_ = new QStackedLayout(body);
    table_ = new QTreeView(body);
    table_->setAccessibleName(tr("Kernels"));
    setUpTable(table_, false, panel);
    model_ = new FlatTreeModel(this);
    table_->header()->setSortIndicator(KernelTotal, Qt::DescendingOrder);
    table_->setModel(model_);
    table_->setItemDelegateForColumn(KernelShare, new ShareBarDelegate(table_));
    table_->header()->setStretchLastSection(false);
    empty_ = new EmptyState(body);
    stack_->addWidget(table_);
    stack_->addWidget(empty_);
    column->addWidget(body, 1);
    connect(filter_, &QLineEdit::textChanged, this, &KernelList::refresh);
    const auto announce = [this](const QModelIndex& index) {
        const FlatNode* node = model_->node(index);
        if (node != nullptr && node->key > 0 && stats_ && node->key <= stats_->table.kernels.size()) {
            emit kernelChosen(textOf(stats_->table.kernels[node->key - 1].name));
        }
    };
    connect(table_, &QTreeView::clicked, this, announce);
    connect(table_, &QTreeView::activated, this, announce);
    refresh();
}

void KernelList::setSource(const TimelinePtr& timeline, const Ceilings& ceilings, TimeRange range,
                           const QString& where) {
    where_ = where;
    if (!timeline) {
        job_.cancel();
        stats_.reset();
        refresh();
        return;
    }
    job_.start([timeline, ceilings, range] { return kernelStats(*timeline, ceilings, range); },
               [this](KernelStatsPtr stats) {
                   stats_ = std::move(stats);
                   refresh();
                   emit rebuilt();
               });
}

void KernelList::setWhyEmpty(const QString& sentence) {
    whyEmpty_ = sentence;
    refresh();
}

void KernelList::refresh() {
    const std::size_t all = stats_ ? stats_->table.kernels.size() : 0;
    const bool fresh = model_->columnCount() == 0 || model_->rowCount() == 0;
    model_->setTree(stats_ ? kernelTree(*stats_, filter_->text()) : std::make_shared<FlatTree>());
    const int shown = model_->rowCount() - (model_->rowCount() > 1 ? 1 : 0);
    if (fresh && model_->rowCount() > 0) {
        const int widths[] = {266, 116, 72, 84, 84, 84, 72, 74, 90};
        for (int i = 0; i < KernelColumnCount; ++i) {
            table_->setColumnWidth(i, widths[i]);
        }
    }
    if (all == 0) {
        empty_->set(!whyEmpty_.isEmpty() ? whyEmpty_
                    : where_.isEmpty()   ? QString()
                                         : tr("No kernel begins in %1.").arg(where_));
    } else if (shown == 0) {
        empty_->set(tr("0 of %1 kernels match.").arg(countText(static_cast<qint64>(all))), tr("Clear filter"),
                    [this] { filter_->clear(); });
    }
    stack_->setCurrentIndex(shown > 0 ? 0 : 1);
    filter_->setEnabled(all > 0);
    if (!stats_ || all == 0) {
        facts_->setText({});
        return;
    }
    const profiler::KernelTable& table = stats_->table;
    facts_->setText(tr("%1 launches in %2, %3 busy, %4 of it inside ops")
                        .arg(countText(static_cast<qint64>(table.launches)), where_, durationText(table.busy),
                             shareText(table.attribution())));
    facts_->setToolTip(facts_->text());
}

void KernelList::choose(const QString& kernel) {
    for (std::size_t i = 0; stats_ && i < stats_->table.kernels.size(); ++i) {
        if (textOf(stats_->table.kernels[i].name) == kernel) {
            const QModelIndex now = table_->currentIndex(), wanted = model_->indexOfKey(i + 1);
            const FlatNode* node = model_->node(now);
            // A kernel of several ops has several rows: the chosen one stays.
            const bool there = node != nullptr && !node->cells.empty() && node->cells[KernelName].text == kernel;
            if (wanted.isValid() && !there) {
                table_->setCurrentIndex(wanted);
            }
            return;
        }
    }
}

QString KernelList::text() const {
    QModelIndexList rows = table_->selectionModel()->selectedRows();
    if (rows.isEmpty()) {
        for (int i = 0; i < model_->rowCount(); ++i) {
            rows << model_->index(i, 0);
        }
    }
    return asTabSeparated(*model_, rows);
}

} // namespace vitrine::ui
