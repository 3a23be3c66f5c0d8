// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The table twin of the memory plots: the allocations that live in the visible range, made row by row when they are
// drawn. Choosing and sorting rows happens on a pool thread; the model changes in one go when that is done.

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "ui/models/common/latest_job.h"
#include "ui/models/common/time_cursor.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class AllocationTableModel final : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Name, Category, Size, Born, Lifetime, Tensor, Scope, Address, ColumnCount };

    explicit AllocationTableModel(QObject* parent = nullptr);

    void setSource(TimelinePtr timeline, TimeRange range);
    bool waiting() const { return job_.busy(); }
    /// Row of the timeline that a row of the table shows.
    std::size_t allocation(int row) const { return order_[static_cast<std::size_t>(row)]; }
    int rowOfAllocation(std::size_t allocation) const; ///< -1: not listed

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;

signals:
    void rebuilt();

private:
    void rebuild();
    TimelinePtr timeline_;
    TimelinePtr shown_;        ///< the timeline that order_ belongs to
    base::TimeNs workEnd_ = 0; ///< of shown_
    TimeRange range_;
    int sortColumn_ = Size;
    Qt::SortOrder sortOrder_ = Qt::DescendingOrder;
    std::vector<std::size_t> order_;
    LatestJob<std::vector<std::size_t>> job_;
};

} // namespace vitrine::ui
