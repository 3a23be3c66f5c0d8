// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/oom_summary.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/axis_map.h"
#include "ui/models/common/format.h"
#include "ui/models/memory/alive_tree.h"

namespace vitrine::ui {

namespace {

FlatCell bytesCell(std::uint64_t bytes, const ByteGrid& grid) {
    FlatCell cell(QString::number(static_cast<double>(bytes) / static_cast<double>(grid.unit), 'f', 2),
                  static_cast<quint64>(bytes), QString::number(bytes));
    cell.tip = exactBytesText(bytes);
    return cell;
}

FlatCell changeCell(std::int64_t change, const ByteGrid& grid, bool lessIsWorse) {
    const QString amount =
        QString::number(std::abs(static_cast<double>(change)) / static_cast<double>(grid.unit), 'f', 2);
    if (amount.toDouble() == 0) {
        FlatCell cell(QStringLiteral("= 0.00"), qint64{0}, QStringLiteral("0"));
        cell.delta = 0;
        return cell;
    }
    FlatCell cell((change > 0 ? QStringLiteral("▲ +") : QStringLiteral("▼ \u2212")) + amount,
                  static_cast<qint64>(change), QString::number(change));
    cell.delta = (change > 0) != lessIsWorse ? 1 : -1;
    return cell;
}

} // namespace

OomSummary oomSummary(const profiler::RunTimeline& timeline, std::size_t failure) {
    OomSummary facts;
    if (failure >= timeline.memory().outOfMemory().size()) {
        return facts;
    }
    static_cast<profiler::OomReport&>(facts) = profiler::oomReport(timeline, failure);
    const base::OutOfMemoryEvent& event = facts.event;
    facts.tensor = shortTensorName(timeline.text(event.name.value));
    facts.asker = facts.step != nullptr ? textOf(profiler::scopeTitle(timeline, *facts.step, false))
                  : facts.phase != nullptr
                      ? QObject::tr("phase %1").arg(textOf(profiler::scopeTitle(timeline, *facts.phase, false)))
                      : QObject::tr("the run");
    facts.asker[0] = facts.asker[0].toUpper();
    QStringList words;
    words << (facts.missing > 0 ? QObject::tr("The request was %1 too large.").arg(bytesText(facts.missing))
                                : QObject::tr("The bytes were there, but not in one block."));
    if (facts.unused > 0) {
        words << QObject::tr("%1 more were reserved but not in use, in blocks of at most %2.")
                     .arg(bytesText(facts.unused), bytesText(event.largestFree));
    } else if (facts.fragmentation < 0.005) {
        words << QObject::tr("The free memory was one block, so fragmentation played no part.");
    } else {
        words << QObject::tr("The largest free block was %1 of %2.")
                     .arg(bytesText(event.largestFree), bytesText(facts.free));
    }
    QStringList place;
    if (facts.phase != nullptr && facts.step != nullptr) {
        place << QObject::tr("phase %1").arg(textOf(profiler::scopeTitle(timeline, *facts.phase, false)));
    }
    if (facts.op != nullptr) {
        place << QObject::tr("op %1").arg(textOf(timeline.text(facts.op->name)));
    }
    place << instantText(event.time) << textOf(base::categoryName(event.category));
    QString where = place.join(QStringLiteral(", "));
    where[0] = where[0].toUpper();
    words << where + QLatin1Char('.');
    if (facts.incomplete) {
        words << QObject::tr("Records were lost before it, so what was held is uncertain.");
    }
    facts.cause = words.join(QLatin1Char(' '));
    return facts;
}

FlatTreePtr holdersTree(const profiler::RunTimeline& timeline, const OomSummary& facts, profiler::GroupBy groupBy) {
    const FlatTreePtr alive = heldTree(timeline, facts.failure, groupBy, 20);
    const double total = static_cast<double>(std::max<std::uint64_t>(1, profiler::totalBytes(facts.held)));
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {
        {QObject::tr("Holder"), false}, {QObject::tr("Size"), true}, {QObject::tr("Share"), true}, {QString(), false}};
    for (const FlatNode& node : alive->nodes) {
        FlatNode row = node;
        FlatCell share = node.cells[2];
        const double part = node.cells[1].sort.toDouble() / total;
        FlatCell words(shareText(part), part);
        words.muted = true;
        if (node.last) { // the total needs no bar and no decimals
            words.text = QStringLiteral("100\u00A0%");
            share = FlatCell();
        }
        row.cells = {node.cells[0], node.cells[1], std::move(words), std::move(share)};
        tree->nodes.push_back(std::move(row));
    }
    return tree;
}

FlatTreePtr changeTable(const profiler::RunTimeline& timeline, const OomSummary& facts) {
    if (facts.before == nullptr || facts.step == nullptr) {
        return nullptr;
    }
    const base::CategoryBytes& before = facts.heldBefore;
    const std::uint64_t larger = std::max(profiler::totalBytes(before), profiler::totalBytes(facts.held));
    const ByteGrid grid = byteGrid(larger);
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QString::fromLatin1(grid.unitName), false},
                      {textOf(profiler::scopeTitle(timeline, *facts.before, false)), true},
                      {textOf(profiler::scopeTitle(timeline, *facts.step, false)), true},
                      {QObject::tr("Change"), true}};
    for (std::size_t i = 1; i < 4; ++i) {
        QString& title = table->columns[i].title;
        title[0] = title[0].toUpper();
    }
    if (facts.before->tokens > 0 && facts.step->tokens > 0) {
        FlatNode row;
        const std::int64_t change = facts.step->tokens - facts.before->tokens;
        FlatCell delta(change == 0 ? QStringLiteral("=")
                                   : QStringLiteral("%1 %2\u00A0%")
                                         .arg(change > 0 ? QStringLiteral("▲") : QStringLiteral("▼"))
                                         .arg(std::abs(static_cast<double>(change)) /
                                                  static_cast<double>(facts.before->tokens) * 100,
                                              0, 'f', 0));
        delta.delta = change > 0 ? 1 : change < 0 ? -1 : 0;
        row.key = 1000;
        row.cells = {FlatCell(QObject::tr("tokens")), FlatCell(countText(facts.before->tokens)),
                     FlatCell(countText(facts.step->tokens)), std::move(delta)};
        table->nodes.push_back(std::move(row));
    }
    std::uint64_t restBefore = 0, restNow = 0;
    for (int i = base::kCategoryCount - 1; i >= 0; --i) {
        const std::uint64_t a = before[static_cast<std::size_t>(i)], b = facts.held[static_cast<std::size_t>(i)];
        FlatCell change = changeCell(static_cast<std::int64_t>(b) - static_cast<std::int64_t>(a), grid, false);
        if (*change.delta == 0) {
            restBefore += a; // what did not change is one row
            restNow += b;
            continue;
        }
        FlatNode row;
        row.key = static_cast<quint64>(i) + 1;
        row.cells = {FlatCell(textOf(base::categoryName(static_cast<base::MemoryCategory>(i)))), bytesCell(a, grid),
                     bytesCell(b, grid), std::move(change)};
        row.cells[1].muted = true;
        table->nodes.push_back(std::move(row));
    }
    FlatNode rest;
    rest.key = 1001;
    rest.cells = {FlatCell(QObject::tr("everything else")), bytesCell(restBefore, grid), bytesCell(restNow, grid),
                  changeCell(static_cast<std::int64_t>(restNow) - static_cast<std::int64_t>(restBefore), grid, false)};
    rest.cells[1].muted = true;
    table->nodes.push_back(std::move(rest));
    const std::uint64_t freeBefore = facts.event.budget - std::min(facts.event.budget, profiler::totalBytes(before));
    const std::uint64_t freeNow = facts.event.budget - std::min(facts.event.budget, profiler::totalBytes(facts.held));
    FlatNode last;
    last.key = 2000;
    last.emphasis = true;
    last.last = true;
    last.cells = {FlatCell(QObject::tr("not in use")), bytesCell(freeBefore, grid), bytesCell(freeNow, grid),
                  changeCell(static_cast<std::int64_t>(freeNow) - static_cast<std::int64_t>(freeBefore), grid, true)};
    table->nodes.push_back(std::move(last));
    return table;
}

