// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load/load_tables.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

FlatCell numberCell(std::optional<double> value, int decimals, const QString& tip = {}) {
    if (!value) {
        return {unknownText(), QVariant(-1.0)};
    }
    const QString text =
        decimals == 0 || *value >= 1000 ? countText(std::llround(*value)) : QString::number(*value, 'f', decimals);
    FlatCell cell(text, QVariant(*value), QString::number(*value, 'g', 12));
    cell.tip = tip;
    return cell;
}

/// Bytes in the unit of the table.
struct TableUnit {
    double bytes = 1;
    QString name;
    int decimals = 2;

    static TableUnit forBytes(std::uint64_t largest) {
        if (largest >= (1ULL << 30)) {
            return {static_cast<double>(1ULL << 30), QStringLiteral("GiB"), 2};
        }
        if (largest >= (1ULL << 20)) {
            return {static_cast<double>(1ULL << 20), QStringLiteral("MiB"), 1};
        }
        return {static_cast<double>(1ULL << 10), QStringLiteral("KiB"), 1};
    }
    FlatCell cell(std::optional<std::uint64_t> value) const {
        return value ? numberCell(static_cast<double>(*value) / bytes, decimals, exactBytesText(*value))
                     : FlatCell(unknownText());
    }
};

using OptionalBytes = std::optional<std::uint64_t>;

std::optional<double> asDouble(OptionalBytes value) {
    return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

class TableMaker {
public:
    explicit TableMaker(const QString& title, const QString& a = {}, const QString& b = {}) {
        table_->columns = {{title}, {a, true}, {b, true}, {QObject::tr("A to B"), true}};
    }
    void bytes(const QString& name, OptionalBytes a, OptionalBytes b, const TableUnit& unit,
               std::optional<bool> lower) {
        row(name, unit.cell(a), unit.cell(b), asDouble(a), asDouble(b), lower);
    }
    void number(const QString& name, std::optional<double> a, std::optional<double> b, int decimals,
                std::optional<bool> lower) {
        row(name, numberCell(a, decimals), numberCell(b, decimals), a, b, lower);
    }
    FlatTreePtr take() { return table_->nodes.empty() ? nullptr : table_; }

private:
    void row(const QString& name, FlatCell left, FlatCell right, std::optional<double> a, std::optional<double> b,
             std::optional<bool> lower) {
        if (!a && !b) {
            return;
        }
        FlatNode node;
        node.key = table_->nodes.size() + 1;
        node.cells = {FlatCell(name), std::move(left), std::move(right), ratioCell(a, b, lower)};
        node.cells[0].tip = name; // the column may be too narrow for it
        table_->nodes.push_back(std::move(node));
    }
    std::shared_ptr<FlatTree> table_ = std::make_shared<FlatTree>();
};

QString shortTitle(const std::optional<LoadSide>& side) {
    if (!side) {
        return {};
    }
    return side->weights == QLatin1String("quantized")     ? QObject::tr("quant.")
           : side->weights == QLatin1String("dequantized") ? QObject::tr("dequant.")
                                                           : side->title;
}

QString loadTitle(const LoadPair& pair) {
    const bool a = pair.a && pair.a->predicted, b = pair.b && pair.b->predicted;
    return a && (b || !pair.b) ? QObject::tr("Load, predicted")
           : a                 ? QObject::tr("Load, A predicted")
           : b                 ? QObject::tr("Load, B predicted")
                               : QObject::tr("Load");
}

template <class F> auto of(const std::optional<LoadSide>& side, F field) -> std::optional<decltype(field(*side))> {
    return side ? std::optional(field(*side)) : std::nullopt;
}

/// The formats of the weights of both sides, those of A first.
QStringList formatsOf(const LoadPair& pair) {
    QStringList names;
    for (const std::optional<LoadSide>* side : {&pair.a, &pair.b}) {
        for (const FormatBytes& format : *side ? (*side)->formats : std::vector<FormatBytes>()) {
            names << format.name;
        }
    }
    names.removeDuplicates();
    return names;
}

std::uint64_t bytesIn(const LoadSide& side, const QString& format) {
    const auto found = std::ranges::find(side.formats, format, &FormatBytes::name);
    return found == side.formats.end() ? 0 : found->bytes;
}

std::uint64_t largestPeak(const LoadPair& pair) {
    return std::max(pair.a ? pair.a->peak : 0, pair.b ? pair.b->peak : 0);
}

std::optional<double> stageRate(const std::optional<LoadSide>& side, const char* name) {
    const profiler::LoadStage* stage = side ? side->stage(name) : nullptr;
    return stage != nullptr && stage->bytesPerSecond > 0 ? std::optional(stage->bytesPerSecond * 1e-9) : std::nullopt;
}

} // namespace

