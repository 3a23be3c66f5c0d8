// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/compare/compare_summary.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/result_fields.h"
#include "profiler/analysis/memory_groups.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "sessions/metric_difference.h"
#include "ui/models/common/format.h"
#include "ui/models/common/result_values.h"
#include "ui/models/compare/compare_text.h"
#include "ui/models/load/load_tables.h"
#include "ui/models/session/run_summary.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;
using sessions::RunInfo;

bool isBytes(std::string_view metric) {
    const engine::ResultField* field = engine::findResult(metric);
    return field != nullptr && field->unit == engine::ResultUnit::Bytes;
}

/// The same experiment on the same machine.
bool areRepeats(const RunInfo& a, const RunInfo& b) {
    const Json left = base::parsedObject(a.environmentJson), right = base::parsedObject(b.environmentJson);
    const auto same = [&](const char* key) { return left.value(key, Json()) == right.value(key, Json()); };
    return base::parsedObject(a.specJson) == base::parsedObject(b.specJson) && same("cpu") && same("device") &&
           same("program");
}

struct Metrics {
    std::vector<std::string> names; ///< in the order of the first run that has each
    std::map<std::string, std::vector<std::optional<double>>> values;
};

Metrics metricsOf(const std::vector<RunInfo>& shown) {
    Metrics metrics;
    const auto put = [&](const std::string& name, std::size_t run, std::optional<double> value) {
        if (!engine::isComparable(name)) {
            return;
        }
        const auto [at, fresh] = metrics.values.try_emplace(name, shown.size(), std::nullopt);
        if (fresh) {
            metrics.names.push_back(name);
        }
        at->second[run] = value ? value : at->second[run];
    };
    for (std::size_t i = 1; i < shown.size(); ++i) {
        for (const sessions::MetricDifference& row : sessions::compareMetrics(shown.front(), shown[i])) {
            put(row.name, 0, row.a);
            put(row.name, i, row.b);
        }
    }
    return metrics;
}

FlatCell metricCell(const std::string& name, std::optional<double> value) {
    FlatCell cell(metricText(name, value), QVariant(value.value_or(-1)),
                  value ? QString::number(*value, 'g', 17) : QString());
    if (value && isBytes(name) && *value >= 0 && *value < 9e18) {
        cell.tip = exactBytesText(static_cast<std::uint64_t>(*value));
    }
    return cell;
}

std::map<std::string, std::uint64_t>
groupsAtPeak(const profiler::RunTimeline* timeline, profiler::GroupBy groupBy, std::vector<std::string>& order,
             std::map<std::string, std::optional<base::MemoryCategory>>& categories) {
    std::map<std::string, std::uint64_t> groups;
    if (timeline == nullptr || timeline->memory().events() == 0) {
        return groups;
    }
    const profiler::MemoryColumn peak = timeline->memory().peak(timeline->begin(), timeline->end());
    const auto add = [&](const std::string& name, std::uint64_t bytes, std::optional<base::MemoryCategory> category) {
        if (std::find(order.begin(), order.end(), name) == order.end()) {
            order.push_back(name);
        }
        groups[name] += bytes;
        categories[name] = category;
    };
    if (groupBy == profiler::GroupBy::Category) {
        for (std::size_t i = 0; i < peak.atMax.size(); ++i) {
            const auto category = static_cast<base::MemoryCategory>(i);
            if (peak.atMax[i] > 0) {
                add(std::string(base::categoryName(category)), peak.atMax[i], category);
            }
        }
        return groups;
    }
    for (const profiler::MemoryGroup& group : profiler::groupAlive(*timeline, peak.maxTime, groupBy).children) {
        add(group.name, group.bytes, std::nullopt);
    }
    return groups;
}

FlatCell bytesDelta(std::uint64_t a, std::uint64_t b) {
    FlatCell cell;
    const double change = static_cast<double>(a) - static_cast<double>(b);
    cell.sort = std::abs(change);
    cell.raw = QString::number(static_cast<qint64>(a) - static_cast<qint64>(b));
    if (a == b) {
        cell.text = QStringLiteral("=");
        cell.delta = 0;
    } else {
        cell.text = (change < 0 ? QStringLiteral("▼ ") : QStringLiteral("▲ ")) + bytesText(a < b ? b - a : a - b);
        cell.delta = change < 0 ? -1 : 1;
    }
    return cell;
}

} // namespace

