// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/alive_tree.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "kernels/core/dtype.h"
#include "profiler/analysis/memory_groups.h"
#include "profiler/analysis/oom_report.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"
#include "ui/models/common/stack_model.h"

namespace vitrine::ui {

namespace {

constexpr quint64 kGroupBit = quint64{1} << 63;

quint64 keyOf(const QString& path) {
    return qHash(path, size_t{0x5eed}) | kGroupBit;
}

FlatNode makeNode(std::int32_t parent, const QString& name, std::uint64_t bytes, double share,
                  std::optional<std::size_t> blocks) {
    FlatNode node;
    node.parent = parent;
    FlatCell nameCell(name);
    FlatCell size(bytesText(bytes), static_cast<quint64>(bytes), QString::number(bytes));
    size.tip = exactBytesText(bytes);
    FlatCell shareCell({}, share, QString::number(share, 'g', 6));
    shareCell.share = share;
    shareCell.tip = shareText(share);
    FlatCell count(blocks ? countText(static_cast<qint64>(*blocks)) : unknownText(),
                   blocks ? static_cast<qint64>(*blocks) : qint64{-1});
    count.muted = true;
    node.cells = {std::move(nameCell), std::move(size), std::move(shareCell), std::move(count)};
    return node;
}

void muted(FlatNode& node) {
    node.cells[0].muted = true;
    node.cells[1].muted = true;
}

/// Blocks of one part below their row, at most `limit`.
void addBlocks(FlatTree& tree, const profiler::RunTimeline& timeline, const profiler::MemoryGroup& part,
               std::int32_t parent, const QString& path, std::uint64_t total, std::size_t limit) {
    const auto shareOf = [total](std::uint64_t bytes) {
        return total > 0 ? static_cast<double>(bytes) / static_cast<double>(total) : 0;
    };
    const auto rows = timeline.memory().allocations();
    std::uint64_t rest = part.bytes;
    for (std::size_t i = 0; i < std::min(limit, part.rows.size()); ++i) {
        const profiler::AllocationRow row = rows[part.rows[i]];
        rest -= row.bytes;
        FlatNode node = makeNode(parent, shortTensorName(timeline.text(row.name)), row.bytes, shareOf(row.bytes), 1);
        node.key = row.id;
        node.category = static_cast<int>(row.category);
        node.cells[0].tip = textOf(timeline.scopes().path(row.scope));
        muted(node);
        tree.nodes.push_back(std::move(node));
    }
    if (part.rows.size() > limit) {
        const std::size_t more = part.rows.size() - limit;
        FlatNode node = makeNode(parent, QObject::tr("%1 more").arg(countText(static_cast<qint64>(more))), rest,
                                 shareOf(rest), more);
        node.key = keyOf(path + QStringLiteral("/more"));
        node.category = static_cast<int>(part.most);
        muted(node);
        tree.nodes.push_back(std::move(node));
    }
}

void addParts(FlatTree& tree, const profiler::RunTimeline& timeline, const profiler::MemoryGroup& group,
              std::int32_t parent, std::uint64_t total, std::size_t limit) {
    for (const profiler::MemoryGroup& part : group.children) {
        const QString path = textOf(group.kind) + QLatin1Char('/') + textOf(part.kind);
        const bool single = part.rows.size() == 1;
        FlatNode node = makeNode(parent, textOf(part.name), part.bytes, part.share, part.blocks);
        node.key = single ? timeline.memory().allocations()[part.rows.front()].id : keyOf(path);
        node.category = static_cast<int>(part.most);
        if (single) {
            const profiler::AllocationRow row = timeline.memory().allocations()[part.rows.front()];
            node.cells[0].tip =
                textOf(timeline.text(row.name)) + QLatin1Char('\n') + textOf(timeline.scopes().path(row.scope));
        }
        muted(node);
        tree.nodes.push_back(std::move(node));
        if (!single) {
            addBlocks(tree, timeline, part, static_cast<std::int32_t>(tree.nodes.size() - 1), path, total, limit);
        }
    }
}

} // namespace

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

namespace {

/// "bytes of INT4, groups of 128", "bfloat16"; empty where nothing is known.
QString typeText(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row) {
    const auto type = static_cast<kernels::DType>(row.dtype);
    const QString format = textOf(profiler::formatText(timeline, row));
    if (format.isEmpty()) {
        return row.dtype == 0 ? QString() : dtypeText(row.dtype);
    }
    const QString own = type == kernels::DType::U8 ? QObject::tr("bytes") : dtypeText(row.dtype);
    // Of a type that is the format's element the format says it all.
    return row.dtype == 0 || kernels::bitsOf(type) < 8 ? format : QObject::tr("%1 of %2").arg(own, format);
}

} // namespace

QString tensorText(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row) {
    QString type = typeText(timeline, row);
    if (row.dimensions == 0) {
        return type;
    }
    QStringList sizes;
    for (std::size_t i = 0; i < row.dimensions && i < row.shape.size(); ++i) {
        sizes << QString::number(row.shape[i]);
    }
    return QStringLiteral("(%1) %2").arg(sizes.join(QStringLiteral(", ")), type);
}

namespace {

FlatTreePtr treeOf(const profiler::RunTimeline& timeline, const profiler::MemoryGroup& root, std::size_t limit) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Name"), false},
                     {QObject::tr("Size"), true},
                     {QObject::tr("Share"), false},
                     {QObject::tr("Blocks"), true}};
    for (const profiler::MemoryGroup& group : root.children) {
        FlatNode node = makeNode(-1, textOf(group.name), group.bytes, group.share,
                                 group.blocks > 0 ? std::optional(group.blocks) : std::nullopt);
        node.key = keyOf(textOf(group.kind));
        node.category = static_cast<int>(group.most);
        tree->nodes.push_back(std::move(node));
        addParts(*tree, timeline, group, static_cast<std::int32_t>(tree->nodes.size() - 1), root.bytes, limit);
    }
    FlatNode last = makeNode(-1, QObject::tr("total"), root.bytes, 1, root.blocks);
    last.cells[2] = FlatCell(QStringLiteral("100\u00A0%"));
    last.cells[2].muted = true;
    last.key = keyOf(QStringLiteral("\n total"));
    last.emphasis = true;
    last.last = true;
    tree->nodes.push_back(std::move(last));
    return tree;
}

} // namespace

FlatTreePtr aliveTree(const profiler::RunTimeline& timeline, base::TimeNs time, profiler::GroupBy groupBy,
                      std::size_t limit) {
    return treeOf(timeline, profiler::groupAlive(timeline, time, groupBy), limit);
}

FlatTreePtr heldTree(const profiler::RunTimeline& timeline, std::size_t failure, profiler::GroupBy groupBy,
                     std::size_t limit) {
    return treeOf(timeline, profiler::groupHeld(timeline, failure, groupBy), limit);
}

} // namespace vitrine::ui
