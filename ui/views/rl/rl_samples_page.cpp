// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_samples_page.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QScrollArea>
#include <QTableView>
#include <QVBoxLayout>

#include "ui/views/rl/rl_group_box.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kGroupsWidth = 360, kNarrowGroups = 320, kNarrowSamples = 980;
constexpr std::size_t kShownSlow = 6;

} // namespace

RlSamplesPage::RlSamplesPage(QWidget* parent)
    : QWidget(parent), nothing_(new EmptyState(this)), content_(new QWidget(this)) {
    auto* page = new QVBoxLayout(this);
    page->setContentsMargins(0, 0, 0, 0);
    page->addWidget(nothing_, 1);
    page->addWidget(content_, 1);
    auto* row = new QHBoxLayout(content_);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    left_ = new Surface(Surface::Fill::Panel, Surface::Right, content_);
    left_->setFixedWidth(kGroupsWidth);
    auto* list = new QVBoxLayout(left_);
    list->setContentsMargins(0, 0, 1, 0);
    list->setSpacing(0);
    auto* head = new DockHeader(tr("Groups"), left_);
    orders_ = new SegmentedControl({tr("Number"), tr("Variance"), tr("Difference")}, head);
    head->addControl(orders_);
    groups_ = new QTableView(left_);
    model_ = new FlatTreeModel(this);
    setUpTwin(groups_, model_, tr("Groups of the step"));
    groups_->setSortingEnabled(false);
    slow_ = new FactTable(tr("Answers that were slow to judge"), left_);
    slow_->setNumberWidths({56, 56, 76});
    list->addWidget(head);
    list->addWidget(groups_, 1);
    list->addWidget(slow_);
    auto* scroll = new QScrollArea(content_);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    box_ = new RlGroupBox(true, scroll);
    scroll->setWidget(box_);
    row->addWidget(left_);
    row->addWidget(scroll, 1);
    connect(orders_, &SegmentedControl::currentChanged, this, [this] {
        showGroups();
        emit orderChanged();
    });
    connect(groups_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& current) {
                if (const FlatNode* node = filling_ ? nullptr : model_->node(current)) {
                    emit groupChosen(node->key - 1);
                }
            });
    connect(slow_->view(), &QTableView::clicked, this, [this](const QModelIndex& index) {
        if (const FlatNode* node = slow_->model()->node(index)) {
            emit groupChosen(node->key / kSlowPlaces - 1);
            box_->chooseAnswer(node->key % kSlowPlaces);
        }
    });
    setSamples(nullptr, {});
}

RlGroupOrder RlSamplesPage::order() const {
    return static_cast<RlGroupOrder>(orders_->current());
}

void RlSamplesPage::setSamples(const RlSamplesPtr& samples, const QString& nothing) {
    const bool any = samples != nullptr && !samples->groups.empty();
    content_->setVisible(any);
    nothing_->setVisible(!any);
    nothing_->set(nothing);
    if (samples == samples_) {
        return;
    }
    samples_ = samples;
    const FlatTreePtr slow = any ? rlSlowTable(*samples, kShownSlow) : std::make_shared<FlatTree>();
    slow_->setVisible(!slow->nodes.empty());
    slow_->setTable(slow);
    showGroups();
}

void RlSamplesPage::showGroups() {
    if (samples_ == nullptr) {
        return;
    }
    filling_ = true;
    model_->setTree(rlGroupList(*samples_, order()));
    groups_->horizontalHeader()->setStretchLastSection(false);
    groups_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
    for (int column = 1; column < model_->columnCount(); ++column) {
        groups_->setColumnWidth(column, 72);
    }
    filling_ = false;
    markGroup();
}

void RlSamplesPage::setGroup(std::size_t group, const RlGroupPair& pair) {
    group_ = group;
    markGroup();
    box_->setGroups(pair);
}

void RlSamplesPage::markGroup() {
    filling_ = true;
    const QModelIndex row = model_->indexOfKey(static_cast<quint64>(group_) + 1);
    groups_->setCurrentIndex(row);
    groups_->scrollTo(row);
    filling_ = false;
}

void RlSamplesPage::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    left_->setFixedWidth(width() < kNarrowSamples ? kNarrowGroups : kGroupsWidth);
}

QString RlSamplesPage::emptyText() const {
    return content_->isHidden() ? nothing_->text() : QString();
}

QList<QWidget*> RlSamplesPage::stops() const {
    return content_->isHidden() ? QList<QWidget*>{} : QList<QWidget*>{groups_, box_->table()->view()};
}

} // namespace vitrine::ui
