// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory events of a stretch of time as a table: births and deaths of device blocks, and requests that failed.
// Collecting happens on a pool thread; texts are made for the rows that are drawn.

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "ui/models/common/latest_job.h"
#include "ui/models/common/time_cursor.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class EventTableModel final : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { Time, Event, Size, Tensor, Category, Total, Scope, ColumnCount };
    static constexpr std::size_t kLimit = 200'000; ///< rows shown; the first ones of the stretch

    struct Row {
        enum class Kind : std::uint8_t { Birth, Death, Failure };
        base::TimeNs time = 0;
        Kind kind = Kind::Birth;
        std::size_t index = 0;   ///< of the allocation or the failure
        std::uint64_t total = 0; ///< device bytes after it
    };

    explicit EventTableModel(QObject* parent = nullptr);

    /// Null clears.
    void setSource(const TimelinePtr& timeline, TimeRange range);
    bool waiting() const { return job_.busy(); }
    std::size_t found() const { return found_; } ///< events in the stretch, also those beyond the limit
    const Row& row(int index) const { return rows_[static_cast<std::size_t>(index)]; }
    /// Id of the allocation of a row; 0 for a failure.
    std::uint64_t allocation(int index) const;

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

signals:
    void rebuilt();

private:
    struct Found {
        std::vector<Row> rows;
        std::size_t all = 0;
    };
    static Found collect(const profiler::RunTimeline& timeline, TimeRange range);
    QString text(const Row& row, int column) const;

    TimelinePtr shown_;
    std::vector<Row> rows_;
    std::size_t found_ = 0;
    LatestJob<Found> job_;
};

} // namespace vitrine::ui
