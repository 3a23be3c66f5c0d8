// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kv_tables.h"

#include <QObject>
#include <algorithm>

#include "ui/models/format.h"

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

FlatTreePtr kvValuesTable(const KvFacts& facts, std::int64_t tokens) {
    auto values = std::make_shared<FlatTree>();
    values->columns = {{QObject::tr("Bytes")}, {QString(), true}};
    if (facts.empty()) {
        return values;
    }
    const KvSample& sample = facts.at(tokens);
    const auto count = static_cast<double>(sample.tokens);
    std::size_t full = 0, sliding = 0;
    if (facts.geometry) {
        for (const KvLayerGroup& group : facts.geometry->groups) {
            (group.sliding() ? sliding : full) += group.layers.size();
        }
    }
    values->nodes.push_back(
        bytesFact(full > 0 ? QObject::tr("full, %1 layers").arg(full) : QObject::tr("full layers"), sample.full));
    if (sample.sliding > 0 || sliding > 0) {
        values->nodes.push_back(
            bytesFact(sliding > 0 ? QObject::tr("sliding, %1 layers").arg(sliding) : QObject::tr("sliding layers"),
                      sample.sliding));
    }
    values->nodes.push_back(bytesFact(QObject::tr("measured"), sample.total(), true));
    if (facts.geometry) {
        const std::uint64_t predicted = facts.geometry->predicted(count);
        const double error = predicted > 0 ? (static_cast<double>(sample.total()) - static_cast<double>(predicted)) /
                                                 static_cast<double>(predicted)
                                           : 0;
        values->nodes.push_back(bytesFact(QObject::tr("predicted"), predicted));
        values->nodes.push_back(fact(QObject::tr("error"), errorText(error)));
        if (facts.geometry->window() > 0) {
            values->nodes.push_back(bytesFact(QObject::tr("without window"), facts.geometry->noWindow(count)));
            const double ratio = static_cast<double>(facts.geometry->noWindow(count)) /
                                 std::max(1.0, static_cast<double>(sample.total()));
            values->nodes.push_back(fact(QObject::tr("the window saves"), ratioText(ratio)));
        }
    }
    return values;
}

FlatTreePtr kvLayoutTable(const KvFacts& facts) {
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

} // namespace vitrine::ui
