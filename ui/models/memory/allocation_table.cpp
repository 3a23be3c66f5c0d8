// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/allocation_table.h"

#include <algorithm>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"
#include "ui/models/memory/allocation_links.h"

namespace vitrine::ui {

namespace {

using profiler::AllocationRow;
using profiler::RunTimeline;

base::TimeNs deathOf(const RunTimeline& timeline, const AllocationRow& row) {
    return row.freed < 0 ? timeline.end() : row.freed;
}

std::vector<std::size_t> chosenRows(const RunTimeline& timeline, TimeRange range, int column, Qt::SortOrder order) {
    struct Keyed {
        double number;
        std::uint32_t text;
        std::size_t row;
    };
    std::vector<Keyed> keyed;
    const auto rows = timeline.memory().allocations();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const AllocationRow row = rows[i];
        const base::TimeNs death = deathOf(timeline, row);
        if (row.born >= range.end || death < range.begin || row.space != base::MemorySpace::Device) {
            continue;
        }
        double number = 0;
        switch (column) {
        case AllocationTableModel::Size:
            number = static_cast<double>(row.bytes);
            break;
        case AllocationTableModel::Born:
            number = static_cast<double>(row.born);
            break;
        case AllocationTableModel::Lifetime:
            number = static_cast<double>(death - row.born);
            break;
        case AllocationTableModel::Category:
            number = static_cast<double>(row.category);
            break;
        case AllocationTableModel::Address:
            number = static_cast<double>(row.address);
            break;
        case AllocationTableModel::Scope:
            number = static_cast<double>(row.scope);
            break;
        case AllocationTableModel::Tensor:
            number = (static_cast<double>(row.format) * 256 + row.dtype) * 16 + row.dimensions;
            break;
        default:
            break;
        }
        keyed.push_back({number, row.name, i});
    }
    const bool byName = column == AllocationTableModel::Name;
    const bool rising = order == Qt::AscendingOrder;
    std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
        if (byName) {
            const auto x = timeline.text(a.text), y = timeline.text(b.text);
            return rising ? x < y : y < x;
        }
        return rising ? a.number < b.number : b.number < a.number;
    });
    std::vector<std::size_t> out;
    out.reserve(keyed.size());
    for (const Keyed& one : keyed) {
        out.push_back(one.row);
    }
    return out;
}

} // namespace

AllocationTableModel::AllocationTableModel(QObject* parent) : QAbstractTableModel(parent), job_(this) {}

void AllocationTableModel::setSource(TimelinePtr timeline, TimeRange range) {
    if (timeline_ == timeline && range_ == range) {
        return;
    }
    timeline_ = std::move(timeline);
    range_ = range;
    rebuild();
}

void AllocationTableModel::rebuild() {
    if (!timeline_) {
        beginResetModel();
        order_.clear();
        shown_.reset();
        endResetModel();
        return;
    }
    const TimelinePtr timeline = timeline_;
    job_.start([timeline, range = range_, column = sortColumn_,
                order = sortOrder_] { return chosenRows(*timeline, range, column, order); },
               [this, timeline](std::vector<std::size_t> order) {
                   beginResetModel();
                   shown_ = timeline;
                   workEnd_ = timeline ? endOfWork(*timeline) : 0;
                   order_ = std::move(order);
                   endResetModel();
                   emit rebuilt();
               });
}

int AllocationTableModel::rowOfAllocation(std::size_t allocation) const {
    const auto found = std::find(order_.begin(), order_.end(), allocation);
    return found == order_.end() ? -1 : static_cast<int>(found - order_.begin());
}

int AllocationTableModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(std::min<std::size_t>(order_.size(), 1u << 30));
}

int AllocationTableModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant AllocationTableModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || !shown_ || index.row() >= rowCount()) {
        return {};
    }
    if (role == Qt::TextAlignmentRole) {
        return headerData(index.column(), Qt::Horizontal, role);
    }
    const AllocationRow row = shown_->memory().allocations()[allocation(index.row())];
    if (role == CategoryRole) {
        return index.column() == Name ? QVariant(static_cast<int>(row.category)) : QVariant();
    }
    if (role == KeyRole) {
        return static_cast<quint64>(row.id);
    }
    const bool raw = role == RawRole;
    if (role != Qt::DisplayRole && !raw) {
        return role == Qt::ToolTipRole && index.column() == Size ? QVariant(exactBytesText(row.bytes)) : QVariant();
    }
    switch (index.column()) {
    case Name:
        return raw ? textOf(shown_->text(row.name)) : shortTensorName(shown_->text(row.name));
    case Category:
        return textOf(base::categoryName(row.category));
    case Size:
        return raw ? QString::number(row.bytes) : bytesText(row.bytes);
    case Born:
        return raw ? QString::number(row.born) : instantText(row.born);
    case Lifetime: {
        const base::TimeNs length = deathOf(*shown_, row) - row.born;
        return raw                                     ? QString::number(length)
               : livesToTheEnd(*shown_, row, workEnd_) ? tr("to the end")
                                                       : durationText(length);
    }
    case Tensor:
        return tensorText(*shown_, row);
    case Scope:
        return QString::fromStdString(shown_->scopes().path(row.scope));
    case Address:
        return raw ? QString::number(row.address) : addressText(row.address);
    default:
        return {};
    }
}

QVariant AllocationTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal) {
        return {};
    }
    if (role == Qt::TextAlignmentRole) {
        const bool number = section == Size || section == Born || section == Lifetime;
        return static_cast<int>(Qt::AlignVCenter | (number ? Qt::AlignRight : Qt::AlignLeft));
    }
    if (role != Qt::DisplayRole) {
        return {};
    }
    const QString titles[] = {tr("Name"),     tr("Category"), tr("Size"),  tr("Made"),
                              tr("Lifetime"), tr("Tensor"),   tr("Scope"), tr("Address")};
    return section >= 0 && section < ColumnCount ? QVariant(titles[section]) : QVariant();
}

void AllocationTableModel::sort(int column, Qt::SortOrder order) {
    if (column >= 0 && (column != sortColumn_ || order != sortOrder_)) {
        sortColumn_ = column;
        sortOrder_ = order;
        rebuild();
    }
}

} // namespace vitrine::ui