FlatCell ratioCell(std::optional<double> a, std::optional<double> b, std::optional<bool> lowerIsBetter, double noise) {
    if (!a || !b) {
        return {unknownText(), QVariant(0.0)};
    }
    const double largest = std::max(std::abs(*a), std::abs(*b));
    FlatCell cell;
    if (std::abs(*a - *b) <= noise * largest) {
        cell.text = QStringLiteral("=");
        cell.sort = 1.0;
        cell.delta = 0;
        return cell;
    }
    const bool less = *a < *b;
    const double smallest = std::min(std::abs(*a), std::abs(*b));
    const QString arrow = less ? QStringLiteral("▼ ") : QStringLiteral("▲ ");
    cell.text = arrow + (smallest > 0 && *a * *b > 0 ? ratioText(largest / smallest)
                         : *a == 0                   ? QObject::tr("only B")
                         : *b == 0                   ? QObject::tr("only A")
                                                     : unknownText());
    cell.sort = smallest > 0 ? largest / smallest : 1e300;
    cell.delta = !lowerIsBetter ? 2 : less == *lowerIsBetter ? -1 : 1;
    return cell;
}

FlatTreePtr loadTable(const LoadPair& pair) {
    TableMaker table(loadTitle(pair), shortTitle(pair.a), shortTitle(pair.b));
    const double longest = std::max(pair.a ? pair.a->seconds : 0, pair.b ? pair.b->seconds : 0);
    const bool millis = longest < 0.1;
    const auto time = [&](const LoadSide& side) { return millis ? side.seconds * 1e3 : side.seconds; };
    table.number(millis ? QObject::tr("time, ms") : QObject::tr("time, s"), of(pair.a, time), of(pair.b, time),
                 millis ? 1 : 2, true);
    const OptionalBytes readA = pair.a ? pair.a->bytesRead : OptionalBytes(),
                        readB = pair.b ? pair.b->bytesRead : OptionalBytes();
    const TableUnit unit = TableUnit::forBytes(std::max(readA.value_or(0), readB.value_or(0)));
    table.bytes(QObject::tr("on disk, %1").arg(unit.name), pair.a ? pair.a->onDisk : OptionalBytes(),
                pair.b ? pair.b->onDisk : OptionalBytes(), unit, true);
    table.bytes(QObject::tr("bytes read, %1").arg(unit.name), readA, readB, unit, true);
    table.number(QObject::tr("read rate, GB/s"), stageRate(pair.a, "Read"), stageRate(pair.b, "Read"), 1, false);
    table.number(QObject::tr("copy rate, GB/s"), stageRate(pair.a, "Copy"), stageRate(pair.b, "Copy"), 1, false);
    table.number(QObject::tr("expand rate, GB/s"), stageRate(pair.a, "Expand"), stageRate(pair.b, "Expand"), 1, false);
    table.number(QObject::tr("fill rate, GB/s"), stageRate(pair.a, "Fill"), stageRate(pair.b, "Fill"), 1, false);
    return table.take();
}

FlatTreePtr loadMemoryTable(const LoadPair& pair) {
    const TableUnit unit = TableUnit::forBytes(largestPeak(pair));
    TableMaker table(QObject::tr("Memory, %1").arg(unit.name), shortTitle(pair.a), shortTitle(pair.b));
    const auto resident = [](const LoadSide& side) { return side.residentWeights(); };
    const auto transient = [](const LoadSide& side) { return side.transient; };
    const auto peak = [](const LoadSide& side) { return side.peak; };
    table.bytes(QObject::tr("resident"), of(pair.a, resident), of(pair.b, resident), unit, true);
    for (const QString& format : formatsOf(pair)) {
        const auto bytes = [&](const LoadSide& side) { return bytesIn(side, format); };
        table.bytes(format, of(pair.a, bytes), of(pair.b, bytes), unit, std::nullopt);
    }
    table.bytes(QObject::tr("transient"), of(pair.a, transient), of(pair.b, transient), unit, true);
    table.bytes(QObject::tr("peak"), of(pair.a, peak), of(pair.b, peak), unit, true);
    table.bytes(QObject::tr("pinned host"), pair.a ? pair.a->pinned : OptionalBytes(),
                pair.b ? pair.b->pinned : OptionalBytes(), unit, true);
    const OptionalBytes budget = pair.a && pair.a->budget ? pair.a->budget : pair.b ? pair.b->budget : OptionalBytes();
    if (budget) {
        const auto left = [&](const LoadSide& side) {
            const std::uint64_t held = std::accumulate(side.resident.begin(), side.resident.end(), std::uint64_t{0});
            return *budget > held ? *budget - held : 0;
        };
        table.bytes(QObject::tr("left of %1").arg(bytesText(*budget)), of(pair.a, left), of(pair.b, left), unit, false);
    }
    return table.take();
}

