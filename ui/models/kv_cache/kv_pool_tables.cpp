// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Words and tables about a pool of pages.
#include <QObject>
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/models/common/format.h"
#include "ui/models/kv_cache/kv_pool.h"

namespace vitrine::ui {

namespace {

using base::PageState;

FlatNode factRow(const QString& name, const QString& value, const QString& raw, bool strong = false) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(value, QVariant(), raw)};
    node.emphasis = strong;
    return node;
}

QString stateWord(const KvPoolPanel& page) {
    return page.state == PageState::Used     ? (page.shared() ? QObject::tr("shared") : QObject::tr("used"))
           : page.state == PageState::Cached ? QObject::tr("kept for its prefix")
                                             : QObject::tr("free");
}

} // namespace

QString kvPoolWho(const KvPool& pool, const KvPoolPanel& page) {
    return page.request >= 0                         ? QObject::tr("request %1").arg(page.request)
           : page.owner >= 0 && pool.namesRequests() ? QObject::tr("padding")
           : page.owner >= 0                         ? QObject::tr("sequence %1").arg(page.owner)
                                                     : unknownText();
}

QString kvPoolPageText(const KvPool& pool, std::size_t group, std::size_t number, const KvPoolPanel& page,
                       base::TimeNs time) {
    const KvPoolGroup& of = pool.groups()[group];
    const QString place = QObject::tr("Page %1").arg(countText(static_cast<qint64>(number)));
    QStringList words{
        of.layers > 0
            ? QObject::tr("%1 of the %2 %3 layers").arg(place, countText(static_cast<qint64>(of.layers)), of.name)
            : QObject::tr("%1 of the %2 layers").arg(place, of.name)};
    if (page.state == PageState::Free) {
        words[0] += QObject::tr(": free");
    } else if (page.state == PageState::Cached) {
        words[0] += QObject::tr(": kept for a prefix that may come again");
    } else {
        words[0] += QStringLiteral(": ") + kvPoolWho(pool, page);
        if (const auto request = page.request >= 0 ? pool.requestAt(page.request, time) : std::nullopt) {
            words[0] += QObject::tr(" (prompt %1, %2 tokens generated)")
                            .arg(countText(request->prompt), countText(request->generated));
        }
        if (page.shared()) {
            words << QObject::tr("held by %1 sequences").arg(page.sequences);
        }
    }
    if (of.pageTokens > 0) {
        words << QObject::tr("room for %1 tokens").arg(countText(of.pageTokens));
    }
    if (of.pageBytes > 0) {
        words << bytesText(of.pageBytes);
    }
    return words.join(QStringLiteral(", "));
}

FlatTreePtr kvPoolTable(const KvPool& pool, base::TimeNs time, std::size_t limit) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Group")},          {QObject::tr("Page"), true},    {QObject::tr("State")},
                      {QObject::tr("Taken by"), true}, {QObject::tr("Held by"), true}, {QObject::tr("Bytes"), true}};
    const auto pages = pool.at(time);
    for (std::size_t g = 0; g < pages.size(); ++g) {
        for (std::size_t i = 0; i < pages[g].size() && table->nodes.size() < limit; ++i) {
            const KvPoolPanel& page = pages[g][i];
            FlatNode node;
            node.key = (static_cast<quint64>(g) << 32U) + i;
            node.cells = {FlatCell(pool.groups()[g].name),
                          {countText(static_cast<qint64>(i)), QVariant::fromValue<qulonglong>(i)},
                          FlatCell(stateWord(page)),
                          {kvPoolWho(pool, page), QVariant(pool.namesRequests() ? page.request : page.owner)},
                          {QString::number(page.sequences), QVariant(page.sequences)},
                          kvBytesCell(pool.groups()[g].pageBytes)};
            table->nodes.push_back(std::move(node));
        }
    }
    return table;
}

