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

constexpr double kFragmented = 0.05; ///< less reads as none
constexpr quint64 kIdleKey = (quint64{1} << 63) + 1, kSlackKey = (quint64{1} << 63) + 2;

/// "90 %"
QString wholeShareText(double part) {
    return QStringLiteral("%1\u00A0%").arg(std::lround(part * 100));
}

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

/// Who has what is reserved and in no tensor, and whether the free memory lay in pieces.
QStringList spareSentences(const OomSummary& facts) {
    QStringList words;
    if (facts.idle > 0) {
        const double part =
            static_cast<double>(facts.idle) / static_cast<double>(std::max(facts.event.arenaBytes, facts.idle));
        words << QObject::tr("%1 are reserved by the %2, of which %3 are idle at this moment.")
                     .arg(bytesText(std::max(facts.event.arenaBytes, facts.idle)), facts.arena, wholeShareText(part));
    }
    if (facts.fragmentation >= kFragmented) {
        words << QObject::tr("The largest free block was %1 of %2.")
                     .arg(bytesText(facts.event.largestFree), bytesText(facts.free + facts.unused));
    } else if (facts.idle == 0) {
        words << QObject::tr("The free memory was one block, so fragmentation played no part.");
    }
    return words;
}

/// "Prefill of tokens 8,192 to 12,288, layer 7, op Attention, 2.44 s, kv_cache."
QString placeSentence(const profiler::RunTimeline& timeline, const OomSummary& facts) {
    QStringList place;
    const profiler::ScopeRow* step = facts.step != nullptr ? facts.step : facts.before;
    const bool prefill = step != nullptr && timeline.text(step->name) == "prefill";
    if (facts.betweenSteps()) {
        place << (prefill ? QObject::tr("prefill from token %1 on").arg(countText(facts.tokensDone))
                          : textOf(timeline.text(step->name)))
              << QObject::tr("before its first op");
    } else if (prefill && facts.step != nullptr) {
        place << QObject::tr("prefill of tokens %1 to %2")
                     .arg(countText(facts.tokensDone), countText(facts.tokensDone + facts.step->tokens));
    } else if (facts.phase != nullptr && facts.step != nullptr) {
        place << QObject::tr("phase %1").arg(textOf(profiler::scopeTitle(timeline, *facts.phase, false)));
    }
    if (facts.layer != nullptr) {
        place << textOf(profiler::scopeTitle(timeline, *facts.layer, false));
    }
    if (facts.op != nullptr) {
        place << QObject::tr("op %1").arg(textOf(timeline.text(facts.op->name)));
    }
    place << instantText(facts.event.time) << textOf(base::categoryName(facts.event.category));
    QString where = place.join(QStringLiteral(", "));
    where[0] = where[0].toUpper();
    return where + QLatin1Char('.');
}

/// A row for what is reserved and in no tensor.
FlatNode reservedRow(const QString& name, std::uint64_t bytes, double total, quint64 key) {
    const double part = static_cast<double>(bytes) / total;
    FlatNode row;
    row.key = key;
    FlatCell share(shareText(part), part, QString::number(part * 100, 'g', 6));
    share.muted = true;
    FlatCell bar({}, part, QString::number(part, 'g', 6));
    bar.share = part;
    row.cells = {FlatCell(name), FlatCell(bytesText(bytes), static_cast<quint64>(bytes), QString::number(bytes)),
                 std::move(share), std::move(bar)};
    row.cells[0].tip = name;
    row.cells[1].tip = exactBytesText(bytes);
    return row;
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
    facts.arena = facts.idle > 0 ? textOf(timeline.text(event.arena.value)) : QString();
    facts.asker = facts.betweenSteps() && facts.before->index >= 0 ? QObject::tr("Step %1").arg(facts.before->index + 1)
                  : facts.step != nullptr && facts.step->index >= 0 ? QObject::tr("Step %1").arg(facts.step->index)
                  : facts.step != nullptr ? textOf(profiler::scopeTitle(timeline, *facts.step, false))
                  : facts.phase != nullptr
                      ? QObject::tr("Phase %1").arg(textOf(profiler::scopeTitle(timeline, *facts.phase, false)))
                      : QObject::tr("The run");
    facts.asker[0] = facts.asker[0].toUpper();
    facts.since =
        facts.before != nullptr ? textOf(profiler::scopeTitle(timeline, *facts.before, false))
        : facts.phase != nullptr
            ? QObject::tr("the beginning of %1").arg(textOf(profiler::scopeTitle(timeline, *facts.phase, false)))
            : QObject::tr("the beginning of the run");
    QStringList words;
    words << (facts.missing > 0 ? QObject::tr("The request was %1 too large.").arg(bytesText(facts.missing))
                                : QObject::tr("The bytes were there, but not in one block."));
    words << spareSentences(facts) << placeSentence(timeline, facts);
    if (facts.incomplete) {
        words << QObject::tr("Records were lost before it, so what was held is uncertain.");
    }
    facts.cause = words.join(QLatin1Char(' '));
    return facts;
}

