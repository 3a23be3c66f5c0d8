// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The page Samples: all groups of a step, the answers that their judges needed longest for, and the chosen group with
// one or two of its answers, or those of A and B beside each other.

#include <QWidget>

#include "ui/models/rl/rl_samples.h"

class QTableView;

namespace vitrine::ui {

class EmptyState;
class FactTable;
class FlatTreeModel;
class RlGroupBox;
class SegmentedControl;

class RlSamplesPage final : public QWidget {
    Q_OBJECT

public:
    explicit RlSamplesPage(QWidget* parent);

    /// Null: there are none, and `nothing` says why.
    void setSamples(const RlSamplesPtr& samples, const QString& nothing);
    void setGroup(std::size_t group, const RlGroupPair& pair); ///< index of samples->groups, and what answers it
    RlGroupOrder order() const;
    SegmentedControl* orders() const { return orders_; }
    QTableView* groups() const { return groups_; }
    FactTable* slow() const { return slow_; }
    RlGroupBox* group() const { return box_; }
    QString emptyText() const;
    QList<QWidget*> stops() const;

signals:
    void groupChosen(quint64 group);
    void orderChanged();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void showGroups();
    void markGroup();

    SegmentedControl* orders_;
    QTableView* groups_;
    FlatTreeModel* model_;
    FactTable* slow_;
    RlGroupBox* box_;
    EmptyState* nothing_;
    QWidget *content_, *left_;
    RlSamplesPtr samples_;
    std::size_t group_ = 0;
    bool filling_ = false;
};

} // namespace vitrine::ui
