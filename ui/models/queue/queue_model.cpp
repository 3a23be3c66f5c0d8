// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/queue/queue_model.h"

#include <QMimeData>
#include <algorithm>
#include <array>
#include <functional>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using engine::QueuedRun;
using engine::QueueState;

const QString kMimeType = QStringLiteral("application/x-vitrine-queued-run");

/// The newest ended runs stand above; a failed one stays in sight.
constexpr std::size_t kEndedShown = 200;

} // namespace

QueueModel::QueueModel(QObject* parent) : QAbstractTableModel(parent) {}

std::vector<QueueRow> QueueModel::makeRows(const engine::RunQueue& queue, std::int64_t nowMs) const {
    const QueueRowMaker maker(queue, nowMs);
    std::vector<QueueRow> out;
    std::vector<const QueuedRun*> waiting, held, ended;
    for (const QueuedRun& run : queue.runs()) {
        (engine::hasEnded(run.state) ? ended : run.state == QueueState::DoesNotFit ? held : waiting).push_back(&run);
    }
    std::ranges::stable_partition(waiting, [](const QueuedRun* run) { return run->state == QueueState::Running; });
    for (std::size_t i = 0; i < waiting.size();) {
        std::size_t end = i + 1;
        const QueuedRun& first = *waiting[i];
        while (first.state == QueueState::Waiting && !first.sweep.empty() && end < waiting.size() &&
               waiting[end]->sweep == first.sweep && waiting[end]->state == QueueState::Waiting) {
            ++end;
        }
        const bool folded = end - i > 1 && !unfolded_.contains(first.number);
        if (folded) {
            out.push_back(maker.group({waiting.begin() + static_cast<std::ptrdiff_t>(i),
                                       waiting.begin() + static_cast<std::ptrdiff_t>(end)}));
        }
        for (; i < end; ++i) {
            if (!folded) {
                out.push_back(maker.row(*waiting[i]));
            }
        }
    }
    for (const QueuedRun* run : held) {
        out.push_back(maker.row(*run));
    }
    if (!ended.empty()) {
        std::ranges::stable_sort(ended, std::greater(), [](const QueuedRun* run) { return run->endedMs; });
        out.push_back(QueueRowMaker::fold(ended, endedShown_));
        if (endedShown_) {
            ended.resize(std::min(ended.size(), kEndedShown));
            for (const QueuedRun* run : ended) {
                out.push_back(maker.row(*run));
            }
        }
    }
    return out;
}

void QueueModel::setQueue(const engine::RunQueue& queue, std::int64_t nowMs) {
    queue_ = queue;
    nowMs_ = nowMs;
    open_.clear();
    for (const QueuedRun& run : queue.runs()) {
        if (!engine::hasEnded(run.state) && run.state != QueueState::Running) {
            open_.push_back(run.number);
        }
    }
    std::vector<QueueRow> rows = makeRows(queue, nowMs);
    const auto same = [](const QueueRow& a, const QueueRow& b) {
        return a.kind == b.kind && a.number == b.number && a.state == b.state;
    };
    if (std::ranges::equal(rows, rows_, same)) { // the selection and the place stay
        rows_ = std::move(rows);
        if (!rows_.empty()) {
            emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
        }
        return;
    }
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
}