std::optional<bool> lowerIsBetter(std::string_view metric) {
    const engine::ResultField* field = engine::findResult(metric);
    return field == nullptr || field->better == engine::Better::Neither
               ? std::nullopt
               : std::optional(field->better == engine::Better::Less);
}

std::optional<double> noiseBand(const std::vector<RunInfo>& all, const RunInfo& run, const std::string& metric) {
    const Json spec = base::parsedObject(run.specJson);
    double low = 0, high = 0;
    int count = 0;
    for (const RunInfo& other : all) {
        if (other.status != sessions::RunStatus::Done || base::parsedObject(other.specJson) != spec) {
            continue;
        }
        const auto value = runMetric(other, metric);
        if (value) {
            low = count == 0 ? *value : std::min(low, *value);
            high = count == 0 ? *value : std::max(high, *value);
            ++count;
        }
    }
    const double middle = (low + high) / 2;
    return count < 2 || middle == 0 ? std::nullopt : std::optional((high - low) / 2 / std::abs(middle));
}

FlatTreePtr specTable(const RunInfo& a, const RunInfo& b, bool changedOnly) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Setting")}, {QObject::tr("A")}, {QObject::tr("B")}};
    const Json left = base::parsedObject(a.specJson), right = base::parsedObject(b.specJson);
    const auto add = [&](const std::string& key, const QString& x, const QString& y, bool changed) {
        FlatNode row;
        row.key = table->nodes.size() + 1;
        row.cells = {FlatCell(QString::fromStdString(key)), FlatCell(x), FlatCell(y)};
        row.cells[1].tip = x;
        row.cells[2].tip = y;
        for (FlatCell& cell : row.cells) {
            cell.muted = !changed;
        }
        row.emphasis = false;
        table->nodes.push_back(std::move(row));
    };
    const auto differences = engine::diffExperiments(left, right);
    for (const engine::SpecDifference& row : differences) {
        add(row.key, QString::fromStdString(row.a), QString::fromStdString(row.b), true);
    }
    if (changedOnly) {
        return table;
    }
    for (const auto& [key, value] : left.items()) {
        const auto other = right.find(key);
        if (other != right.end() && *other == value) {
            const QString text =
                QString::fromStdString(value.is_string() ? value.get<std::string>()
                                                         : value.dump(-1, ' ', false, Json::error_handler_t::replace));
            add(key, text, text, false);
        }
    }
    return table;
}

FlatTreePtr metricTable(const std::vector<RunInfo>& shown, const std::vector<RunInfo>& all, bool changedOnly) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Metric")}};
    for (std::size_t i = 0; i < shown.size(); ++i) {
        table->columns.push_back({i == 0   ? QObject::tr("A")
                                  : i == 1 ? QObject::tr("B")
                                           : QString::fromStdString(shown[i].name),
                                  true});
    }
    table->columns.push_back({QObject::tr("A to B"), true});
    table->columns.push_back({QObject::tr("Noise"), true});
    if (shown.size() < 2) {
        return table;
    }
    Metrics metrics = metricsOf(shown);
    std::stable_sort(metrics.names.begin(), metrics.names.end(),
                     [](const auto& x, const auto& y) { return engine::resultRank(x) < engine::resultRank(y); });
    // A run that did not come to its end is not better for what it did not do.
    const bool judged = shown[0].status == sessions::RunStatus::Done && shown[1].status == sessions::RunStatus::Done;
    // Repeats of each other differ by noise alone, by as much as both ends of the band are apart.
    const double spread = areRepeats(shown[0], shown[1]) ? 2 : 1;
    for (const std::string& name : metrics.names) {
        const auto& values = metrics.values.at(name);
        const bool same = std::all_of(values.begin(), values.end(), [&](const auto& v) { return v == values.front(); });
        if ((changedOnly && same) ||
            std::all_of(values.begin(), values.end(), [](const auto& v) { return !v || *v == 0; })) {
            continue;
        }
        FlatNode row;
        row.key = table->nodes.size() + 1;
        row.cells.push_back(FlatCell(textOf(engine::resultWords(name))));
        for (const auto& value : values) {
            row.cells.push_back(metricCell(name, value));
        }
        const auto noiseA = noiseBand(all, shown[0], name), noiseB = noiseBand(all, shown[1], name);
        const double noise = std::max({spread * noiseA.value_or(0), spread * noiseB.value_or(0), kSameShare});
        row.cells.push_back(ratioCell(values[0], values[1], judged ? lowerIsBetter(name) : std::nullopt, noise));
        row.cells.push_back(noiseA || noiseB ? FlatCell(QStringLiteral("±") +
                                                            shareText(std::max(noiseA.value_or(0), noiseB.value_or(0))),
                                                        QVariant(noise))
                                             : FlatCell(unknownText(), QVariant(-1.0)));
        row.cells.back().muted = true;
        table->nodes.push_back(std::move(row));
    }
    return table;
}

