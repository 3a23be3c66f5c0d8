// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kernels/kernel_stats.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "kernels/core/device_traits.h"
#include "ui/models/common/format.h"
#include "ui/models/kernels/kernel_trace.h"

namespace vitrine::ui {

using profiler::KernelRow;

namespace {

kernels::DType computeType(const QString& name) {
    return name == QLatin1String("float32") ? kernels::DType::F32 : kernels::DType::BF16;
}

RooflineDot dotOf(const QString& name, std::uint64_t bytes, std::uint64_t flops, base::TimeNs time, double share,
                  const Ceilings& ceilings) {
    RooflineDot dot;
    dot.name = name;
    dot.intensity = static_cast<double>(flops) / static_cast<double>(bytes);
    dot.flopsPerSecond = static_cast<double>(flops) * 1e9 / static_cast<double>(time);
    dot.time = share;
    const auto part = ceilings.share(bytes, flops, time);
    dot.words = QObject::tr("%1: %2 FLOP/B, %3, %4")
                    .arg(name, QString::number(dot.intensity, 'g', 3), flopRateText(dot.flopsPerSecond),
                         rateText(static_cast<double>(bytes) * 1e9 / static_cast<double>(time)));
    if (part) {
        dot.words += QObject::tr(", %1 of roofline").arg(shareText(*part));
    }
    return dot;
}

/// One dot for a kernel whose work is known, and one for an op that launches several kernels.
std::vector<RooflineDot> dotsOf(const profiler::KernelTable& table, const Ceilings& ceilings) {
    std::vector<RooflineDot> dots;
    std::set<std::string> known, done;
    for (const KernelRow& row : table.kernels) {
        if (row.bytes > 0 && row.flops > 0 && row.total > 0) {
            known.insert(row.op);
        }
    }
    for (const KernelRow& row : table.kernels) {
        if (!done.insert(row.name).second) {
            continue;
        }
        KernelRow sum;
        for (const KernelRow& same : table.kernels) {
            if (same.name == row.name && same.bytes > 0 && same.flops > 0) {
                sum.bytes += same.bytes;
                sum.flops += same.flops;
                sum.total += same.total;
                sum.share += same.share;
            }
        }
        if (sum.total > 0) {
            dots.push_back(dotOf(textOf(row.name), sum.bytes, sum.flops, sum.total, sum.share, ceilings));
        }
    }
    for (const profiler::KernelOpRow& op : table.ops) {
        if (!known.contains(op.op) && op.bytes > 0 && op.flops > 0 && op.busy > 0) {
            dots.push_back(dotOf(textOf(op.op), op.bytes, op.flops, op.busy, op.share, ceilings));
        }
    }
    return dots;
}

/// 638, 88.5, 0.3, 0.012
QString teraText(double flopsPerSecond) {
    const double tera = flopsPerSecond / 1e12;
    if (tera < 0.0005) {
        return QStringLiteral("< 0.001");
    }
    return QString::number(tera, 'f', tera >= 100 ? 0 : tera >= 0.095 ? 1 : 3);
}

FlatCell number(QString text, double value) {
    return {std::move(text), value, QString::number(value, 'g', 12)};
}

FlatCell unknown() {
    FlatCell cell(unknownText(), -1.0);
    cell.muted = true;
    return cell;
}

FlatNode rowOf(const KernelRow& row, const Ceilings& ceilings, quint64 key) {
    FlatNode node;
    node.key = key;
    node.category = static_cast<int>(row.category);
    node.cells.resize(KernelColumnCount);
    node.cells[KernelName] = FlatCell(textOf(row.name));
    node.cells[KernelName].tip = QObject::tr("%1\nshortest %2, longest %3")
                                     .arg(textOf(row.name), durationText(row.shortest), durationText(row.longest));
    node.cells[KernelOp] = FlatCell(row.op.empty() ? QObject::tr("outside of ops") : textOf(row.op));
    node.cells[KernelOp].muted = row.op.empty();
    node.cells[KernelCalls] =
        number(countText(static_cast<std::int64_t>(row.launches)), static_cast<double>(row.launches));
    node.cells[KernelTotal] = number(durationText(row.total), static_cast<double>(row.total));
    node.cells[KernelMean] = number(durationText(static_cast<base::TimeNs>(row.mean())), row.mean());
    node.cells[KernelShare] = number(shareText(row.share), row.share);
    node.cells[KernelShare].share = row.share;
    const auto part = ceilings.share(row.bytes, row.flops, row.total);
    node.cells[KernelBytes] =
        row.bytes > 0 ? number(QString::number(row.bytesPerSecond() / 1e9, 'f', 1), row.bytesPerSecond()) : unknown();
    node.cells[KernelFlops] = row.flops > 0 ? number(teraText(row.flopsPerSecond()), row.flopsPerSecond()) : unknown();
    node.cells[KernelOfRoofline] = part ? number(shareText(*part), *part) : unknown();
    if (row.bytes == 0) {
        for (const int column : {KernelBytes, KernelFlops, KernelOfRoofline}) {
            node.cells[static_cast<std::size_t>(column)].tip =
                QObject::tr("The op launches several kernels: what each of them moves is not known.");
        }
    }
    return node;
}

} // namespace

std::optional<double> Ceilings::share(std::uint64_t bytes, std::uint64_t flops, base::TimeNs time) const {
    if (!known() || time <= 0 || (bytes == 0 && flops == 0)) {
        return std::nullopt;
    }
    const double least =
        std::max(static_cast<double>(bytes) / bytesPerSecond, static_cast<double>(flops) / flopsPerSecond);
    return least * 1e9 / static_cast<double>(time);
}

Ceilings ceilingsOf(const sessions::RunInfo& run) {
    Ceilings ceilings;
    const nlohmann::json environment = base::parsedObject(run.environmentJson);
    const auto device = environment.find("device");
    if (device == environment.end() || !device->is_object()) {
        return ceilings;
    }
    ceilings.device = textOf(base::textAt(*device, "name"));
    // The bandwidth that the decode roofline of the same run names; runs without decoding have the device's.
    const nlohmann::json metrics = base::parsedObject(run.metricsJson);
    ceilings.bytesPerSecond = engine::numberOf(metrics, engine::result::kRooflineBandwidth)
                                  .value_or(base::numberAt(*device, "memory_bandwidth").value_or(0));
    ceilings.dtype = textOf(engine::textOf(metrics, engine::result::kDtype));
    // Rates of arithmetic stand in the shipped profile of the same device.
    const QString id = textOf(base::textAt(*device, "id"));
    const auto shipped = kernels::deviceProfileNames();
    if (std::ranges::find(shipped, id.toStdString()) != shipped.end()) {
        try {
            const kernels::DeviceTraits traits = kernels::loadDeviceProfile(id.toStdString());
            ceilings.flopsPerSecond = traits.flops(computeType(ceilings.dtype));
            ceilings.bytesPerSecond = ceilings.bytesPerSecond > 0 ? ceilings.bytesPerSecond : traits.memoryBandwidth;
        } catch (const base::Error&) {
            ceilings.flopsPerSecond = 0; // a damaged profile leaves the roofline out, not the run
        }
    }
    return ceilings;
}

KernelStatsPtr kernelStats(const profiler::RunTimeline& timeline, const Ceilings& ceilings, TimeRange range) {
    auto stats = std::make_shared<KernelStats>();
    stats->table = profiler::kernelTable(timeline, range.begin, range.end);
    stats->ceilings = ceilings;
    stats->dots = dotsOf(stats->table, ceilings);
    stats->range = range;
    if (stats->table.kernels.empty()) {
        stats->ops = profiler::timeOfOps(timeline, range.begin, range.end);
    }
    return stats;
}

std::optional<KernelRow> kernelNamed(const profiler::KernelTable& table, const std::string& name) {
    std::optional<KernelRow> sum;
    bool counted = true;
    for (const KernelRow& row : table.kernels) {
        if (row.name != name) {
            continue;
        }
        if (!sum) {
            sum = row;
            counted = row.bytes > 0;
            continue;
        }
        sum->op += ", " + row.op;
        sum->launches += row.launches;
        sum->total += row.total;
        sum->shortest = std::min(sum->shortest, row.shortest);
        sum->longest = std::max(sum->longest, row.longest);
        sum->share += row.share;
        sum->bytes += row.bytes;
        sum->flops += row.flops;
        counted = counted && row.bytes > 0;
    }
    if (sum && !counted) {
        sum->bytes = sum->flops = 0; // only some of its launches have known work
    }
    return sum;
}

FlatTreePtr kernelTree(const KernelStats& stats, const QString& filter) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {
        {QObject::tr("Kernel"), false}, {QObject::tr("Op"), false},     {QObject::tr("Calls"), true},
        {QObject::tr("Total"), true},   {QObject::tr("Mean"), true},    {QObject::tr("Share"), true},
        {QObject::tr("GB/s"), true},    {QObject::tr("TFLOP/s"), true}, {QObject::tr("Of roofline"), true}};
    std::uint64_t launches = 0;
    base::TimeNs total = 0;
    double share = 0;
    for (std::size_t i = 0; i < stats.table.kernels.size(); ++i) {
        const KernelRow& row = stats.table.kernels[i];
        if (!filter.isEmpty() && !textOf(row.name).contains(filter, Qt::CaseInsensitive) &&
            !textOf(row.op).contains(filter, Qt::CaseInsensitive)) {
            continue;
        }
        tree->nodes.push_back(rowOf(row, stats.ceilings, i + 1));
        launches += row.launches;
        total += row.total;
        share += row.share;
    }
    if (tree->nodes.size() > 1) {
        FlatNode sum;
        sum.last = sum.emphasis = true;
        sum.cells.resize(KernelColumnCount);
        sum.cells[KernelName] = FlatCell(QObject::tr("total"));
        sum.cells[KernelCalls] = number(countText(static_cast<std::int64_t>(launches)), static_cast<double>(launches));
        sum.cells[KernelTotal] = number(durationText(total), static_cast<double>(total));
        sum.cells[KernelShare] = number(shareText(share), share);
        tree->nodes.push_back(std::move(sum));
    }
    return tree;
}