QString oomText(const profiler::RunTimeline& timeline, const OomSummary& facts) {
    QStringList lines;
    lines << QObject::tr("%1 asked for %2 to hold %3. Only %4 of the %5 budget were free.")
                 .arg(facts.asker, bytesText(facts.event.requested), facts.tensor, bytesText(facts.free),
                      bytesText(facts.event.budget));
    lines << facts.cause << QString() << QObject::tr("Held at the failure:");
    const FlatTreePtr holders = holdersTree(timeline, facts, profiler::GroupBy::Category);
    for (const FlatNode& node : holders->nodes) {
        if (node.parent < 0) {
            lines << QStringLiteral("- %1: %2 (%3)").arg(node.cells[0].text, node.cells[1].text, node.cells[2].text);
        }
    }
    if (const FlatTreePtr change = changeTable(timeline, facts)) {
        lines << QString()
              << QObject::tr("Change since %1, %2:")
                     .arg(textOf(profiler::scopeTitle(timeline, *facts.before, false)), change->columns[0].title);
        for (const FlatNode& node : change->nodes) {
            lines << QStringLiteral("- %1: %2 to %3 (%4)")
                         .arg(node.cells[0].text, node.cells[1].text, node.cells[2].text, node.cells[3].text);
        }
    }
    return lines.join(QLatin1Char('\n'));
}

} // namespace vitrine::ui