FlatTreePtr peakTable(const profiler::RunTimeline* a, const profiler::RunTimeline* b, profiler::GroupBy groupBy) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("At the peak")},
                      {QObject::tr("A"), true},
                      {QObject::tr("B"), true},
                      {QObject::tr("A to B"), true}};
    std::vector<std::string> order;
    std::map<std::string, std::optional<base::MemoryCategory>> categories;
    const auto left = groupsAtPeak(a, groupBy, order, categories), right = groupsAtPeak(b, groupBy, order, categories);
    std::uint64_t totalA = 0, totalB = 0;
    const auto valueOf = [](const auto& groups, const std::string& name) {
        const auto found = groups.find(name);
        return found == groups.end() ? std::uint64_t{0} : found->second;
    };
    const auto add = [&](const QString& name, std::uint64_t x, std::uint64_t y) -> FlatNode& {
        FlatNode row;
        row.key = table->nodes.size() + 1;
        row.cells = {FlatCell(name),
                     {bytesText(x), QVariant::fromValue<qulonglong>(x), QString::number(x)},
                     {bytesText(y), QVariant::fromValue<qulonglong>(y), QString::number(y)},
                     bytesDelta(x, y)};
        row.cells[1].tip = exactBytesText(x);
        row.cells[2].tip = exactBytesText(y);
        table->nodes.push_back(std::move(row));
        return table->nodes.back();
    };
    const auto change = [&](const std::string& name) {
        return std::abs(static_cast<double>(valueOf(left, name)) - static_cast<double>(valueOf(right, name)));
    };
    std::stable_sort(order.begin(), order.end(), [&](const auto& x, const auto& y) { return change(x) > change(y); });
    for (const std::string& name : order) {
        const std::uint64_t x = valueOf(left, name), y = valueOf(right, name);
        totalA += x;
        totalB += y;
        FlatNode& row = add(QString::fromStdString(name), x, y);
        if (const auto category = categories[name]) {
            row.category = static_cast<int>(*category);
        }
    }
    if (!order.empty()) {
        FlatNode& total = add(QObject::tr("total"), totalA, totalB);
        total.emphasis = true;
        total.last = true;
    }
    return table;
}

QString compareText(const std::vector<RunInfo>& shown, const std::vector<RunInfo>& all, const profiler::RunTimeline* a,
                    const profiler::RunTimeline* b) {
    if (shown.size() < 2) {
        return {};
    }
    const CompareText words = compareText(shown[0], shown[1]);
    QStringList lines{QStringLiteral("**%1**").arg(words.sentence), words.cause, QString()};
    for (std::size_t i = 0; i < shown.size(); ++i) {
        lines << QStringLiteral("- %1: %2")
                     .arg(i == 0   ? QStringLiteral("A")
                          : i == 1 ? QStringLiteral("B")
                                   : QStringLiteral("+"),
                          runTitle(shown[i]));
    }
    for (const FlatTreePtr& table : {specTable(shown[0], shown[1], true), metricTable(shown, all, true),
                                     peakTable(a, b, profiler::GroupBy::Category)}) {
        if (!table->nodes.empty()) {
            lines << QString() << asMarkdown(*table);
        }
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

} // namespace vitrine::ui
