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
#include "engine/workload/experiment/run_comparison.h"
#include "profiler/analysis/memory_groups.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"
#include "ui/models/common/result_values.h"
#include "ui/models/compare/compare_text.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;
using sessions::RunInfo;

bool isBytes(std::string_view metric) {
    const engine::ResultField* field = engine::findResult(metric);
    return field != nullptr && field->unit == engine::ResultUnit::Bytes;
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

/// B − A of two sizes.
FlatCell bytesDelta(std::uint64_t a, std::uint64_t b) {
    FlatCell cell;
    const double change = static_cast<double>(b) - static_cast<double>(a);
    cell.sort = std::abs(change);
    cell.raw = QString::number(static_cast<qint64>(b) - static_cast<qint64>(a));
    if (a == b) {
        cell.text = QStringLiteral("=");
        cell.delta = 0;
    } else {
        cell.text = (change < 0 ? QStringLiteral("▼ −") : QStringLiteral("▲ +")) + bytesText(a < b ? b - a : a - b);
        cell.delta = change < 0 ? -1 : 1;
    }
    return cell;
}

/// `judged` false: the colour says nothing of better or worse.
FlatCell changeCell(const engine::ResultChange& row, bool judged) {
    if (!row.judgement) {
        return {unknownText(), QVariant(0.0)};
    }
    const engine::Judgement& judgement = *row.judgement;
    FlatCell cell(textOf(engine::changeText(row.path, judgement)), QVariant(std::abs(judgement.change)),
                  QString::number(judgement.change, 'g', 17));
    switch (judgement.verdict) {
    case engine::Verdict::Same:
        cell.delta = 0;
        break;
    case engine::Verdict::Better:
        cell.delta = judged ? -1 : 2;
        break;
    case engine::Verdict::Worse:
        cell.delta = judged ? 1 : 2;
        break;
    case engine::Verdict::Differs:
        cell.delta = 2;
        break;
    }
    return cell;
}

FlatCell noiseCell(const engine::ResultChange& row) {
    if (!row.judgement) {
        return {unknownText(), QVariant(-1.0)};
    }
    const double noise = row.judgement->noise;
    FlatCell cell(row.judgement->fromRepeats
                      ? QStringLiteral("±") + textOf(engine::signedValueText(row.path, noise)).mid(1)
                      : QObject::tr("no repeats"),
                  QVariant(noise));
    cell.muted = true;
    cell.tip = row.judgement->fromRepeats ? QObject::tr("Spread of %1 runs of A and %2 of B; a change inside it is =")
                                                .arg(row.repeatsA.size())
                                                .arg(row.repeatsB.size())
                                          : QObject::tr("One run each: a change below %1 counts as noise")
                                                .arg(textOf(engine::signedValueText(row.path, noise)).mid(1));
    return cell;
}

QString columnTitle(const std::vector<RunInfo>& shown, std::size_t i) {
    // Letters are places, numbers are runs.
    return QStringLiteral("%1 %2").arg(QChar(static_cast<char16_t>(u'A' + i))).arg(runNumber(shown[i]));
}

} // namespace

FlatTreePtr specTable(const RunInfo& a, const RunInfo& b, bool changedOnly) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Setting")}, {columnTitle({a, b}, 0)}, {columnTitle({a, b}, 1)}};
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
    for (const auto& [key, value] : left.items()) {
        if (changedOnly) {
            break;
        }
        const auto other = right.find(key);
        if (other != right.end() && *other == value) {
            const QString text =
                QString::fromStdString(value.is_string() ? value.get<std::string>()
                                                         : value.dump(-1, ' ', false, Json::error_handler_t::replace));
            add(key, text, text, false);
        }
    }
    const engine::ComparedRun x = comparedRun(a), y = comparedRun(b);
    const auto surroundings = engine::diffSurroundings(x, y);
    if (!surroundings.empty()) {
        add(QObject::tr("Measured surroundings, %1 of %2 differ")
                .arg(surroundings.size())
                .arg(engine::surroundingsKnown(x, y))
                .toStdString(),
            {}, {}, false);
    }
    for (const engine::SurroundingDifference& row : surroundings) {
        add(row.words, textOf(row.a), textOf(row.b), true);
    }
    return table;
}

FlatTreePtr metricTable(const std::vector<RunInfo>& shown, const std::vector<RunInfo>& all, bool changedOnly,
                        bool changes) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Metric")}};
    for (std::size_t i = 0; i < shown.size(); ++i) {
        table->columns.push_back({columnTitle(shown, i), true});
    }
    if (changes) {
        table->columns.push_back({QObject::tr("B − A"), true});
        table->columns.push_back({QObject::tr("Noise"), true});
    }
    if (shown.size() < 2) {
        return table;
    }
    const auto rows = engine::compareResults(comparedRun(shown[0]), comparedRun(shown[1]), comparedRuns(all));
    std::vector<std::map<std::string, double>> others;
    for (std::size_t i = 2; i < shown.size(); ++i) {
        others.push_back(base::numbersByPath(shown[i].metricsJson));
    }
    // A run that did not come to its end is not better for what it did not do, nor is one that stopped early.
    const bool done = shown[0].status == sessions::RunStatus::Done && shown[1].status == sessions::RunStatus::Done;
    const bool early = engine::earlyStop(comparedRun(shown[0]), comparedRun(shown[1])).has_value();
    for (const engine::ResultChange& result : rows) {
        const bool zero = result.a.value_or(0) == 0 && result.b.value_or(0) == 0;
        if (zero ||
            (changedOnly && result.judgement && result.judgement->verdict == engine::Verdict::Same && others.empty())) {
            continue;
        }
        FlatNode row;
        row.key = table->nodes.size() + 1;
        row.cells.push_back(FlatCell(textOf(result.words)));
        row.cells.push_back(metricCell(result.path, result.a));
        row.cells.push_back(metricCell(result.path, result.b));
        for (const auto& numbers : others) {
            const auto found = numbers.find(result.path);
            row.cells.push_back(
                metricCell(result.path, found == numbers.end() ? std::nullopt : std::optional(found->second)));
        }
        if (changes) {
            row.cells.push_back(changeCell(result, done && !(early && engine::growsWithTokens(result.path))));
            row.cells.push_back(noiseCell(result));
        }
        table->nodes.push_back(std::move(row));
    }
    return table;
}

FlatTreePtr peakTable(const profiler::RunTimeline* a, const profiler::RunTimeline* b, profiler::GroupBy groupBy) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {
        {QObject::tr("At the peak")}, {QObject::tr("A"), true}, {QObject::tr("B"), true}, {QObject::tr("B − A"), true}};
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
    const CompareText words = compareText(shown[0], shown[1], all);
    QStringList lines{QStringLiteral("**%1**").arg(words.sentence), QString()};
    for (const QString& line : {words.cause, words.nothing ? QString() : words.notComparable}) {
        if (!line.isEmpty()) {
            lines << line << QString();
        }
    }
    for (std::size_t i = 0; i < shown.size(); ++i) {
        lines << QStringLiteral("- %1: %2").arg(columnTitle(shown, i), runTitle(shown[i]));
    }
    std::vector<FlatTreePtr> tables{specTable(shown[0], shown[1], true), metricTable(shown, all, true, !words.nothing)};
    if (!words.nothing) {
        tables.push_back(peakTable(a, b, profiler::GroupBy::Category));
    }
    for (const FlatTreePtr& table : tables) {
        if (!table->nodes.empty()) {
            lines << QString() << asMarkdown(*table);
        }
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

} // namespace vitrine::ui