int QueueModel::rowOf(std::int64_t number) const {
    const auto found = std::ranges::find_if(rows_, [&](const QueueRow& row) {
        return row.kind != QueueRow::Kind::Fold &&
               (row.number == number || std::ranges::find(row.members, number) != row.members.end());
    });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

bool QueueModel::toggle(int row) {
    const QueueRow one = this->row(row);
    if (one.kind == QueueRow::Kind::Fold) {
        endedShown_ = !endedShown_;
    } else if (one.kind == QueueRow::Kind::Group) {
        unfolded_.insert(one.number);
    } else if (unfolded_.contains(one.number)) {
        unfolded_.erase(one.number);
    } else {
        return false;
    }
    setQueue(engine::RunQueue(queue_), nowMs_);
    return true;
}

QString QueueModel::spoken(int row) const {
    const QueueRow& one = this->row(row);
    if (one.kind == QueueRow::Kind::Fold) {
        return tr("%1. %2.").arg(one.name, one.progress);
    }
    QStringList parts{tr("Number %1, %2, %3").arg(one.number).arg(one.name, one.stateText)};
    for (const QString& text : {one.stateSub, one.progress, one.progressSub, one.valueText}) {
        if (!text.isEmpty()) {
            parts << text;
        }
    }
    if (one.peakText != unknownText()) {
        parts << tr("Peak %1 of %2 gibibytes %3")
                     .arg(one.peakText, gibText(static_cast<std::uint64_t>(one.budget)), one.peakWord);
    }
    return parts.join(QStringLiteral(". "));
}

std::size_t QueueModel::placeOf(std::int64_t number) const {
    return static_cast<std::size_t>(std::ranges::find(open_, number) - open_.begin());
}

std::size_t QueueModel::placeBefore(int row) const {
    for (; row < rowCount(); ++row) {
        const QueueRow& one = this->row(row);
        const std::size_t place = placeOf(one.number);
        if (one.kind != QueueRow::Kind::Fold && place < open_.size()) {
            return place;
        }
    }
    return open_.size();
}

int QueueModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int QueueModel::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : kColumns;
}

QVariant QueueModel::data(const QModelIndex& index, int role) const {
    const QueueRow& one = row(index.row());
    if (role == Qt::AccessibleTextRole) {
        return spoken(index.row());
    }
    if (role == Qt::ToolTipRole) {
        return index.column() == Progress && !one.progress.isEmpty() ? QVariant(one.progress) : QVariant();
    }
    if (role != Qt::DisplayRole) {
        return {};
    }
    const std::array<QString, kColumns> texts = {one.run,      one.name, one.stateText, one.progress,
                                                 one.peakText, one.left, one.clock};
    return texts[static_cast<std::size_t>(index.column())];
}

QVariant QueueModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation == Qt::Horizontal && role == Qt::TextAlignmentRole) {
        const bool right = section == Run || section == Left || section == Clock;
        return QVariant((right ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    }
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole) {
        return {};
    }
    const auto budget = std::ranges::find_if(rows_, [](const QueueRow& row) { return row.budget > 0; });
    const QString peak = budget == rows_.end()
                             ? tr("Peak, GiB")
                             : tr("Peak, GiB, of %1").arg(gibText(static_cast<std::uint64_t>(budget->budget)));
    const std::array<QString, kColumns> texts = {tr("Run"), tr("Name"), tr("State"), tr("Progress, or what holds it"),
                                                 peak,      tr("Left"), tr("Clock")};
    return texts[static_cast<std::size_t>(section)];
}

Qt::ItemFlags QueueModel::flags(const QModelIndex& index) const {
    if (!index.isValid()) {
        return Qt::ItemIsDropEnabled;
    }
    const bool open = placeOf(row(index.row()).number) < open_.size();
    return Qt::ItemIsEnabled | Qt::ItemIsSelectable | (open ? Qt::ItemIsDragEnabled : Qt::NoItemFlags);
}

QStringList QueueModel::mimeTypes() const {
    return {kMimeType};
}

QMimeData* QueueModel::mimeData(const QModelIndexList& indexes) const {
    auto* out = new QMimeData;
    if (!indexes.empty()) {
        out->setData(kMimeType, QByteArray::number(static_cast<qlonglong>(row(indexes.front().row()).number)));
    }
    return out;
}

bool QueueModel::dropMimeData(const QMimeData* data, Qt::DropAction, int row, int, const QModelIndex& parent) {
    if (!data->hasFormat(kMimeType)) {
        return false;
    }
    const qint64 number = data->data(kMimeType).toLongLong();
    const std::size_t from = placeOf(number);
    std::size_t to = placeBefore(row >= 0 ? row : parent.isValid() ? parent.row() : rowCount());
    to -= to > from ? 1 : 0; // its own place is free by then
    emit moveWanted(number, static_cast<int>(to));
    return false; // the queue moves it, not the view
}

} // namespace vitrine::ui
