// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/oom_table.h"

#include <QObject>
#include <QString>
#include <cstdint>
#include <memory>
#include <utility>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

class OomRows {
public:
    OomRows() {
        table_->columns = {{QObject::tr("Part")},
                           {QObject::tr("What")},
                           {QObject::tr("Size"), true, QObject::tr("Size, bytes")},
                           {QObject::tr("Note"), true}};
    }

    void add(const QString& part, const QString& what, std::uint64_t bytes, const QString& note, int depth = 0) {
        FlatNode row;
        row.key = table_->nodes.size() + 1;
        row.cells = {FlatCell(part), FlatCell(QString(2 * depth, QLatin1Char(' ')) + what),
                     FlatCell(bytesText(bytes), QVariant::fromValue<qulonglong>(bytes), QString::number(bytes)),
                     FlatCell(note)};
        row.cells[0].muted = true;
        row.cells[2].tip = exactBytesText(bytes);
        table_->nodes.push_back(std::move(row));
    }

    FlatTreePtr take() { return std::move(table_); }

private:
    std::shared_ptr<FlatTree> table_ = std::make_shared<FlatTree>();
};

} // namespace

FlatTreePtr oomTable(const profiler::RunTimeline& timeline, const OomSummary& facts, profiler::GroupBy groupBy,
                     const std::vector<FitChange>& changes) {
    OomRows rows;
    const QString request = QObject::tr("Request"), held = QObject::tr("Held"),
                  fitted = QObject::tr("Would have fitted");
    rows.add(request, facts.tensor, facts.event.requested, QObject::tr("asked for by %1").arg(facts.asker));
    rows.add(request, QObject::tr("budget"), facts.event.budget, {});
    rows.add(request, QObject::tr("free"), facts.free, {});
    rows.add(request, QObject::tr("missing"), facts.missing, {});
    const FlatTreePtr holders = holdersTree(timeline, facts, groupBy);
    for (const FlatNode& node : holders->nodes) {
        int depth = 0;
        for (std::int32_t parent = node.parent; parent >= 0; ++depth) {
            parent = holders->nodes[static_cast<std::size_t>(parent)].parent;
        }
        rows.add(held, node.cells[0].text, node.cells[1].sort.toULongLong(), node.cells[2].text, depth);
    }
    const FlatTreePtr changed = changeTable(timeline, facts);
    const QString since = QObject::tr("Since %1").arg(facts.since);
    for (const FlatNode& node : changed->nodes) {
        if (node.cells[2].raw.isEmpty()) {
            continue; // tokens are no bytes
        }
        rows.add(since, node.cells[0].text, node.cells[2].sort.toULongLong(),
                 signedBytesText(node.cells[3].sort.toLongLong()));
    }
    for (const FitChange& change : changes) {
        if (change.peak > 0) {
            rows.add(fitted, change.title, change.peak, fitText(change, facts.event.budget));
        }
    }
    return rows.take();
}

} // namespace vitrine::ui
