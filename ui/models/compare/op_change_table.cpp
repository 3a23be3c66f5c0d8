// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/compare/op_change_table.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "profiler/analysis/op_times.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kShownOps = 10;
constexpr double kUsualNoise = 0.03;

struct TimeScale {
    explicit TimeScale(base::TimeNs total) {
        if (total >= 10'000'000'000) {
            unit = 1e9;
            name = "s";
        } else if (total >= 10'000'000) {
            unit = 1e6;
            name = "ms";
        }
    }
    QString text(double ns) const {
        const double value = ns / unit;
        return QString::number(value, 'f', value < 99.95 ? 2 : 1);
    }

    double unit = 1e3;
    const char* name = "µs";
};

/// A and B of an op.
using Pair = std::pair<base::TimeNs, base::TimeNs>;

base::TimeNs changeOf(const Pair& pair) {
    return pair.second - pair.first;
}

FlatCell timeCell(base::TimeNs time, const TimeScale& scale) {
    FlatCell cell(scale.text(static_cast<double>(time)), QVariant::fromValue<qlonglong>(time), QString::number(time));
    cell.tip = durationText(time);
    return cell;
}

/// A change below what one run varies by is none.
FlatCell timeChangeCell(const Pair& pair, const TimeScale& scale, double largest) {
    const auto change = static_cast<double>(changeOf(pair));
    const bool same = std::abs(change) <= kUsualNoise * static_cast<double>(std::max(pair.first, pair.second)) ||
                      std::abs(change) < 0.005 * scale.unit;
    FlatCell cell(same ? QStringLiteral("=")
                       : (change < 0 ? QStringLiteral("▼ −") : QStringLiteral("▲ +")) + scale.text(std::abs(change)),
                  QVariant(std::abs(change)), QString::number(changeOf(pair)));
    cell.delta = same ? 0 : change < 0 ? -1 : 1;
    cell.share = largest > 0 && !same ? change / largest : 0;
    return cell;
}

/// What a run's ops were timed by; empty where their times are not those of the host.
std::string opClock(const sessions::RunInfo& run) {
    const auto experiment = engine::Experiment::read(run.specJson);
    const std::string backend = base::textIn(run.environmentJson, "backend");
    const bool host = backend == "cpu" || backend == "meta";
    return experiment && experiment->text("profile") == "full" && host ? backend : std::string();
}

} // namespace

FlatTreePtr prefillOpTable(const sessions::RunInfo& runA, const profiler::RunTimeline* a, const sessions::RunInfo& runB,
                           const profiler::RunTimeline* b) {
    auto table = std::make_shared<FlatTree>();
    const std::string clock = opClock(runA);
    if (a == nullptr || b == nullptr || clock.empty() || clock != opClock(runB)) {
        return table;
    }
    const profiler::PhaseOps left = profiler::phaseOps(*a, "prefill"), right = profiler::phaseOps(*b, "prefill");
    if (left.ops.empty() || right.ops.empty()) {
        return table;
    }
    std::map<std::string, Pair> byName;
    for (const profiler::OpTime& op : left.ops) {
        byName[op.name].first = op.time;
    }
    for (const profiler::OpTime& op : right.ops) {
        byName[op.name].second = op.time;
    }
    std::vector<std::pair<std::string, Pair>> rows(byName.begin(), byName.end());
    std::ranges::stable_sort(
        rows, [](const auto& x, const auto& y) { return std::abs(changeOf(x.second)) > std::abs(changeOf(y.second)); });
    Pair rest{left.other, right.other};
    for (std::size_t i = kShownOps; i < rows.size(); ++i) {
        rest.first += rows[i].second.first;
        rest.second += rows[i].second.second;
    }
    rows.resize(std::min(rows.size(), kShownOps));
    const TimeScale scale(std::max(left.total, right.total));
    double largest = std::abs(static_cast<double>(changeOf(rest)));
    for (const auto& [name, pair] : rows) {
        largest = std::max(largest, std::abs(static_cast<double>(changeOf(pair))));
    }
    table->columns = {{clock == "meta" ? QObject::tr("Prefill plan, %1").arg(QString::fromUtf8(scale.name))
                                       : QObject::tr("Prefill by op, %1").arg(QString::fromUtf8(scale.name)),
                       false, QObject::tr("Op")},
                      {QObject::tr("A"), true, QObject::tr("A, ns")},
                      {QObject::tr("B"), true, QObject::tr("B, ns")},
                      {QObject::tr("B − A"), true, QObject::tr("B − A, ns")}};
    const auto add = [&](const QString& name, const Pair& pair) -> FlatNode& {
        FlatNode row;
        row.key = table->nodes.size() + 1;
        row.cells = {FlatCell(name), timeCell(pair.first, scale), timeCell(pair.second, scale),
                     timeChangeCell(pair, scale, largest)};
        row.cells[0].tip = name;
        table->nodes.push_back(std::move(row));
        return table->nodes.back();
    };
    for (const auto& [name, pair] : rows) {
        add(textOf(name), pair);
    }
    add(QObject::tr("other"), rest);
    FlatNode& total = add(QObject::tr("total"), {left.total, right.total});
    total.cells[3].share.reset();
    total.emphasis = true;
    total.last = true;
    return table;
}

} // namespace vitrine::ui