FlatTreePtr kvPoolValues(const KvPool& pool, base::TimeNs time) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Pool")}, {QString(), true}};
    const auto count = [&](const QString& name, double value, bool strong = false) {
        table->nodes.push_back(
            factRow(name, countText(std::llround(value)), QString::number(std::llround(value)), strong));
    };
    const double used = pool.used().at(time).value_or(0), cached = pool.cached().at(time).value_or(0);
    count(QObject::tr("pages used"), used, true);
    count(QObject::tr("of them shared"), pool.shared().at(time).value_or(0));
    count(QObject::tr("kept for prefixes"), cached);
    if (const auto backed = pool.backed().at(time)) {
        count(QObject::tr("free"), std::max(0.0, *backed - used - cached));
        count(QObject::tr("with memory"), std::max(*backed, used + cached));
    }
    if (pool.limitPages() > 0) {
        count(QObject::tr("at most"), static_cast<double>(pool.limitPages()));
    }
    const KvPoolBytes bytes = pool.bytesAt(time);
    const auto size = [&](const QString& name, std::uint64_t value, bool strong = false) {
        FlatNode node = factRow(name, bytesText(value), QString::number(value), strong);
        node.cells[1].tip = exactBytesText(value);
        table->nodes.push_back(std::move(node));
    };
    if (bytes.held() > 0) {
        size(QObject::tr("full layers"), bytes.full);
        if (bytes.sliding > 0) {
            size(QObject::tr("sliding layers"), bytes.sliding);
        }
        size(QObject::tr("held, whole pages"), bytes.held(), true);
    }
    if (bytes.kept() > 0) {
        size(QObject::tr("tokens kept, formula"), bytes.kept());
        if (bytes.kept() > bytes.held()) {
            size(QObject::tr("shared pages save"), bytes.kept() - bytes.held());
        } else {
            table->nodes.push_back(factRow(pool.shared().at(time).value_or(0) > 0
                                               ? QObject::tr("page rounding, at least")
                                               : QObject::tr("page rounding"),
                                           shareText(bytes.waste()), QString::number(bytes.waste())));
        }
        size(QObject::tr("without windows"), bytes.noWindow);
    }
    return table;
}

FlatTreePtr kvPoolOwners(const KvPool& pool, base::TimeNs time, std::size_t limit) {
    struct Row {
        KvPoolPanel of;
        std::size_t pages = 0, shared = 0;
        std::uint64_t bytes = 0;
    };
    std::map<std::int32_t, Row> rows;
    const auto pages = pool.at(time);
    for (std::size_t g = 0; g < pages.size(); ++g) {
        for (const KvPoolPanel& page : pages[g]) {
            if (page.state == PageState::Used) {
                Row& row = rows[pool.namesRequests() ? page.request : page.owner];
                row.of = page;
                ++row.pages;
                row.shared += page.shared() ? 1 : 0;
                row.bytes += pool.groups()[g].pageBytes;
            }
        }
    }
    std::vector<Row> sorted;
    sorted.reserve(rows.size());
    for (const auto& [owner, row] : rows) {
        sorted.push_back(row);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) { return a.pages > b.pages; });
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Owner")},
                      {QObject::tr("pages"), true},
                      {QObject::tr("shared"), true},
                      {QObject::tr("bytes"), true}};
    const auto count = [](std::size_t value) {
        return FlatCell(countText(static_cast<qint64>(value)), QVariant::fromValue<qulonglong>(value));
    };
    for (std::size_t i = 0; i < std::min(limit, sorted.size()); ++i) {
        FlatNode node;
        node.key = sorted[i].of.request >= 0 ? static_cast<quint64>(sorted[i].of.request) + 1 : 0;
        node.cells = {FlatCell(kvPoolWho(pool, sorted[i].of)), count(sorted[i].pages), count(sorted[i].shared),
                      kvBytesCell(sorted[i].bytes)};
        table->nodes.push_back(std::move(node));
    }
    return table;
}

FlatTreePtr kvPoolRequestTable(const KvPool& pool, std::int32_t request, base::TimeNs time) {
    const auto state = request >= 0 ? pool.requestAt(request, time) : std::nullopt;
    if (!state) {
        return nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Request %1").arg(request)}, {QString(), true}};
    const auto add = [&](const QString& name, std::int64_t count) {
        table->nodes.push_back(factRow(name, countText(count), QString::number(count)));
    };
    add(QObject::tr("prompt tokens"), state->prompt);
    add(QObject::tr("generated so far"), state->generated);
    const auto pages = pool.at(time);
    std::uint64_t bytes = 0;
    for (std::size_t g = 0; g < pages.size(); ++g) {
        const auto held = std::ranges::count(pages[g], request, &KvPoolPanel::request);
        add(QObject::tr("pages, %1 layers").arg(pool.groups()[g].name), held);
        bytes += static_cast<std::uint64_t>(held) * pool.groups()[g].pageBytes;
    }
    FlatNode row = factRow(QObject::tr("in its pages"), bytesText(bytes), QString::number(bytes), true);
    row.cells[1].tip = exactBytesText(bytes);
    table->nodes.push_back(std::move(row));
    return table;
}

} // namespace vitrine::ui
