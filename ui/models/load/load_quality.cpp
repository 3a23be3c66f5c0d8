// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load/load_quality.h"

#include <QObject>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"
#include "ui/models/load/load_tables.h"
#include "ui/models/precision/group_columns.h"
#include "ui/models/precision/number_ticks.h"
#include "ui/models/precision/precision_data.h"

namespace vitrine::ui {

namespace {

std::string modelOf(const std::vector<sessions::RunInfo>& runs, sessions::RunId id) {
    const auto run = std::ranges::find(runs, id, &sessions::RunInfo::id);
    const auto experiment = run != runs.end() ? engine::Experiment::read(run->specJson) : std::nullopt;
    return experiment && experiment->has("model") ? experiment->text("model") : std::string();
}

FlatCell qualityCell(const std::optional<double>& value, double times, int decimals) {
    return value ? FlatCell(decimalText(*value * times, decimals), *value, QString::number(*value, 'g', 9))
                 : FlatCell(unknownText());
}

FlatTreePtr qualityTable(const engine::FormatEffect& a, const engine::FormatEffect& b) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Quality")},
                      {QStringLiteral("A"), true},
                      {QStringLiteral("B"), true},
                      {QObject::tr("A to B"), true}};
    const auto row = [&](const QString& name, FlatCell inA, FlatCell inB, FlatCell change) {
        FlatNode node;
        node.key = table->nodes.size();
        node.cells = {FlatCell(name), std::move(inA), std::move(inB), std::move(change)};
        table->nodes.push_back(std::move(node));
    };
    row(QObject::tr("Bits for a weight"), qualityCell(a.bitsPerWeight, 1, 3), qualityCell(b.bitsPerWeight, 1, 3),
        ratioCell(a.bitsPerWeight, b.bitsPerWeight, true));
    row(QObject::tr("KL to BF16, %1").arg(unitText(-3)), qualityCell(a.klMean, 1000, 2), qualityCell(b.klMean, 1000, 2),
        FlatCell());
    row(QObject::tr("Same best token, %"), qualityCell(a.topOne, 100, 2), qualityCell(b.topOne, 100, 2), FlatCell());
    row(QObject::tr("Perplexity"), qualityCell(a.perplexity, 1, 3), qualityCell(b.perplexity, 1, 3),
        ratioCell(a.perplexity, b.perplexity, true));
    return table;
}

/// What is known of a load's weights; null: nothing.
using KnownFormat = const engine::FormatEffect*;

std::string loadWords(const sessions::RunInfo& run) {
    return run.name.empty() ? modelOf({run}, run.id) : run.name;
}

struct LoadColumn {
    const sessions::RunInfo* run = nullptr;
    std::optional<double> residentBytes, seconds;
    KnownFormat format = nullptr;
};

LoadColumn loadColumn(const std::vector<sessions::RunInfo>& runs, sessions::RunId id) {
    LoadColumn column;
    if (const auto run = std::ranges::find(runs, id, &sessions::RunInfo::id); run != runs.end()) {
        column.run = &*run;
        const nlohmann::json metrics = base::parsedObject(run->metricsJson);
        const nlohmann::json& variants = engine::rowsOf(metrics, engine::result::kVariants);
        const nlohmann::json& facts = variants.empty() ? metrics : variants.front();
        column.residentBytes = engine::numberOf(facts, engine::result::kResidentBytes);
        column.seconds = engine::numberOf(facts, engine::result::kSeconds);
        if (!column.seconds) {
            column.seconds = engine::numberOf(metrics, engine::result::kLoadSeconds);
        }
    }
    return column;
}

} // namespace

sessions::RunId thirdLoad(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b) {
    const std::string modelA = modelOf(runs, a), modelB = modelOf(runs, b);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        const std::string model = modelOf(runs, run->id);
        if (run->workload == "load" && run->status == sessions::RunStatus::Done && run->id != a && run->id != b &&
            !model.empty() && model != modelA && model != modelB) {
            return run->id;
        }
    }
    return 0;
}

FlatTreePtr threeLoads(const std::vector<sessions::RunInfo>& runs, const std::array<sessions::RunId, 3>& loads) {
    std::array<LoadColumn, 3> columns;
    std::ranges::transform(loads, columns.begin(), [&](sessions::RunId id) { return loadColumn(runs, id); });
    PrecisionDataPtr lab; // formats point into it
    for (auto run = runs.rbegin(); run != runs.rend() && !lab; ++run) {
        lab = precisionData(*run, runs);
        lab = lab && !lab->live ? lab : nullptr;
        bool knows = false;
        for (std::size_t i = 0; i < columns.size() && lab; ++i) {
            if (const auto format = formatOfModel(*lab, runs, modelOf(runs, loads[i]))) {
                columns[i].format = &lab->result.formats[*format];
                knows = true;
            }
        }
        lab = knows ? lab : nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Three formats")},
                      {QStringLiteral("A"), true},
                      {QStringLiteral("B"), true},
                      {QStringLiteral("C"), true}};
    const auto row = [&](const QString& name, const auto& cell) {
        FlatNode node;
        node.key = table->nodes.size();
        node.cells = {FlatCell(name)};
        for (const LoadColumn& column : columns) {
            node.cells.push_back(cell(column));
        }
        table->nodes.push_back(std::move(node));
    };
    const auto quality = [&](const QString& name, double times, int decimals, const auto& value) {
        row(name, [&](const LoadColumn& column) {
            return qualityCell(column.format != nullptr ? value(*column.format) : std::nullopt, times, decimals);
        });
    };
    using Number = std::optional<double>;
    row(QObject::tr("Format"), [](const LoadColumn& column) {
        FlatCell cell(column.format != nullptr ? QString::fromStdString(column.format->title) : unknownText());
        cell.tip = column.run != nullptr ? QString::fromStdString(loadWords(*column.run)) : QString();
        return cell;
    });
    row(QObject::tr("Resident, MiB"), [](const LoadColumn& c) { return qualityCell(c.residentBytes, 0x1p-20, 1); });
    row(QObject::tr("Load, s"), [](const LoadColumn& c) { return qualityCell(c.seconds, 1, 2); });
    quality(QObject::tr("Bits for a weight"), 1, 3,
            [](const engine::FormatEffect& f) { return Number(f.bitsPerWeight); });
    quality(QObject::tr("KL to BF16, %1").arg(unitText(-3)), 1000, 2, [](const auto& f) { return f.klMean; });
    quality(QObject::tr("Same best token, %"), 100, 2, [](const auto& f) { return f.topOne; });
    quality(QObject::tr("Perplexity"), 1, 3, [](const auto& f) { return f.perplexity; });
    return table;
}

FlatTreePtr loadQuality(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b) {
    const std::string modelA = modelOf(runs, a), modelB = modelOf(runs, b);
    if (modelA.empty() || modelB.empty() || modelA == modelB) {
        return nullptr;
    }
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        const PrecisionDataPtr data = precisionData(*run, runs);
        if (!data || data->live) {
            continue;
        }
        const auto formatA = formatOfModel(*data, runs, modelA), formatB = formatOfModel(*data, runs, modelB);
        if (formatA && formatB && formatA != formatB) {
            return qualityTable(data->result.formats[*formatA], data->result.formats[*formatB]);
        }
    }
    return nullptr;
}

} // namespace vitrine::ui
