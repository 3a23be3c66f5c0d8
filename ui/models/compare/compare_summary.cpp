// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/compare/compare_summary.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

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

/// "2.41 s to 2.44 s in 3 runs"; empty for one run.
QString repeatsText(const std::string& name, const std::vector<double>& repeats) {
    if (repeats.size() < 2) {
        return {};
    }
    const auto [low, high] = std::ranges::minmax(repeats);
    return QObject::tr("%1 to %2 in %3 runs").arg(metricText(name, low), metricText(name, high)).arg(repeats.size());
}

FlatCell metricCell(const std::string& name, std::optional<double> value, const std::vector<double>& repeats = {}) {
    FlatCell cell(metricText(name, value), QVariant(value.value_or(-1)),
                  value ? QString::number(*value, 'g', 17) : QString());
    if (value && isBytes(name) && *value >= 0 && *value < 9e18) {
        cell.tip = exactBytesText(static_cast<std::uint64_t>(*value));
    }
    if (const QString spread = repeatsText(name, repeats); !spread.isEmpty()) {
        cell.tip += (cell.tip.isEmpty() ? QString() : QStringLiteral("; ")) + spread;
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

/// Sizes of one table, all in the unit that its head names.
struct SizeScale {
    explicit SizeScale(std::uint64_t largest) {
        constexpr std::uint64_t kReadable = 8; // of a unit; below it the next smaller one says more
        static constexpr std::array kUnits{std::pair{1ULL << 20, "MiB"}, std::pair{1ULL << 10, "KiB"}};
        for (const auto& [bytes, word] : kUnits) {
            if (largest >= kReadable * bytes) {
                unit = bytes;
                name = word;
                break;
            }
        }
        decimals = unit == 1 ? 0 : largest < 100 * unit ? 2 : largest < 1000 * unit ? 1 : 0;
    }

    QString text(std::uint64_t bytes) const {
        const double value = static_cast<double>(bytes) / static_cast<double>(unit);
        return decimals == 0 ? countText(std::llround(value)) : QString::number(value, 'f', decimals);
    }
    /// The change, in its own unit where it would read as nothing.
    QString changeText(std::uint64_t bytes) const {
        const double least = 0.5 * std::pow(10.0, -decimals);
        return static_cast<double>(bytes) / static_cast<double>(unit) < least ? bytesText(bytes) : text(bytes);
    }

    std::uint64_t unit = 1;
    const char* name = "B";
    int decimals = 0;
};

FlatCell sizeCell(std::uint64_t bytes, const SizeScale& scale) {
    FlatCell cell(scale.text(bytes), QVariant::fromValue<qulonglong>(bytes), QString::number(bytes));
    cell.tip = exactBytesText(bytes);
    return cell;
}

/// B − A of two sizes. `largest` is the largest such change, the length of a whole bar.
FlatCell bytesDelta(std::uint64_t a, std::uint64_t b, const SizeScale& scale, double largest) {
    FlatCell cell;
    const double change = static_cast<double>(b) - static_cast<double>(a);
    cell.sort = std::abs(change);
    cell.raw = QString::number(static_cast<qint64>(b) - static_cast<qint64>(a));
    cell.share = largest > 0 ? change / largest : 0;
    if (a == b) {
        cell.text = QStringLiteral("=");
        cell.delta = 0;
    } else {
        const std::uint64_t size = a < b ? b - a : a - b;
        cell.text = (change < 0 ? QStringLiteral("▼ −") : QStringLiteral("▲ +")) + scale.changeText(size);
        cell.delta = change < 0 ? -1 : 1;
        cell.tip = (change < 0 ? QStringLiteral("−") : QStringLiteral("+")) + exactBytesText(size);
    }
    return cell;
}

/// `judged` false: the colour says nothing of better or worse.
FlatCell changeCell(const engine::ResultChange& row, bool judged) {
    if (!row.judgement) {
        return {unknownText(), QVariant(0.0)};
    }
    const engine::ChangeJudgement& judgement = *row.judgement;
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
    if (row.judgement->fromRepeats) {
        const auto [lowA, highA] = std::ranges::minmax(row.repeatsA);
        const auto [lowB, highB] = std::ranges::minmax(row.repeatsB);
        cell.marks = {lowA, *row.a, highA, lowB, *row.b, highB, noise};
    }
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
    const Json left = base::parsedObject(comparedRun(a).spec), right = base::parsedObject(comparedRun(b).spec);
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
    const auto differences = engine::diffSettings(comparedRun(a), comparedRun(b));
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
                .arg(engine::allSurroundings(x, y).size())
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
        row.cells.emplace_back(textOf(result.words));
        row.cells.push_back(metricCell(result.path, result.a, result.repeatsA));
        row.cells.push_back(metricCell(result.path, result.b, result.repeatsB));
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
    std::vector<std::string> order;
    std::map<std::string, std::optional<base::MemoryCategory>> categories;
    const auto left = groupsAtPeak(a, groupBy, order, categories), right = groupsAtPeak(b, groupBy, order, categories);
    std::uint64_t totalA = 0, totalB = 0;
    const auto valueOf = [](const auto& groups, const std::string& name) {
        const auto found = groups.find(name);
        return found == groups.end() ? std::uint64_t{0} : found->second;
    };
    const auto change = [&](const std::string& name) {
        return std::abs(static_cast<double>(valueOf(left, name)) - static_cast<double>(valueOf(right, name)));
    };
    std::stable_sort(order.begin(), order.end(), [&](const auto& x, const auto& y) { return change(x) > change(y); });
    for (const std::string& name : order) {
        totalA += valueOf(left, name);
        totalB += valueOf(right, name);
    }
    const SizeScale scale(std::max(totalA, totalB));
    const double largest = order.empty() ? 0 : change(order.front());
    auto table = std::make_shared<FlatTree>();
    table->columns = {
        {QObject::tr("At the peak, %1").arg(QString::fromLatin1(scale.name)), false, QObject::tr("At the peak")},
        {QObject::tr("A"), true, QObject::tr("A, bytes")},
        {QObject::tr("B"), true, QObject::tr("B, bytes")},
        {QObject::tr("B − A"), true, QObject::tr("B − A, bytes")}};
    const auto add = [&](const QString& name, std::uint64_t x, std::uint64_t y) -> FlatNode& {
        FlatNode row;
        row.key = table->nodes.size() + 1;
        row.cells = {FlatCell(name), sizeCell(x, scale), sizeCell(y, scale), bytesDelta(x, y, scale, largest)};
        row.cells[0].tip = name;
        table->nodes.push_back(std::move(row));
        return table->nodes.back();
    };
    for (const std::string& name : order) {
        FlatNode& row = add(QString::fromStdString(name), valueOf(left, name), valueOf(right, name));
        if (const auto category = categories[name]) {
            row.category = static_cast<int>(*category);
        }
    }
    if (!order.empty()) {
        FlatNode& total = add(QObject::tr("total"), totalA, totalB);
        total.cells[3].share.reset(); // it is no part
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
    for (const QString& line : {words.cause, words.answers, words.nothing ? QString() : words.notComparable}) {
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
