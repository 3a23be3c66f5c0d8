// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/flat_tree.h"

#include <QStringList>
#include <algorithm>

namespace vitrine::ui {

namespace {

FlatTreePtr emptyTree() {
    static const FlatTreePtr kTree = std::make_shared<const FlatTree>();
    return kTree;
}

QVariant sortValue(const FlatNode& node, int column) {
    if (column < 0 || column >= static_cast<int>(node.cells.size())) {
        return {};
    }
    const FlatCell& cell = node.cells[static_cast<std::size_t>(column)];
    return cell.sort.isNull() ? QVariant(cell.text) : cell.sort;
}

bool isText(const QVariant& value) {
    return value.metaType().id() == QMetaType::QString;
}

int compareValues(const QVariant& a, const QVariant& b) {
    if (isText(a) || isText(b)) {
        return QString::localeAwareCompare(a.toString(), b.toString());
    }
    const double x = a.toDouble(), y = b.toDouble();
    return x < y ? -1 : x > y ? 1 : 0;
}

} // namespace

FlatTreeModel::FlatTreeModel(QObject* parent)
    : QAbstractItemModel(parent), tree_(emptyTree()), order_(arranged(*tree_)) {}

bool FlatTreeModel::sameShape(const FlatTree& a, const FlatTree& b) {
    if (a.nodes.size() != b.nodes.size() || a.columns.size() != b.columns.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.columns.size(); ++i) {
        if (a.columns[i].title != b.columns[i].title) {
            return false;
        }
    }
    for (std::size_t i = 0; i < a.nodes.size(); ++i) {
        if (a.nodes[i].key != b.nodes[i].key || a.nodes[i].parent != b.nodes[i].parent) {
            return false;
        }
    }
    return true;
}

void FlatTreeModel::setTree(FlatTreePtr tree) {
    if (!tree) {
        tree = emptyTree();
    }
    if (!tree_->nodes.empty() && sameShape(*tree_, *tree)) {
        Order next = arranged(*tree);
        tree_ = std::move(tree);
        if (next.children != order_.children) {
            changeOrder(std::move(next));
        }
        for (const auto& siblings : order_.children) {
            if (!siblings.empty() && columnCount() > 0) {
                emit dataChanged(createIndex(0, 0, static_cast<quintptr>(siblings.front())),
                                 createIndex(static_cast<int>(siblings.size()) - 1, columnCount() - 1,
                                             static_cast<quintptr>(siblings.back())));
            }
        }
        return;
    }
    beginResetModel();
    tree_ = std::move(tree);
    order_ = arranged(*tree_);
    endResetModel();
}

FlatTreeModel::Order FlatTreeModel::arranged(const FlatTree& tree) const {
    Order order;
    order.children.resize(tree.nodes.size() + 1);
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        order.children[static_cast<std::size_t>(std::int64_t{tree.nodes[i].parent} + 1)].push_back(
            static_cast<std::int32_t>(i));
    }
    for (auto& siblings : order.children) {
        std::stable_sort(siblings.begin(), siblings.end(), [this, &tree](std::int32_t x, std::int32_t y) {
            const FlatNode& a = tree.nodes[static_cast<std::size_t>(x)];
            const FlatNode& b = tree.nodes[static_cast<std::size_t>(y)];
            if (a.last != b.last || sortColumn_ < 0) {
                return !a.last && b.last;
            }
            const int sign = compareValues(sortValue(a, sortColumn_), sortValue(b, sortColumn_));
            return sortOrder_ == Qt::AscendingOrder ? sign < 0 : sign > 0;
        });
    }
    order.rowOf.assign(tree.nodes.size(), 0);
    for (const auto& siblings : order.children) {
        for (std::size_t row = 0; row < siblings.size(); ++row) {
            order.rowOf[static_cast<std::size_t>(siblings[row])] = static_cast<std::int32_t>(row);
        }
    }
    return order;
}

void FlatTreeModel::changeOrder(Order order) {
    emit layoutAboutToBeChanged({}, QAbstractItemModel::VerticalSortHint);
    const QModelIndexList before = persistentIndexList();
    order_ = std::move(order);
    QModelIndexList after;
    after.reserve(before.size());
    for (const QModelIndex& old : before) {
        const auto at = static_cast<std::size_t>(old.internalId());
        after.push_back(createIndex(order_.rowOf[at], old.column(), old.internalId()));
    }
    changePersistentIndexList(before, after);
    emit layoutChanged({}, QAbstractItemModel::VerticalSortHint);
}

const FlatNode* FlatTreeModel::node(const QModelIndex& index) const {
    return index.isValid() && index.internalId() < tree_->nodes.size()
               ? &tree_->nodes[static_cast<std::size_t>(index.internalId())]
               : nullptr;
}

QModelIndex FlatTreeModel::indexOfKey(quint64 key) const {
    for (std::size_t i = 0; i < tree_->nodes.size(); ++i) {
        if (tree_->nodes[i].key == key) {
            return indexOfNode(static_cast<std::int32_t>(i));
        }
    }
    return {};
}

QModelIndex FlatTreeModel::indexOfNode(std::int32_t at) const {
    if (at < 0 || static_cast<std::size_t>(at) >= order_.rowOf.size()) {
        return {};
    }
    return createIndex(order_.rowOf[static_cast<std::size_t>(at)], 0, static_cast<quintptr>(at));
}

