// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/run_table.h"

#include <QDateTime>
#include <QLocale>
#include <algorithm>
#include <cmath>

#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

bool same(const sessions::RunInfo& a, const sessions::RunInfo& b) {
    return a.status == b.status && a.endedMs == b.endedMs && a.name == b.name && a.tags == b.tags && a.note == b.note &&
           a.error == b.error && a.lostRecords == b.lostRecords && a.metricsJson == b.metricsJson &&
           a.specJson == b.specJson && a.environmentJson == b.environmentJson;
}

QString whenText(std::int64_t ms) {
    const QDateTime when = QDateTime::fromMSecsSinceEpoch(ms);
    const QDate today = QDate::currentDate();
    if (when.date() == today) {
        return QObject::tr("today %1").arg(when.toString(QStringLiteral("HH:mm:ss")));
    }
    return when.toString(QStringLiteral("yyyy-MM-dd HH:mm"));
}

} // namespace

bool RunTable::numeric(int column) {
    return column == Peak || column == TokensPerSecond || column == Time || column == Budget;
}

QString RunTable::title(int column) {
    switch (column) {
    case State:
        return tr("State");
    case Name:
        return tr("Name");
    case Workload:
        return tr("Workload");
    case Model:
        return tr("Model");
    case Tags:
        return tr("Tags");
    case Peak:
        return tr("Peak");
    case TokensPerSecond:
        return tr("tok/s");
    case Time:
        return tr("Time");
    case When:
        return tr("When");
    case Backend:
        return tr("Backend");
    case Device:
        return tr("Device");
    case Weights:
        return tr("Weights");
    case Budget:
        return tr("Budget");
    default:
        return tr("Note");
    }
}

void RunTable::setRuns(const std::vector<sessions::RunInfo>& runs) {
    std::size_t kept = 0;
    while (kept < rows_.size() && kept < runs.size() && rows_[kept].run.id == runs[kept].id) {
        ++kept;
    }
    // Runs are only ever appended or deleted: what stands after the first difference goes row by row.
    for (std::size_t i = rows_.size(); i-- > kept;) {
        const auto still = std::find_if(runs.begin() + static_cast<std::ptrdiff_t>(kept), runs.end(),
                                        [&](const sessions::RunInfo& r) { return r.id == rows_[i].run.id; });
        if (still == runs.end()) {
            beginRemoveRows({}, static_cast<int>(i), static_cast<int>(i));
            rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
            endRemoveRows();
        }
    }
    const bool prefix = rows_.size() <= runs.size() &&
                        std::equal(rows_.begin(), rows_.end(), runs.begin(),
                                   [](const Row& row, const sessions::RunInfo& run) { return row.run.id == run.id; });
    if (!prefix) {
        beginResetModel();
        rows_.clear();
        for (const sessions::RunInfo& run : runs) {
            rows_.push_back({run, {}});
        }
        endResetModel();
        return;
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (!same(rows_[i].run, runs[i])) {
            rows_[i] = {runs[i], {}};
            emit dataChanged(index(static_cast<int>(i), 0), index(static_cast<int>(i), ColumnCount - 1));
        }
    }
    if (rows_.size() < runs.size()) {
        beginInsertRows({}, static_cast<int>(rows_.size()), static_cast<int>(runs.size()) - 1);
        for (std::size_t i = rows_.size(); i < runs.size(); ++i) {
            rows_.push_back({runs[i], {}});
        }
        endInsertRows();
    }
}

const RunSummary& RunTable::factsOf(const Row& row) const {
    if (!row.facts) {
        row.facts = runSummary(row.run);
    }
    return *row.facts;
}

const RunSummary& RunTable::facts(int row) const {
    return factsOf(rows_[static_cast<std::size_t>(row)]);
}

int RunTable::rowOf(sessions::RunId id) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [id](const Row& row) { return row.run.id == id; });
    return found == rows_.end() ? -1 : static_cast<int>(found - rows_.begin());
}

int RunTable::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RunTable::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QString RunTable::text(const Row& row, int column) const {
    switch (column) {
    case State:
        return statusText(row.run.status);
    case Name:
        return row.run.name.empty() ? tr("Run %1").arg(row.run.id) : QString::fromStdString(row.run.name);
    case Workload:
        return QString::fromStdString(row.run.workload);
    case Model:
        return factsOf(row).model;
    case Tags:
        return tagList(row.run).join(QStringLiteral(", "));
    case Peak:
        return bytesText(factsOf(row).peak);
    case TokensPerSecond: {
        const auto rate = runTokensPerSecond(row.run);
        return rate ? countText(static_cast<qint64>(std::llround(*rate))) : unknownText();
    }
    case Time: {
        const auto seconds = runSeconds(row.run);
        return seconds ? durationText(static_cast<base::TimeNs>(*seconds * 1e9)) : unknownText();
    }
    case When:
        return whenText(row.run.startedMs);
    case Backend:
        return factsOf(row).backend;
    case Device:
        return factsOf(row).device;
    case Weights:
        return factsOf(row).weights;
    case Budget:
        return bytesText(factsOf(row).budget);
    default:
        return QString::fromStdString(row.run.note).section(QLatin1Char('\n'), 0, 0);
    }
}