FlatTreePtr flameTable(const profiler::FlameTree& flame) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Name"), false},
                     {QObject::tr("Time"), true},
                     {QObject::tr("Share"), true},
                     {flame.ofKernels ? QObject::tr("Kernels") : QObject::tr("Ops"), true}};
    const double whole = flame.nodes.empty() ? 0 : flame.nodes.front().length;
    for (std::size_t i = 0; i < flame.nodes.size(); ++i) {
        const profiler::FlameNode& node = flame.nodes[i];
        FlatNode row;
        row.parent = node.parent;
        row.key = i + 1;
        row.emphasis = i == 0;
        if (node.category >= 0) {
            row.category = node.category;
        }
        const double share = whole > 0 ? node.length / whole : 0;
        row.cells = {FlatCell(textOf(node.name)),
                     FlatCell(durationText(static_cast<base::TimeNs>(node.length)), node.length,
                              QString::number(node.length, 'f', 0)),
                     FlatCell(shareText(share), share),
                     FlatCell(countText(static_cast<std::int64_t>(node.calls)), static_cast<qulonglong>(node.calls))};
        row.cells[2].share = share;
        tree->nodes.push_back(std::move(row));
    }
    return tree;
}

QString flopRateText(double flopsPerSecond) {
    if (flopsPerSecond <= 0) {
        return unknownText();
    }
    if (flopsPerSecond < 1e11) {
        return QString::number(flopsPerSecond * 1e-9, 'f', 1) + QStringLiteral("\u00A0GFLOP/s");
    }
    return teraText(flopsPerSecond) + QStringLiteral("\u00A0TFLOP/s");
}

} // namespace vitrine::ui
