// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load/load_after.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

/// "0.41 %", with two digits that say something: agreement is often far below a hundredth of a percent.
QString smallShare(double share) {
    const double percent = share * 100;
    return percent == 0 || percent >= 0.01 ? QString::number(percent, 'f', 2) + QStringLiteral("\u00A0%")
                                           : QString::number(percent, 'g', 2) + QStringLiteral("\u00A0%");
}

FlatNode row(const QString& name, const QString& value) {
    FlatNode node;
    node.cells = {FlatCell(name), FlatCell(value)};
    return node;
}

bool sameModel(const sessions::RunInfo& a, const sessions::RunInfo& b) {
    const auto left = engine::Experiment::read(a.specJson), right = engine::Experiment::read(b.specJson);
    return runSummary(a).model == runSummary(b).model && runSummary(a).device == runSummary(b).device &&
           (left && left->isPlan()) == (right && right->isPlan());
}

} // namespace

AfterLoad afterLoad(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& load, const QString& weights) {
    AfterLoad after;
    for (const sessions::RunInfo& run : runs) { // later runs replace earlier ones
        const Json metrics = base::parsedObject(run.metricsJson);
        const auto experiment = engine::Experiment::read(run.specJson);
        const bool answers = experiment && experiment->workload().needsPrompt;
        if (run.status != sessions::RunStatus::Done || !answers || textOf(experiment->text("weights")) != weights ||
            !sameModel(run, load)) {
            continue;
        }
        const auto decode = engine::numberOf(metrics, engine::result::kDecodeTokensPerSecond);
        after.decode = decode && *decode > 0 ? decode : after.decode;
        const auto seconds = engine::numberOf(metrics, engine::result::kPrefillSeconds),
                   tokens = engine::numberOf(metrics, engine::result::kPromptTokens);
        if (seconds && tokens && *seconds > 0 && *tokens > 0) {
            after.prefill = *tokens / *seconds;
            after.promptTokens = std::llround(*tokens);
        }
        after.priced = engine::textOf(metrics, engine::result::kTimeBase) == "virtual";
        const auto context = engine::numberOf(metrics, engine::result::kMaxContext);
        after.context = context ? context : after.context;
        const Json* ids = engine::valueOf(metrics, engine::result::kIds);
        if (ids != nullptr && ids->is_array() && experiment->real("temperature") == 0) {
            after.ids.clear();
            for (const Json& id : *ids) {
                after.ids.push_back(id.is_number_integer() ? id.get<std::int64_t>() : -1);
            }
            after.prompt = base::compactText(Json{experiment->text("prompt"), experiment->tokens("tokens"),
                                                  experiment->text("chat"), experiment->flag("raw")});
        }
    }
    return after;
}

std::optional<AfterLoad> measuredAfterLoad(const sessions::RunInfo& run, std::size_t variant) {
    const Json metrics = base::parsedObject(run.metricsJson);
    const Json& variants = engine::rowsOf(metrics, engine::result::kVariants);
    if (variant >= variants.size()) {
        return std::nullopt;
    }
    const Json& load = variants[variant];
    AfterLoad after;
    after.decode = engine::numberOf(load, engine::result::kAfterLoadDecodeTokensPerSecond);
    if (!after.decode) {
        return std::nullopt;
    }
    after.decode16 = engine::numberOf(load, engine::result::kAfterLoadDecodeTokensPerSecondBatch16);
    after.prefill = engine::numberOf(load, engine::result::kAfterLoadPrefillTokensPerSecond);
    after.promptTokens = std::llround(engine::numberOf(load, engine::result::kAfterLoadPromptTokens).value_or(0));
    after.context = engine::numberOf(load, engine::result::kAfterLoadContextTokens);
    after.priced = engine::textOf(metrics, engine::result::kTimeBase) == "virtual";
    return after;
}

FlatTreePtr agreementTable(const AfterLoad& a, const AfterLoad& b) {
    if (a.ids.empty() || b.ids.empty() || a.prompt != b.prompt || a.promptTokens != b.promptTokens) {
        return nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Agreement")}, {QObject::tr("same prompt, greedy"), true}};
    const std::size_t length = std::min(a.ids.size(), b.ids.size());
    std::size_t equal = 0, first = length;
    for (std::size_t i = 0; i < length; ++i) {
        equal += a.ids[i] == b.ids[i] ? 1 : 0;
        first = a.ids[i] != b.ids[i] ? std::min(first, i) : first;
    }
    FlatNode node;
    node.key = 1;
    node.cells = {FlatCell(QObject::tr("tokens equal")),
                  FlatCell(QObject::tr("%1 of %2")
                               .arg(countText(static_cast<qint64>(equal)), countText(static_cast<qint64>(length))))};
    table->nodes.push_back(node);
    if (first < length) {
        node.key = 2;
        node.cells = {FlatCell(QObject::tr("first difference")),
                      FlatCell(QObject::tr("token %1").arg(countText(static_cast<qint64>(first + 1))))};
        table->nodes.push_back(node);
    }
    return table;
}

FlatTreePtr unknownAgreement() {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Agreement")}, {QObject::tr("same prompt, greedy"), true}};
    table->nodes.push_back(row(QObject::tr("tokens equal"), QObject::tr("not known")));
    table->nodes.back().key = 1;
    table->nodes.back().cells[1].tip =
        QObject::tr("A prediction makes no answers. Load with both weights and a prompt on a device, or generate once "
                    "with each at temperature 0, to compare them.");
    return table;
}

FlatTreePtr measuredAgreement(const sessions::RunInfo& run) {
    const Json metrics = base::parsedObject(run.metricsJson);
    const auto tokens = engine::numberOf(metrics, engine::result::kAgreementTokens),
               equal = engine::numberOf(metrics, engine::result::kAgreementTokensEqual);
    if (!tokens || !equal) {
        return nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Agreement")}, {QObject::tr("same prompt, greedy"), true}};
    table->nodes.push_back(
        row(QObject::tr("tokens equal"),
            QObject::tr("%1 of %2").arg(countText(std::llround(*equal)), countText(std::llround(*tokens)))));
    if (const auto first = engine::numberOf(metrics, engine::result::kAgreementFirstDifference)) {
        table->nodes.push_back(
            row(QObject::tr("first difference"), QObject::tr("token %1").arg(countText(std::llround(*first) + 1))));
    }
    const auto largest = engine::numberOf(metrics, engine::result::kAgreementLargestLogitDifference),
               spread = engine::numberOf(metrics, engine::result::kAgreementLogitSpread);
    if (largest && spread && *spread > 0) {
        table->nodes.push_back(row(QObject::tr("largest logit difference"),
                                   QObject::tr("%1 of spread").arg(smallShare(*largest / *spread))));
        table->nodes.back().cells[1].tip =
            QObject::tr("%1 of %2, over the logits of %3 prompt positions")
                .arg(QString::number(*largest, 'g', 3), QString::number(*spread, 'g', 4),
                     countText(std::llround(
                         engine::numberOf(metrics, engine::result::kAgreementLogitPositions).value_or(0))));
    }
    for (std::size_t i = 0; i < table->nodes.size(); ++i) {
        table->nodes[i].key = i + 1;
    }
    return table;
}

} // namespace vitrine::ui
