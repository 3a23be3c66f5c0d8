// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_cache/kv_tables.h"

#include <QObject>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

FlatNode fact(const QString& name, const QString& value, const QString& raw = {}, bool strong = false) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(value, QVariant(), raw)};
    node.emphasis = strong;
    return node;
}

FlatNode bytesFact(const QString& name, std::uint64_t bytes, bool strong = false) {
    FlatNode node = fact(name, bytesText(bytes), QString::number(bytes), strong);
    node.cells[1].tip = exactBytesText(bytes);
    return node;
}

} // namespace

FlatTreePtr kvValuesTable(const KvSummary& facts, std::int64_t tokens) {
    auto values = std::make_shared<FlatTree>();
    values->columns = {{QObject::tr("Bytes")}, {QString(), true}};
    if (facts.empty()) {
        return values;
    }
    const KvSample& sample = facts.at(tokens);
    const auto count = static_cast<double>(sample.tokens);
    const std::size_t full = facts.geometry ? kvLayers(*facts.geometry, false) : 0;
    const std::size_t sliding = facts.geometry ? kvLayers(*facts.geometry, true) : 0;
    values->nodes.push_back(
        bytesFact(full > 0 ? QObject::tr("full, %1 layers").arg(full) : QObject::tr("full layers"), sample.full));
    if (sample.sliding > 0 || sliding > 0) {
        values->nodes.push_back(
            bytesFact(sliding > 0 ? QObject::tr("sliding, %1 layers").arg(sliding) : QObject::tr("sliding layers"),
                      sample.sliding));
    }
    values->nodes.push_back(bytesFact(kvHeldWord(facts.planned), sample.total(), true));
    if (facts.geometry) {
        const std::uint64_t kept = facts.geometry->kept(count);
        values->nodes.push_back(bytesFact(QObject::tr("tokens kept, formula"), kept));
        values->nodes.push_back(
            bytesFact(QObject::tr("page rounding"), sample.total() - std::min(sample.total(), kept)));
        if (const auto rest = facts.unexplained(sample)) {
            values->nodes.push_back(fact(*rest == 0 ? QObject::tr("held \u2212 kept \u2212 rounding")
                                                    : QObject::tr("error: not explained by pages"),
                                         QObject::tr("%1 B").arg(countText(*rest)), QString::number(*rest),
                                         *rest != 0));
        }
        if (facts.geometry->window() > 0) {
            values->nodes.push_back(bytesFact(QObject::tr("without windows"), facts.geometry->noWindow(count)));
        }
    }
    return values;
}

FlatTreePtr kvLayoutTable(const KvSummary& facts) {
    auto shape = std::make_shared<FlatTree>();
    shape->columns = {{QObject::tr("Layout")}, {QString(), true}};
    if (!facts.geometry) {
        return shape;
    }
    for (const KvLayerGroup& group : facts.geometry->groups) {
        const QString name = QObject::tr(group.sliding() ? "sliding" : "full");
        shape->nodes.push_back(fact(QObject::tr("%1 layers").arg(name), layerListText(group.layers)));
        shape->nodes.back().cells[1].tip = layerListText(group.layers);
        shape->nodes.push_back(bytesFact(QObject::tr("%1, one token").arg(name), group.bytesPerToken));
        if (group.pageTokens > 0) {
            shape->nodes.push_back(
                fact(QObject::tr("%1, page").arg(name), QObject::tr("%1 tokens").arg(countText(group.pageTokens))));
        }
    }
    if (facts.geometry->window() > 0) {
        shape->nodes.push_back(
            fact(QObject::tr("window"), QObject::tr("%1 tokens").arg(countText(facts.geometry->window()))));
    }
    shape->nodes.push_back(fact(QObject::tr("dtype"), facts.geometry->dtype));
    return shape;
}

std::vector<KvGroupBytes> kvGroupBytes(const KvSummary& facts, const KvPool& pool, base::TimeNs time) {
    std::vector<KvGroupBytes> out;
    if (!facts.geometry) {
        return out;
    }
    const KvPoolBytes bytes = pool.bytesAt(time);
    double tokenBytes = 0;
    for (const KvLayerGroup& group : facts.geometry->groups) {
        tokenBytes += static_cast<double>(group.bytesPerToken);
    }
    for (const KvLayerGroup& group : facts.geometry->groups) {
        const auto share = static_cast<double>(group.layers.size()) /
                           static_cast<double>(std::max<std::size_t>(1, kvLayers(*facts.geometry, group.sliding())));
        const auto part = [](std::uint64_t whole, double of) {
            return static_cast<std::uint64_t>(std::llround(static_cast<double>(whole) * of));
        };
        KvGroupBytes held;
        held.held = part(group.sliding() ? bytes.sliding : bytes.full, share);
        held.kept = part(group.sliding() ? bytes.keptSliding : bytes.keptFull, share);
        held.all = part(bytes.noWindow, static_cast<double>(group.bytesPerToken) / std::max(1.0, tokenBytes));
        held.ownHeld = held.ownKept = share >= 1;
        out.push_back(held);
    }
    return out;
}

FlatTreePtr kvPoolSampleTable(const KvPool& pool, std::size_t rows) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Time"), true},           {QObject::tr("Full layers"), true},
                      {QObject::tr("Sliding layers"), true}, {QObject::tr("Held"), true},
                      {QObject::tr("Kept"), true},           {QObject::tr("Page rounding"), true},
                      {QObject::tr("Without windows"), true}};
    const base::TimeNs length = std::max<base::TimeNs>(pool.end() - pool.begin(), 0);
    for (std::size_t i = 0; i < rows; ++i) {
        const double at = rows > 1 ? static_cast<double>(i) / static_cast<double>(rows - 1) : 0;
        const base::TimeNs time =
            pool.begin() + static_cast<base::TimeNs>(std::llround(static_cast<double>(length) * at));
        const KvPoolBytes bytes = pool.bytesAt(time);
        FlatNode row;
        row.key = i;
        row.cells = {{instantText(time), QVariant::fromValue<qlonglong>(time), QString::number(time)},
                     kvBytesCell(bytes.full),
                     kvBytesCell(bytes.sliding),
                     kvBytesCell(bytes.held()),
                     kvBytesCell(bytes.kept()),
                     {shareText(bytes.waste()), QVariant(bytes.waste())},
                     kvBytesCell(bytes.noWindow)};
        table->nodes.push_back(std::move(row));
    }
    return table;
}

} // namespace vitrine::ui
