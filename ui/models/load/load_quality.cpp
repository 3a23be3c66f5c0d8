// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load/load_quality.h"

#include <QObject>
#include <algorithm>

#include "engine/workload/experiment/experiment.h"
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

} // namespace

FlatTreePtr loadQuality(const std::vector<sessions::RunInfo>& runs, sessions::RunId a, sessions::RunId b) {
    const std::string modelA = modelOf(runs, a), modelB = modelOf(runs, b);
    if (modelA.empty() || modelB.empty() || modelA == modelB) {
        return nullptr;
    }
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        const PrecisionDataPtr data = precisionData(*run, runs);
        if (!data) {
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
