// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The runs of a session as a table, and the proxy that filters and sorts it. JSON of a run is read when a row is first
// asked for what stands in it, so that thousands of runs open at once. GUI thread.

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <optional>

#include "ui/models/session/run_filter.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class RunTable final : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column {
        State,
        Name,
        Workload,
        Model,
        Tags,
        Peak,
        TokensPerSecond,
        Time,
        When,
        Backend,
        Device,
        Weights,
        Budget,
        Note,
        ColumnCount
    };
    enum Role {
        StatusRole = Qt::UserRole + 100, ///< int of sessions::RunStatus
        RunRole,                         ///< qint64 id
    };

    explicit RunTable(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

    /// Rows that stay the same keep their places and selection.
    void setRuns(const std::vector<sessions::RunInfo>& runs);
    /// Tags can be edited also where names cannot: what a file does not take of them is kept in memory.
    void setRenamable(bool on) { renamable_ = on; }
    const sessions::RunInfo& run(int row) const { return rows_[static_cast<std::size_t>(row)].run; }
    const RunSummary& facts(int row) const;
    int rowOf(sessions::RunId id) const; ///< -1: none
    static bool numeric(int column);
    static QString title(int column);

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;
    /// Emits the wish; the row changes when the session says so.
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;

signals:
    void renameWanted(qint64 run, const QString& name);
    void tagsWanted(qint64 run, const QStringList& tags);

private:
    struct Row {
        sessions::RunInfo run;
        mutable std::optional<RunSummary> facts;
    };
    QString text(const Row& row, int column) const;
    QVariant sortValue(const Row& row, int column) const;
    const RunSummary& factsOf(const Row& row) const;

    std::vector<Row> rows_;
    bool renamable_ = true;
};

class RunTableProxy final : public QSortFilterProxyModel {
    Q_OBJECT

public:
    explicit RunTableProxy(QObject* parent = nullptr);
    void setFilter(const QString& text);
    const QString& filterError() const { return filter_.error(); }

protected:
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
    bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

private:
    RunFilter filter_;
};

/// "oom, long context" to its tags, without empty and repeated ones.
QStringList splitTags(const QString& text);
QStringList tagList(const sessions::RunInfo& run);

} // namespace vitrine::ui
