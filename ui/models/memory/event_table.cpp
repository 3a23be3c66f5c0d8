// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/event_table.h"

#include <algorithm>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"

namespace vitrine::ui {

using profiler::AllocationRow;

namespace {

/// Numbers stand at the right.
int alignmentOf(int column) {
    using enum EventTableModel::Column;
    const bool number = column == Time || column == Size || column == Total;
    return static_cast<int>((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
}

} // namespace

EventTableModel::EventTableModel(QObject* parent) : QAbstractTableModel(parent), job_(this) {}

EventTableModel::Found EventTableModel::collect(const profiler::RunTimeline& timeline, TimeRange range) {
    Found found;
    const auto rows = timeline.memory().allocations();
    const auto inside = [&](base::TimeNs time) { return time >= range.begin && time < range.end; };
    const auto take = [&](std::size_t index, const AllocationRow& row) {
        if (inside(row.born)) {
            found.rows.push_back({row.born, Row::Kind::Birth, index, 0});
        }
        if (row.freed >= 0 && inside(row.freed)) {
            found.rows.push_back({row.freed, Row::Kind::Death, index, 0});
        }
    };
    const std::uint64_t before = range.begin > 0 ? profiler::totalBytes(timeline.memory().at(range.begin - 1)) : 0;
    if (range.begin > 0) {
        for (const std::size_t index : timeline.memory().aliveAt(range.begin - 1)) {
            take(index, rows[index]);
        }
    }
    auto next = static_cast<std::size_t>(
        std::ranges::lower_bound(rows, range.begin, {}, [](const AllocationRow& row) { return row.born; }) -
        rows.begin());
    // Rows come by birth: from the limit on, later births cannot be among the first events.
    std::size_t births = 0;
    for (; next < rows.size() && births <= kLimit; ++next) {
        const AllocationRow row = rows[next];
        if (row.born >= range.end) {
            break;
        }
        if (row.space == base::MemorySpace::Device) {
            take(next, row);
            ++births;
        }
    }
    const auto failures = timeline.memory().outOfMemory();
    for (std::size_t i = 0; i < failures.size(); ++i) {
        if (inside(failures[i].time)) {
            found.rows.push_back({failures[i].time, Row::Kind::Failure, i, 0});
        }
    }
    std::ranges::stable_sort(found.rows, [](const Row& a, const Row& b) {
        return a.time != b.time ? a.time < b.time : a.kind == Row::Kind::Death && b.kind != Row::Kind::Death;
    });
    const profiler::RangeTotals totals = timeline.memory().totals(range.begin, range.end);
    found.all = std::max<std::size_t>(found.rows.size(), totals.births + totals.deaths);
    if (found.rows.size() > kLimit) {
        found.rows.resize(kLimit);
    }
    std::uint64_t total = before;
    for (Row& row : found.rows) {
        if (row.kind == Row::Kind::Birth) {
            total += rows[row.index].bytes;
        } else if (row.kind == Row::Kind::Death) {
            total -= std::min(total, rows[row.index].bytes);
        }
        row.total = total;
    }
    return found;
}

void EventTableModel::setSource(const TimelinePtr& timeline, TimeRange range) {
    if (!timeline) {
        job_.cancel();
        beginResetModel();
        shown_.reset();
        rows_.clear();
        found_ = 0;
        endResetModel();
        emit rebuilt();
        return;
    }
    job_.start([timeline, range] { return collect(*timeline, range); },
               [this, timeline](Found found) {
                   beginResetModel();
                   shown_ = timeline;
                   rows_ = std::move(found.rows);
                   found_ = found.all;
                   endResetModel();
                   emit rebuilt();
               });
}

std::uint64_t EventTableModel::allocation(int index) const {
    const Row& at = row(index);
    return at.kind == Row::Kind::Failure ? 0 : shown_->memory().allocations()[at.index].id;
}

int EventTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int EventTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QString EventTableModel::text(const Row& row, int column) const {
    if (column == Time) {
        return instantText(row.time);
    }
    if (column == Total) {
        return bytesText(row.total);
    }
    if (row.kind == Row::Kind::Failure) {
        const base::OutOfMemoryEvent event = shown_->memory().outOfMemory()[row.index];
        switch (column) {
        case Event:
            return tr("out of memory");
        case Size:
            return bytesText(event.requested);
        case Tensor:
            return shortTensorName(shown_->text(event.name.value));
        case Category:
            return textOf(base::categoryName(event.category));
        default:
            return QString::fromStdString(shown_->scopes().path(event.scope.value));
        }
    }
    const AllocationRow block = shown_->memory().allocations()[row.index];
    switch (column) {
    case Event:
        return row.kind == Row::Kind::Birth ? tr("allocate") : tr("free");
    case Size:
        return row.kind == Row::Kind::Birth ? QLatin1Char('+') + bytesText(block.bytes)
                                            : QChar(0x2212) + bytesText(block.bytes);
    case Tensor:
        return shortTensorName(shown_->text(block.name));
    case Category:
        return textOf(base::categoryName(block.category));
    default:
        return QString::fromStdString(shown_->scopes().path(block.scope));
    }
}

QVariant EventTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount()) {
        return {};
    }
    const Row& at = row(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return text(at, index.column());
    case Qt::TextAlignmentRole:
        return alignmentOf(index.column());
    case CategoryRole:
        if (index.column() == Tensor && at.kind != Row::Kind::Failure) {
            return static_cast<int>(shown_->memory().allocations()[at.index].category);
        }
        return {};
    case Qt::ToolTipRole:
        return index.column() == Size && at.kind != Row::Kind::Failure
                   ? exactBytesText(shown_->memory().allocations()[at.index].bytes)
                   : QVariant();
    default:
        return {};
    }
}

QVariant EventTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) {
        return {};
    }
    if (role == Qt::TextAlignmentRole) {
        return alignmentOf(section);
    }
    if (role != Qt::DisplayRole) {
        return {};
    }
    static const char* const kTitles[] = {QT_TR_NOOP("Time"),   QT_TR_NOOP("Event"),    QT_TR_NOOP("Size"),
                                          QT_TR_NOOP("Tensor"), QT_TR_NOOP("Category"), QT_TR_NOOP("Total after"),
                                          QT_TR_NOOP("Scope")};
    return tr(kTitles[section]);
}

} // namespace vitrine::ui