QVariant RunTable::sortValue(const Row& row, int column) const {
    const auto number = [](auto value) { return value ? QVariant(static_cast<double>(*value)) : QVariant(-1.0); };
    switch (column) {
    case State:
        return static_cast<int>(row.run.status);
    case Peak:
        return number(factsOf(row).peak);
    case Budget:
        return number(factsOf(row).budget);
    case TokensPerSecond:
        return number(runTokensPerSecond(row.run));
    case Time:
        return number(runSeconds(row.run));
    case When:
        return static_cast<qint64>(row.run.startedMs);
    default:
        return text(row, column);
    }
}

QVariant RunTable::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount()) {
        return {};
    }
    const Row& row = rows_[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        // Runs of one name are told apart by their numbers.
        return index.column() == Name ? QStringLiteral("#%1 %2").arg(row.run.id).arg(text(row, Name))
                                      : text(row, index.column());
    case Qt::EditRole:
        return index.column() == Name ? QString::fromStdString(row.run.name) : text(row, index.column());
    case Qt::TextAlignmentRole:
        return QVariant::fromValue((numeric(index.column()) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case Qt::ToolTipRole:
        if (index.column() == State && !row.run.error.empty()) {
            return QString::fromStdString(row.run.error);
        }
        if (index.column() == Peak && factsOf(row).peak) {
            return exactBytesText(*factsOf(row).peak);
        }
        if (index.column() == Note) {
            return QString::fromStdString(row.run.note);
        }
        return {};
    case SortRole:
        return sortValue(row, index.column());
    case KeyRole:
        return static_cast<quint64>(row.run.id);
    case StatusRole:
        return static_cast<int>(row.run.status);
    case RunRole:
        return static_cast<qint64>(row.run.id);
    default:
        return {};
    }
}

QVariant RunTable::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) {
        return {};
    }
    if (role == Qt::DisplayRole) {
        return title(section);
    }
    if (role == Qt::TextAlignmentRole) {
        return QVariant::fromValue((numeric(section) ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    }
    return {};
}

Qt::ItemFlags RunTable::flags(const QModelIndex& index) const {
    Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    if (index.isValid() && ((renamable_ && index.column() == Name) || index.column() == Tags)) {
        flags |= Qt::ItemIsEditable;
    }
    return flags;
}

bool RunTable::setData(const QModelIndex& index, const QVariant& value, int role) {
    if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) {
        return false;
    }
    const sessions::RunInfo& info = run(index.row());
    const QString typed = value.toString().trimmed();
    if (index.column() == Name) {
        if (typed.isEmpty() || typed.toStdString() == info.name) {
            return false;
        }
        emit renameWanted(info.id, typed);
        return true;
    }
    const QStringList tags = splitTags(typed);
    if (tags == tagList(info)) {
        return false;
    }
    emit tagsWanted(info.id, tags);
    return true;
}

RunTableProxy::RunTableProxy(QObject* parent) : QSortFilterProxyModel(parent) {
    setSortRole(SortRole);
    setDynamicSortFilter(true);
}

void RunTableProxy::setFilter(const QString& text) {
    filter_ = RunFilter::parse(text);
    invalidateFilter();
}

bool RunTableProxy::filterAcceptsRow(int row, const QModelIndex&) const {
    if (filter_.empty()) {
        return true;
    }
    const auto* table = static_cast<const RunTable*>(sourceModel());
    return filter_.accepts(table->run(row), table->facts(row));
}

bool RunTableProxy::lessThan(const QModelIndex& left, const QModelIndex& right) const {
    const QVariant a = left.data(SortRole), b = right.data(SortRole);
    if (a.typeId() == QMetaType::QString) {
        const int order = QString::localeAwareCompare(a.toString(), b.toString());
        return order != 0 ? order < 0 : left.row() < right.row();
    }
    return a.toDouble() != b.toDouble() ? a.toDouble() < b.toDouble() : left.row() < right.row();
}

QStringList splitTags(const QString& text) {
    QStringList tags;
    for (const QString& part : text.split(QLatin1Char(','))) {
        const QString tag = part.simplified();
        if (!tag.isEmpty() && !tags.contains(tag)) {
            tags << tag;
        }
    }
    return tags;
}

QStringList tagList(const sessions::RunInfo& run) {
    QStringList tags;
    for (const std::string& tag : run.tags) {
        tags << QString::fromStdString(tag);
    }
    return tags;
}

} // namespace vitrine::ui
