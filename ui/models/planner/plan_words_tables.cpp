// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The tables of the Planner.
#include <QObject>
#include <QStringList>
#include <cmath>
#include <memory>

#include "ui/models/common/format.h"
#include "ui/models/planner/plan_words.h"

namespace vitrine::ui {

namespace {

FlatCell bytesCell(std::uint64_t bytes) {
    return {gibText(bytes), QVariant::fromValue<qulonglong>(bytes), QString::number(bytes)};
}

FlatNode fact(const QString& name, const QString& value, const QString& raw = {}) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(value, QVariant(), raw)};
    return node;
}

QString secondsText(double seconds) {
    return seconds > 0 ? durationText(static_cast<base::TimeNs>(std::llround(seconds * 1e9))) : unknownText();
}

} // namespace

FlatTreePtr planSetTable(const engine::WhatIf& answer) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QObject::tr("Set")},
                    {QObject::tr("Peak, GiB"), true, QObject::tr("Peak, bytes")},
                    {QObject::tr("Spare, GiB"), true, QObject::tr("Spare, bytes")},
                    {QObject::tr("Where the peak is")},
                    {QObject::tr("Bytes/token"), true},
                    {QObject::tr("Step"), true, QObject::tr("Step, s")},
                    {QObject::tr("Host, GiB"), true, QObject::tr("Host, bytes")},
                    {QObject::tr("Longest"), true}};
    for (std::size_t i = 0; i < answer.sets.size(); ++i) {
        const engine::WhatIfSet& set = answer.sets[i];
        FlatNode row;
        row.key = i;
        row.emphasis = i == answer.chosen;
        const std::int64_t spare = set.price.spare();
        const QString sign = spare < 0 ? QStringLiteral("\u2212") : QString();
        FlatCell spareCell(sign + gibText(static_cast<std::uint64_t>(std::abs(spare))),
                           QVariant::fromValue<qlonglong>(spare), QString::number(spare));
        spareCell.delta = spare < 0 ? 1 : -1;
        const double slope = set.line.slope().reserved;
        row.cells = {
            FlatCell(setName(set.spec), QVariant::fromValue<qulonglong>(i + 1),
                     QStringLiteral("%1 %2").arg(i + 1).arg(setName(set.spec))),
            bytesCell(set.price.reserved),
            std::move(spareCell),
            FlatCell(planPlaceText(set.price.place)),
            FlatCell(slope > 0 ? countText(std::llround(slope)) : unknownText(), QVariant(slope)),
            FlatCell(secondsText(set.price.seconds), QVariant(set.price.seconds), QString::number(set.price.seconds)),
            bytesCell(set.price.host),
            FlatCell(longestText(set), QVariant::fromValue<qlonglong>(set.line.longest),
                     QString::number(set.line.longest))};
        out->nodes.push_back(std::move(row));
    }
    return out;
}

FlatTreePtr planFactTable(const engine::WhatIf& answer, const ErrorBand& band) {
    const engine::PlanPrice& price = answer.set().price;
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QString()}, {QString(), true}};
    const auto off = static_cast<std::uint64_t>(static_cast<double>(price.reserved) * band.share);
    out->nodes.push_back(fact(QObject::tr("Peak"),
                              QObject::tr("%1 \u00B1%2").arg(gibText(price.reserved), bytesText(off)),
                              QString::number(price.reserved)));
    out->nodes.push_back(fact(QObject::tr("of it tensors"), bytesText(price.peak), QString::number(price.peak)));
    const auto part = [&](const QString& name, const QString& value, const QString& raw) {
        out->nodes.push_back(fact(name, value, raw));
    };
    for (const auto& [role, bytes] : price.roles) {
        part(QObject::tr("Peak of %1").arg(QObject::tr(role.c_str())), bytesText(bytes), QString::number(bytes));
    }
    // A step goes over the whole context once, except where answers are sampled first.
    const bool training = answer.sets.front().spec.edits.size() == 3 && !answer.sampled;
    const double rate = price.seconds > 0 ? static_cast<double>(answer.context) / price.seconds : 0;
    const QString step = secondsText(price.seconds);
    out->nodes.push_back(fact(QObject::tr("Step time"),
                              training ? QObject::tr("%1, %2 tok/s").arg(step, countText(std::llround(rate))) : step));
    for (const auto& [phase, seconds] : price.phases) {
        part(QObject::tr("of it %1").arg(QObject::tr(phase.c_str())), secondsText(seconds), QString::number(seconds));
    }
    if (answer.longestAnswer > 0) {
        part(QObject::tr("Longest answer"), QObject::tr("%1 tokens").arg(countText(answer.longestAnswer)),
             QString::number(answer.longestAnswer));
    }
    if (answer.mostAnswers > 0) {
        part(QObject::tr("Answers together"), QObject::tr("%1 at most").arg(countText(answer.mostAnswers)),
             QString::number(answer.mostAnswers));
    }
    if (!price.timesFrom.empty()) {
        out->nodes.push_back(fact(QObject::tr("Times are"), timesFromText(price.timesFrom)));
    }
    if (training) { // logits are made of all tokens, whichever of them the loss counts
        out->nodes.push_back(fact(QObject::tr("Loss on"), QObject::tr("every token")));
    }
    out->nodes.push_back(fact(QObject::tr("Host memory"), bytesText(price.host), QString::number(price.host)));
    return out;
}

