// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/alive_tree.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <numeric>

#include "ui/models/format.h"
#include "ui/models/stack_model.h"

namespace vitrine::ui {

namespace {

constexpr quint64 kGroupBit = quint64{1} << 63;

struct Kind {
    QString name;
    std::uint64_t bytes = 0;
    std::vector<std::size_t> rows; ///< of the timeline, largest first
};

struct Group {
    QString name;
    std::uint64_t bytes = 0;
    std::size_t blocks = 0;
    int category = -1; ///< of the most bytes
    std::map<int, std::uint64_t> byCategory;
    std::map<QString, Kind> kinds;
};

quint64 keyOf(const QString& path) {
    return qHash(path, size_t{0x5eed}) | kGroupBit;
}

FlatNode makeNode(std::int32_t parent, const QString& name, std::uint64_t bytes, std::uint64_t total,
                  std::optional<std::int64_t> blocks) {
    FlatNode node;
    node.parent = parent;
    const double share = total > 0 ? static_cast<double>(bytes) / static_cast<double>(total) : 0;
    FlatCell nameCell(name);
    FlatCell size(bytesText(bytes), quint64(bytes), QString::number(bytes));
    size.tip = exactBytesText(bytes);
    FlatCell shareCell({}, share, QString::number(share, 'g', 6));
    shareCell.share = share;
    shareCell.tip = shareText(share);
    FlatCell count(blocks ? countText(*blocks) : unknownText(), blocks ? qint64(*blocks) : qint64(-1));
    count.muted = true;
    node.cells = {std::move(nameCell), std::move(size), std::move(shareCell), std::move(count)};
    return node;
}

void muted(FlatNode& node) {
    node.cells[0].muted = true;
    node.cells[1].muted = true;
}

/// Blocks of one kind below their row, at most `limit`.
void addBlocks(FlatTree& tree, const profiler::MemoryTimeline& timeline, const Kind& kind, std::int32_t parent,
               const QString& path, int category, std::uint64_t total, std::size_t limit) {
    const auto rows = timeline.allocations();
    std::uint64_t rest = 0;
    for (std::size_t i = 0; i < kind.rows.size(); ++i) {
        const profiler::AllocationRow row = rows[kind.rows[i]];
        if (i >= limit) {
            rest += row.bytes;
            continue;
        }
        FlatNode node = makeNode(parent, shortTensorName(timeline.text(row.name)), row.bytes, total, 1);
        node.key = row.id;
        node.category = category;
        node.cells[0].tip = textOf(timeline.scopePath(row.scope));
        muted(node);
        tree.nodes.push_back(std::move(node));
    }
    if (rest > 0) {
        const auto more = static_cast<std::int64_t>(kind.rows.size() - limit);
        FlatNode node = makeNode(parent, QObject::tr("%1 more").arg(countText(more)), rest, total, more);
        node.key = keyOf(path + QStringLiteral("/more"));
        node.category = category;
        muted(node);
        tree.nodes.push_back(std::move(node));
    }
}

void addKinds(FlatTree& tree, const profiler::MemoryTimeline& timeline, const Group& group, std::int32_t parent,
              const QString& path, std::uint64_t total, std::size_t limit) {
    std::vector<const Kind*> kinds;
    for (const auto& [name, kind] : group.kinds) {
        kinds.push_back(&kind);
    }
    std::stable_sort(kinds.begin(), kinds.end(), [](const Kind* a, const Kind* b) { return a->bytes > b->bytes; });
    for (const Kind* kind : kinds) {
        const profiler::AllocationRow first = timeline.allocations()[kind->rows.front()];
        const bool single = kind->rows.size() == 1;
        const int category = static_cast<int>(first.category);
        FlatNode node = makeNode(parent, single ? shortTensorName(timeline.text(first.name)) : kind->name, kind->bytes,
                                 total, static_cast<std::int64_t>(kind->rows.size()));
        node.key = single ? first.id : keyOf(path + QLatin1Char('/') + kind->name);
        node.category = category;
        muted(node);
        tree.nodes.push_back(std::move(node));
        if (!single) {
            addBlocks(tree, timeline, *kind, static_cast<std::int32_t>(tree.nodes.size() - 1), path + kind->name,
                      category, total, limit);
        }
    }
}

} // namespace

QString kindOfTensor(std::string_view name) {
    std::string kind;
    kind.reserve(name.size());
    bool digits = false;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const bool digit = name[i] >= '0' && name[i] <= '9';
        // Numbers that stand alone between separators count things; "w13" or "fp8" are names.
        const bool starts =
            digit && (i == 0 || name[i - 1] == '.' || name[i - 1] == '_' || name[i - 1] == ' ' || digits);
        if (starts) {
            if (!digits) {
                kind += '*';
            }
            digits = true;
        } else {
            digits = false;
            kind += name[i];
        }
    }
    return QString::fromStdString(kind);
}

