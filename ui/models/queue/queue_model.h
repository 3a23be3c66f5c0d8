// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows of the queue: the running one, those that wait (the waiting runs of a sweep that follow each other as one
// row until they are unfolded), those held back, and what has ended below a line that folds. Rows are values, made anew
// when the queue changes; a new clock changes texts alone.

#include <QAbstractTableModel>
#include <QString>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/workload/sweep/run_queue.h"
#include "ui/models/queue/queue_rows.h"

namespace vitrine::ui {

class QueueModel final : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Run, Name, State, Progress, Peak, Left, Clock, kColumns };

    explicit QueueModel(QObject* parent);

    void setQueue(const engine::RunQueue& queue, std::int64_t nowMs);
    const QueueRow& row(int index) const { return rows_[static_cast<std::size_t>(index)]; }
    int rowOf(std::int64_t number) const; ///< -1: it is not shown
    /// Unfolds a group or the ended runs, or folds them again. True where the row folds.
    bool toggle(int row);
    /// What a screen reader says of a row.
    QString spoken(int row) const;
    /// The place among runs that have not begun at which a row that is dropped before `row` comes to stand.
    std::size_t placeBefore(int row) const;
    std::size_t placeOf(std::int64_t number) const; ///< among runs that have not begun

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;
    Qt::DropActions supportedDropActions() const override { return Qt::MoveAction; }
    QMimeData* mimeData(const QModelIndexList& indexes) const override;
    QStringList mimeTypes() const override;
    bool dropMimeData(const QMimeData* data, Qt::DropAction action, int row, int column,
                      const QModelIndex& parent) override;

signals:
    void moveWanted(qint64 number, int place);

private:
    std::vector<QueueRow> makeRows(const engine::RunQueue& queue, std::int64_t nowMs) const;

    std::vector<QueueRow> rows_;
    std::vector<std::int64_t> open_; ///< runs that have not begun, in order
    std::set<std::int64_t> unfolded_;
    bool endedShown_ = true;
    engine::RunQueue queue_;
    std::int64_t nowMs_ = 0;
};

} // namespace vitrine::ui
