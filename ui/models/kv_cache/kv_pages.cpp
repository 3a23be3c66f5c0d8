// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_cache/kv_pages.h"

#include <QObject>
#include <algorithm>

#include "base/trace.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/timeline_rows.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

/// Tokens that a sequence keeps in a group of whole pages.
std::int64_t keptTokens(const KvLayerGroup& group, std::int64_t tokens) {
    return group.sliding() ? std::min(tokens, group.window - 1) : tokens;
}

} // namespace

std::size_t KvPages::count(std::size_t group) const {
    return static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [group](const KvPage& page) { return page.group == group; }));
}

KvPages kvPages(const KvSummary& facts, const profiler::RunTimeline& timeline, const KvSample& sample) {
    KvPages found;
    if (!facts.geometry) {
        return found;
    }
    std::vector<std::size_t> alive = timeline.memory().aliveAt(sample.time);
    std::erase_if(alive, [&](std::size_t row) {
        return timeline.memory().allocations()[row].category != base::MemoryCategory::KvCache;
    });
    std::sort(alive.begin(), alive.end()); // by birth
    for (const KvLayerGroup& group : facts.geometry->groups) {
        if (group.pageTokens <= 0) {
            continue;
        }
        const std::string name = "kv_cache." + group.name.toStdString();
        const std::size_t index = found.groups.size();
        std::int64_t left = keptTokens(group, sample.tokens), number = 0;
        for (const std::size_t row : alive) {
            if (timeline.text(timeline.memory().allocations()[row].name) != name) {
                continue;
            }
            KvPage page{row, index, number++, std::nullopt};
            if (facts.geometry->sequences == 1) {
                const std::int64_t here = std::clamp<std::int64_t>(left, 0, group.pageTokens);
                page.used = static_cast<double>(here) / static_cast<double>(group.pageTokens);
                left -= here;
            }
            found.pages.push_back(page);
        }
        if (number > 0) {
            found.groups.push_back(group);
        }
    }
    return found;
}

FlatTreePtr kvPageTable(const KvPages& pages, const profiler::RunTimeline& timeline, std::size_t limit) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Page"), true},    {QObject::tr("Group")},      {QObject::tr("Size"), true},
                      {QObject::tr("Address"), true}, {QObject::tr("Made"), true}, {QObject::tr("In use"), true}};
    for (std::size_t i = 0; i < std::min(limit, pages.pages.size()); ++i) {
        const KvPage& page = pages.pages[i];
        const profiler::AllocationRow row = timeline.memory().allocations()[page.row];
        FlatNode node;
        node.key = row.id;
        node.cells = {{countText(page.number), QVariant::fromValue<qlonglong>(page.number)},
                      FlatCell(pages.groups[page.group].name),
                      {bytesText(row.bytes), QVariant::fromValue<qulonglong>(row.bytes), QString::number(row.bytes)},
                      {QStringLiteral("0x%1").arg(row.address, 0, 16), QVariant::fromValue<qulonglong>(row.address)},
                      {instantText(row.born), QVariant::fromValue<qlonglong>(row.born)},
                      page.used ? FlatCell(shareText(*page.used), QVariant(*page.used))
                                : FlatCell(unknownText(), QVariant(-1.0))};
        node.cells[2].tip = exactBytesText(row.bytes);
        table->nodes.push_back(std::move(node));
    }
    return table;
}

QString kvPageText(const KvPages& pages, const profiler::RunTimeline& timeline, std::size_t index) {
    const KvPage& page = pages.pages[index];
    const KvLayerGroup& group = pages.groups[page.group];
    const QString text = QObject::tr("Page %1, %2: %3 tokens, %4")
                             .arg(countText(page.number), group.name, countText(group.pageTokens),
                                  bytesText(timeline.memory().allocations()[page.row].bytes));
    return page.used ? QObject::tr("%1, %2 in use").arg(text, shareText(*page.used)) : text;
}

} // namespace vitrine::ui