FlatTreePtr planSlopeTable(const engine::WhatIf& answer) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QString()}, {QString(), true}};
    const engine::PlanSlope slope = answer.set().line.slope();
    if (slope.reserved <= 0) {
        return out;
    }
    double rest = slope.reserved;
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const double bytes = slope.byCategory[static_cast<std::size_t>(i)];
        rest -= bytes;
        if (std::abs(bytes) >= 1) {
            FlatNode row = fact(textOf(base::categoryName(static_cast<base::MemoryCategory>(i))),
                                QObject::tr("%1 B").arg(countText(std::llround(bytes))));
            row.category = i;
            out->nodes.push_back(std::move(row));
        }
    }
    if (std::abs(rest) >= 1) {
        out->nodes.push_back(
            fact(QObject::tr("free, reserved"), QObject::tr("%1 B").arg(countText(std::llround(rest)))));
    }
    FlatNode total = fact(QObject::tr("total"), QObject::tr("%1 B").arg(countText(std::llround(slope.reserved))));
    total.emphasis = true;
    out->nodes.push_back(std::move(total));
    return out;
}

FlatTreePtr planContextTable(const engine::WhatIf& answer, std::int64_t axisTop) {
    auto out = std::make_shared<FlatTree>();
    out->columns = {{QObject::tr("Context, tokens"), true}};
    for (const engine::WhatIfSet& set : answer.sets) {
        out->columns.push_back({QObject::tr("%1, GiB").arg(setName(set.spec)), true});
    }
    for (int tenth = 1; tenth <= 10; ++tenth) {
        const std::int64_t tokens = axisTop * tenth / 10;
        FlatNode row;
        row.key = static_cast<quint64>(tenth);
        row.cells.emplace_back(countText(tokens), QVariant::fromValue<qlonglong>(tokens), QString::number(tokens));
        for (const engine::WhatIfSet& set : answer.sets) {
            const double bytes = set.line.at(static_cast<double>(tokens));
            row.cells.push_back(bytes > 0 ? bytesCell(static_cast<std::uint64_t>(bytes)) : FlatCell(unknownText()));
        }
        out->nodes.push_back(std::move(row));
    }
    return out;
}

QString asCommaSeparated(const FlatTree& table) {
    const auto quoted = [](QString text) {
        const bool plain = !text.contains(QLatin1Char(',')) && !text.contains(QLatin1Char('"'));
        return plain ? text
                     : QLatin1Char('"') + text.replace(QLatin1Char('"'), QStringLiteral("\"\"")) + QLatin1Char('"');
    };
    QStringList head;
    for (const FlatColumn& column : table.columns) {
        head << quoted(column.copied.isEmpty() ? column.title : column.copied);
    }
    QStringList lines{head.join(QLatin1Char(','))};
    for (const FlatNode& node : table.nodes) {
        QStringList cells;
        for (const FlatCell& cell : node.cells) {
            cells << quoted(cell.raw.isEmpty() ? cell.text : cell.raw);
        }
        lines << cells.join(QLatin1Char(','));
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

} // namespace vitrine::ui
