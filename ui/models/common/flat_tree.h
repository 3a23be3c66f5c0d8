// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Trees and tables over immutable snapshots: a flat array of nodes that a worker or a view builds once, and a model
// that shows it. A new snapshot replaces the old one as a whole.

#include <QAbstractItemModel>
#include <QString>
#include <QVariant>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace vitrine::ui {

/// Extra roles of all models in this folder.
enum FlatRole {
    SortRole = Qt::UserRole + 1, ///< number or text that sorting uses
    ShareRole,                   ///< double 0..1 for ShareBarDelegate, -1..1 for DeltaBarDelegate
    CategoryRole,                ///< int of base::MemoryCategory for swatches; absent: no swatch
    RawRole,                     ///< what copy gives: the raw integer as text
    KeyRole,                     ///< quint64: the node's key (allocation id, scope id, run id)
    DeltaRole,                   ///< int -1 better, 0 equal, +1 worse, 2 unknown direction, for DeltaDelegate
    EmphasisRole,                ///< bool: DemiBold text
    MarksRole,                   ///< list of numbers for NoiseDelegate; absent: no picture
};

struct FlatCell {
    QString text;
    QVariant sort; ///< null: the text sorts
    QString raw;   ///< what copy gives; empty: the text
    QString tip;
    std::optional<double> share;
    std::optional<int> delta;
    std::vector<double> marks; ///< what NoiseDelegate paints
    bool muted = false;        ///< text2 instead of text1

    FlatCell() = default;
    explicit FlatCell(QString shown) : text(std::move(shown)) {}
    FlatCell(QString shown, QVariant sortValue, QString rawText = {})
        : text(std::move(shown)), sort(std::move(sortValue)), raw(std::move(rawText)) {}
};

struct FlatNode {
    std::int32_t parent = -1; ///< index in the array, smaller than the node's own; -1: top level
    std::vector<FlatCell> cells;
    std::optional<int> category;
    quint64 key = 0;
    bool emphasis = false;
    bool last = false; ///< stays below its siblings whatever the order: total rows
};

struct FlatColumn {
    QString title;
    bool number = false; ///< right-aligned, sorts from large to small at first
    QString copied{};    ///< what stands over the raw values that copy gives, "Size, bytes"; empty: the title
};

struct FlatTree {
    std::vector<FlatColumn> columns;
    std::vector<FlatNode> nodes; ///< parents before children
};
using FlatTreePtr = std::shared_ptr<const FlatTree>;

/// Shows a FlatTree; with top-level nodes only it is a table. Sorting keeps parents and children together.
class FlatTreeModel final : public QAbstractItemModel {
    Q_OBJECT

public:
    explicit FlatTreeModel(QObject* parent = nullptr);

    /// Replaces everything. When the keys and structure are those of the snapshot before, only the data change, so
    /// that a view keeps its expansion, selection and scroll position while the cursor moves.
    void setTree(FlatTreePtr tree);
    const FlatTree& tree() const { return *tree_; }
    const FlatNode* node(const QModelIndex& index) const;
    QModelIndex indexOfKey(quint64 key) const;
    QModelIndex indexOfNode(std::int32_t node) const;

    QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
    QModelIndex parent(const QModelIndex& child) const override;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override;
    int sortColumn() const { return sortColumn_; }
    Qt::SortOrder sortOrder() const { return sortOrder_; }

private:
    struct Order {
        std::vector<std::vector<std::int32_t>> children; ///< [node + 1], in display order
        std::vector<std::int32_t> rowOf;
    };
    Order arranged(const FlatTree& tree) const;
    void changeOrder(Order order);
    static bool sameShape(const FlatTree& a, const FlatTree& b);

    int sortColumn_ = -1;
    Qt::SortOrder sortOrder_ = Qt::DescendingOrder;
    FlatTreePtr tree_;
    Order order_;
};

/// Rows as tab-separated text with raw values: what Ctrl+C copies.
QString asTabSeparated(const FlatTreeModel& model, const QModelIndexList& rows);

/// The same with a head, and all rows where none are named, parents before children.
QString asTableText(const FlatTreeModel& model, QModelIndexList rows = {});

/// A Markdown table of all rows, with a head.
QString asMarkdown(const FlatTree& table);

} // namespace vitrine::ui