QString idleText(const OomSummary& facts) {
    static const QString kOf = QStringLiteral("arena of the "), kStep = QStringLiteral(" step");
    if (facts.arena.startsWith(kOf) && facts.arena.endsWith(kStep)) { // as short as the column of names is narrow
        return QObject::tr("%1 arena, idle").arg(facts.arena.sliced(kOf.size()).chopped(kStep.size()));
    }
    return QObject::tr("idle in the %1").arg(facts.arena.isEmpty() ? QObject::tr("arena") : facts.arena);
}

FlatTreePtr holdersTree(const profiler::RunTimeline& timeline, const OomSummary& facts, profiler::GroupBy groupBy) {
    const FlatTreePtr alive = heldTree(timeline, facts.failure, groupBy, 20);
    const double total = static_cast<double>(std::max<std::uint64_t>(1, facts.event.reserved));
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Holder"), false},
                     {QObject::tr("Size"), true, QObject::tr("Size, bytes")},
                     {QObject::tr("Share"), true, QObject::tr("Share, percent")},
                     {QString(), false, QObject::tr("Share, of 1")}};
    for (const FlatNode& node : alive->nodes) {
        FlatNode row = node;
        FlatCell share = node.cells[2];
        if (node.last) {
            if (facts.idle > 0) {
                tree->nodes.push_back(reservedRow(idleText(facts), facts.idle, total, kIdleKey));
            }
            if (facts.unused > 0) {
                tree->nodes.push_back(reservedRow(QObject::tr("between tensors"), facts.unused, total, kSlackKey));
            }
            row.cells[1].text = bytesText(facts.event.reserved);
            row.cells[1].sort = static_cast<quint64>(facts.event.reserved);
            row.cells[1].raw = QString::number(facts.event.reserved);
            row.cells[1].tip = exactBytesText(facts.event.reserved);
        }
        const double part = row.cells[1].sort.toDouble() / total;
        if (share.share) {
            share.share = part;
            share.sort = part;
            share.raw = QString::number(part, 'g', 6);
        }
        FlatCell words(shareText(part), part);
        words.muted = true;
        if (node.last) { // the total needs no bar and no decimals
            words.text = QStringLiteral("100\u00A0%");
            share = FlatCell();
        }
        words.raw = QString::number(part * 100, 'g', 6);
        row.cells = {node.cells[0], row.cells[1], std::move(words), std::move(share)};
        tree->nodes.push_back(std::move(row));
    }
    return tree;
}

FlatTreePtr changeTable(const profiler::RunTimeline& timeline, const OomSummary& facts) {
    const base::CategoryBytes& before = facts.heldBefore;
    const std::uint64_t larger = std::max(facts.reservedBefore, facts.event.reserved);
    const ByteGrid grid = byteGrid(larger);
    auto table = std::make_shared<FlatTree>();
    table->columns = {
        {QString::fromLatin1(grid.unitName), false},
        {facts.before != nullptr ? facts.since : QObject::tr("begin"), true},
        {facts.step != nullptr ? textOf(profiler::scopeTitle(timeline, *facts.step, false)) : QObject::tr("failure"),
         true},
        {QObject::tr("Change"), true}};
    for (std::size_t i = 1; i < 4; ++i) {
        QString& title = table->columns[i].title;
        title[0] = title[0].toUpper();
        table->columns[i].copied = QObject::tr("%1, bytes").arg(title); // the row of tokens says its unit itself
    }
    table->columns[0].copied = QObject::tr("What");
    if (facts.before != nullptr && facts.step != nullptr && facts.before->tokens > 0 && facts.step->tokens > 0) {
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
    const auto spare = [](std::uint64_t reserved, const base::CategoryBytes& held) {
        return reserved - std::min(reserved, profiler::totalBytes(held));
    };
    const auto add = [&](quint64 key, const QString& name, std::uint64_t a, std::uint64_t b, bool lessIsWorse) {
        FlatNode row;
        row.key = key;
        row.cells = {FlatCell(name), bytesCell(a, grid), bytesCell(b, grid),
                     changeCell(static_cast<std::int64_t>(b) - static_cast<std::int64_t>(a), grid, lessIsWorse)};
        row.cells[1].muted = true;
        table->nodes.push_back(std::move(row));
    };
    const std::uint64_t idleBefore = spare(facts.reservedBefore, before);
    const std::uint64_t idleNow = spare(facts.event.reserved, facts.held);
    if (idleBefore == idleNow) {
        restBefore += idleBefore;
        restNow += idleNow;
    } else {
        add(1002, QObject::tr("in no tensor"), idleBefore, idleNow, false);
    }
    add(1001, QObject::tr("everything else"), restBefore, restNow, false);
    const std::uint64_t budget = facts.event.budget;
    add(2000, QObject::tr("free"), budget - std::min(budget, facts.reservedBefore),
        budget - std::min(budget, facts.event.reserved), true);
    FlatNode& last = table->nodes.back();
    last.emphasis = true;
    last.last = true;
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
    const FlatTreePtr change = changeTable(timeline, facts);
    lines << QString() << QObject::tr("Change since %1, %2:").arg(facts.since, change->columns[0].title);
    for (const FlatNode& node : change->nodes) {
        lines << QStringLiteral("- %1: %2 to %3 (%4)")
                     .arg(node.cells[0].text, node.cells[1].text, node.cells[2].text, node.cells[3].text);
    }
    return lines.join(QLatin1Char('\n'));
}

} // namespace vitrine::ui