QModelIndex FlatTreeModel::index(int row, int column, const QModelIndex& parent) const {
    const std::size_t slot = parent.isValid() ? static_cast<std::size_t>(parent.internalId()) + 1 : 0;
    if (column < 0 || column >= columnCount() || slot >= order_.children.size() || row < 0 ||
        row >= static_cast<int>(order_.children[slot].size()) || (parent.isValid() && parent.column() != 0)) {
        return {};
    }
    return createIndex(row, column, static_cast<quintptr>(order_.children[slot][static_cast<std::size_t>(row)]));
}

QModelIndex FlatTreeModel::parent(const QModelIndex& child) const {
    const FlatNode* at = node(child);
    return at == nullptr ? QModelIndex() : indexOfNode(at->parent);
}

int FlatTreeModel::rowCount(const QModelIndex& parent) const {
    if (parent.isValid() && parent.column() != 0) {
        return 0;
    }
    const std::size_t slot = parent.isValid() ? static_cast<std::size_t>(parent.internalId()) + 1 : 0;
    return slot < order_.children.size() ? static_cast<int>(order_.children[slot].size()) : 0;
}

int FlatTreeModel::columnCount(const QModelIndex&) const {
    return static_cast<int>(tree_->columns.size());
}

QVariant FlatTreeModel::data(const QModelIndex& index, int role) const {
    const FlatNode* at = node(index);
    if (at == nullptr || index.column() >= static_cast<int>(at->cells.size())) {
        return {};
    }
    const FlatCell& cell = at->cells[static_cast<std::size_t>(index.column())];
    switch (role) {
    case Qt::DisplayRole:
        return cell.text;
    case Qt::ToolTipRole:
        return cell.tip.isEmpty() ? QVariant() : QVariant(cell.tip);
    case Qt::TextAlignmentRole:
        return static_cast<int>(
            Qt::AlignVCenter |
            (tree_->columns[static_cast<std::size_t>(index.column())].number ? Qt::AlignRight : Qt::AlignLeft));
    case SortRole:
        return cell.sort.isNull() ? QVariant(cell.text) : cell.sort;
    case ShareRole:
        return cell.share ? QVariant(*cell.share) : QVariant();
    case CategoryRole:
        return at->category ? QVariant(*at->category) : QVariant();
    case RawRole:
        return cell.raw.isEmpty() ? cell.text : cell.raw;
    case KeyRole:
        return at->key;
    case DeltaRole:
        return cell.delta ? QVariant(*cell.delta) : QVariant();
    case EmphasisRole:
        return at->emphasis;
    case MarksRole:
        return cell.marks.empty() ? QVariant() : QVariant(QVariantList(cell.marks.begin(), cell.marks.end()));
    case Qt::UserRole:
        return cell.muted;
    default:
        return {};
    }
}

QVariant FlatTreeModel::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) {
        return {};
    }
    const FlatColumn& column = tree_->columns[static_cast<std::size_t>(section)];
    if (role == Qt::DisplayRole) {
        return column.title;
    }
    if (role == Qt::TextAlignmentRole) {
        return static_cast<int>(Qt::AlignVCenter | (column.number ? Qt::AlignRight : Qt::AlignLeft));
    }
    return {};
}

void FlatTreeModel::sort(int column, Qt::SortOrder order) {
    sortColumn_ = column;
    sortOrder_ = order;
    changeOrder(arranged(*tree_));
}

QString asTabSeparated(const FlatTreeModel& model, const QModelIndexList& rows) {
    QStringList lines;
    for (const QModelIndex& row : rows) {
        QStringList cells;
        for (int column = 0; column < model.columnCount(); ++column) {
            cells << row.siblingAtColumn(column).data(RawRole).toString();
        }
        lines << cells.join(QLatin1Char('\t'));
    }
    return lines.join(QLatin1Char('\n'));
}

namespace {

void addAll(const FlatTreeModel& model, const QModelIndex& parent, QModelIndexList& rows) {
    for (int row = 0; row < model.rowCount(parent); ++row) {
        const QModelIndex index = model.index(row, 0, parent);
        rows << index;
        addAll(model, index, rows);
    }
}

} // namespace

QString asTableText(const FlatTreeModel& model, QModelIndexList rows) {
    if (rows.isEmpty()) {
        addAll(model, {}, rows);
    }
    QStringList head;
    for (const FlatColumn& column : model.tree().columns) {
        head << (column.copied.isEmpty() ? column.title : column.copied);
    }
    return head.join(QLatin1Char('\t')) + QLatin1Char('\n') + asTabSeparated(model, rows);
}

QString asMarkdown(const FlatTree& table) {
    QStringList lines;
    QStringList head, rule;
    for (const FlatColumn& column : table.columns) {
        head << column.title;
        rule << (column.number ? QStringLiteral("---:") : QStringLiteral("---"));
    }
    const auto line = [](const QStringList& cells) {
        return QStringLiteral("| ") + cells.join(QStringLiteral(" | ")) + QStringLiteral(" |");
    };
    lines << line(head) << line(rule);
    for (const FlatNode& node : table.nodes) {
        QStringList cells;
        for (const FlatCell& cell : node.cells) {
            cells << QString(cell.text).replace(QLatin1Char('|'), QStringLiteral("\\|"));
        }
        lines << line(cells);
    }
    return lines.join(QLatin1Char('\n'));
}

} // namespace vitrine::ui