QString shortTensorName(std::string_view name) {
    QString text = textOf(name);
    if (text.startsWith(QLatin1String("model."))) {
        text.remove(0, 6);
    }
    if (text.endsWith(QLatin1String(".weight"))) {
        text.chop(7);
    }
    if (text.startsWith(QLatin1String("layers."))) {
        const qsizetype dot = text.indexOf(QLatin1Char('.'), 7);
        if (dot > 7) {
            return QObject::tr("%1, layer %2").arg(text.mid(dot + 1), text.mid(7, dot - 7));
        }
    }
    return text.isEmpty() ? QObject::tr("unnamed") : text;
}

QString tensorText(const profiler::AllocationRow& row) {
    if (row.rank == 0) {
        return row.dtype == 0 ? QString() : dtypeText(row.dtype);
    }
    QStringList sizes;
    for (std::size_t i = 0; i < row.rank && i < row.shape.size(); ++i) {
        sizes << QString::number(row.shape[i]);
    }
    return QStringLiteral("(%1) %2").arg(sizes.join(QStringLiteral(", ")), dtypeText(row.dtype));
}

namespace {

FlatTreePtr treeOf(const profiler::MemoryTimeline& timeline, const base::CategoryBytes& split,
                   const std::vector<std::size_t>& alive, profiler::GroupBy groupBy, std::size_t limit) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Name"), false},
                     {QObject::tr("Size"), true},
                     {QObject::tr("Share"), false},
                     {QObject::tr("Blocks"), true}};
    const std::uint64_t total = std::accumulate(split.begin(), split.end(), std::uint64_t{0});
    Grouping grouping(timeline, groupBy);
    std::map<QString, Group> groups;
    std::uint64_t named = 0;
    std::size_t blocks = 0;
    for (const std::size_t index : alive) {
        const profiler::AllocationRow row = timeline.allocations()[index];
        Group& group = groups[grouping.name(grouping.groupOf(row))];
        Kind& kind = group.kinds[kindOfTensor(timeline.text(row.name))];
        if (kind.rows.empty()) {
            kind.name = shortTensorName(kindOfTensor(timeline.text(row.name)).toStdString());
            kind.name.remove(QObject::tr(", layer *"));
        }
        kind.bytes += row.bytes;
        kind.rows.push_back(index);
        group.bytes += row.bytes;
        group.byCategory[static_cast<int>(row.category)] += row.bytes;
        ++group.blocks;
        ++blocks;
        named += row.bytes;
    }
    // Bytes that no block accounts for: the context and libraries, seen as a whole only.
    if (total > named) {
        Group& group =
            groups[groupBy == profiler::GroupBy::Category ? textOf(base::categoryName(base::MemoryCategory::Untracked))
                                                          : QObject::tr("untracked")];
        group.bytes += total - named;
        group.byCategory[static_cast<int>(base::MemoryCategory::Untracked)] += total - named;
    }
    std::vector<std::pair<QString, const Group*>> order;
    for (const auto& [name, group] : groups) {
        order.emplace_back(name, &group);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second->bytes > b.second->bytes; });
    for (const auto& [name, group] : order) {
        const auto most = std::max_element(group->byCategory.begin(), group->byCategory.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        FlatNode node = makeNode(-1, name, group->bytes, total,
                                 group->blocks > 0 ? std::optional<std::int64_t>(group->blocks) : std::nullopt);
        node.key = keyOf(name);
        node.category = most->first;
        tree->nodes.push_back(std::move(node));
        addKinds(*tree, timeline, *group, static_cast<std::int32_t>(tree->nodes.size() - 1), name, total, limit);
    }
    FlatNode last =
        makeNode(-1, QObject::tr("total"), std::max(total, named), total, static_cast<std::int64_t>(blocks));
    last.cells[2] = FlatCell(QStringLiteral("100\u00A0%"));
    last.cells[2].muted = true;
    last.key = keyOf(QStringLiteral("\n total"));
    last.emphasis = true;
    last.last = true;
    tree->nodes.push_back(std::move(last));
    return tree;
}

} // namespace

FlatTreePtr aliveTree(const profiler::MemoryTimeline& timeline, base::TimeNs time, profiler::GroupBy groupBy,
                      std::size_t limit) {
    return treeOf(timeline, timeline.at(time), timeline.aliveAt(time), groupBy, limit);
}

FlatTreePtr heldTree(const profiler::MemoryTimeline& timeline, std::size_t failure, profiler::GroupBy groupBy,
                     std::size_t limit) {
    const std::uint64_t count = timeline.eventsBeforeOutOfMemory(failure);
    return treeOf(timeline, timeline.atEvent(count), timeline.aliveAtEvent(count), groupBy, limit);
}

} // namespace vitrine::ui