FlatTreePtr afterLoadTable(const AfterLoad& a, const AfterLoad& b) {
    TableMaker table(a.priced || b.priced ? QObject::tr("After the load, predicted") : QObject::tr("After the load"));
    table.number(a.decode16 || b.decode16 ? QObject::tr("decode b1, tok/s") : QObject::tr("decode, tok/s"), a.decode,
                 b.decode, 0, false);
    table.number(QObject::tr("decode b16, tok/s"), a.decode16, b.decode16, 0, false);
    const std::int64_t tokens = a.promptTokens == b.promptTokens ? a.promptTokens : 0;
    table.number(tokens >= 1024 && tokens % 1024 == 0 ? QObject::tr("prefill %1K, tok/s").arg(tokens / 1024)
                                                      : QObject::tr("prefill, tok/s"),
                 a.prefill, b.prefill, 0, false);
    const double longest = std::max(a.context.value_or(0), b.context.value_or(0));
    const bool thousands = longest >= 100'000;
    const auto context = [&](std::optional<double> wanted) {
        return wanted && thousands ? std::optional(std::floor(*wanted / 1000)) : wanted;
    };
    table.number(thousands ? QObject::tr("context, K tokens") : QObject::tr("context, tokens"), context(a.context),
                 context(b.context), 0, false);
    return table.take();
}

FlatTreePtr loadTwin(const LoadPair& pair) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {
        {QObject::tr("What")}, {QObject::tr("A"), true}, {QObject::tr("B"), true}, {QObject::tr("A to B"), true}};
    const auto add = [&](const QString& name, OptionalBytes a, OptionalBytes b, const QString& textA,
                         const QString& textB, bool lower) {
        FlatNode node;
        node.key = table->nodes.size() + 1;
        node.cells = {FlatCell(name),
                      {textA, QVariant::fromValue<qulonglong>(a.value_or(0)), QString::number(a.value_or(0))},
                      {textB, QVariant::fromValue<qulonglong>(b.value_or(0)), QString::number(b.value_or(0))},
                      ratioCell(asDouble(a), asDouble(b), lower)};
        table->nodes.push_back(std::move(node));
    };
    for (std::size_t part = 0; part < kLoadShares; ++part) {
        const auto bytes = [&](const LoadSide& side) { return side.resident[part]; };
        const OptionalBytes a = of(pair.a, bytes), b = of(pair.b, bytes);
        if (a.value_or(0) > 0 || b.value_or(0) > 0) {
            add(QObject::tr("resident, %1").arg(loadPartName(static_cast<LoadShare>(part))), a, b, bytesText(a),
                bytesText(b), true);
        }
    }
    for (const QString& format : formatsOf(pair)) {
        const auto bytes = [&](const LoadSide& side) { return bytesIn(side, format); };
        const OptionalBytes a = of(pair.a, bytes), b = of(pair.b, bytes);
        add(QObject::tr("resident, %1").arg(format), a, b, bytesText(a), bytesText(b), true);
    }
    const auto peak = [](const LoadSide& side) { return side.peak; };
    add(QObject::tr("peak"), of(pair.a, peak), of(pair.b, peak), bytesText(of(pair.a, peak)),
        bytesText(of(pair.b, peak)), true);
    for (const char* stage : {"Read", "Copy", "Expand", "Fill"}) {
        const auto busy = [&](const std::optional<LoadSide>& side) {
            const profiler::LoadStage* found = side ? side->stage(stage) : nullptr;
            return found != nullptr ? OptionalBytes(static_cast<std::uint64_t>(std::max<base::TimeNs>(0, found->busy)))
                                    : OptionalBytes();
        };
        const OptionalBytes a = busy(pair.a), b = busy(pair.b);
        if (a || b) {
            const auto text = [](OptionalBytes ns) {
                return ns ? durationText(static_cast<base::TimeNs>(*ns)) : unknownText();
            };
            const bool predicted = (pair.a && pair.a->predicted) || (pair.b && pair.b->predicted);
            add((predicted ? QObject::tr("%1, busy, predicted") : QObject::tr("%1, busy"))
                    .arg(QString::fromLatin1(stage)),
                a, b, text(a), text(b), true);
        }
    }
    return table;
}

} // namespace vitrine::ui
