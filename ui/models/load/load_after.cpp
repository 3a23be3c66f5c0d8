// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load/load_after.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

Json objectAt(const Json& value, const char* key) {
    const auto found = value.is_object() ? value.find(key) : value.end();
    return value.is_object() && found != value.end() && found->is_object() ? *found : Json();
}

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
    const Json left = base::parsedObject(a.specJson), right = base::parsedObject(b.specJson);
    return runSummary(a).model == runSummary(b).model && runSummary(a).device == runSummary(b).device &&
           left.value("plan", Json()) == right.value("plan", Json());
}

} // namespace

AfterLoad afterLoad(const std::vector<sessions::RunInfo>& runs, const sessions::RunInfo& load, const QString& weights) {
    AfterLoad after;
    for (const sessions::RunInfo& run : runs) { // later runs replace earlier ones
        const Json spec = base::parsedObject(run.specJson), metrics = base::parsedObject(run.metricsJson);
        const engine::Workload* workload = engine::findWorkload(base::textAt(spec, "workload"));
        const bool answers = workload != nullptr && workload->needsPrompt;
        if (run.status != sessions::RunStatus::Done || textOf(base::textAt(spec, "weights")) != weights || !answers ||
            !sameModel(run, load)) {
            continue;
        }
        const auto decode = base::numberAt(metrics, "decode_tokens_per_second");
        after.decode = decode && *decode > 0 ? decode : after.decode;
        const auto seconds = base::numberAt(metrics, "prefill_seconds"),
                   tokens = base::numberAt(metrics, "prompt_tokens");
        if (seconds && tokens && *seconds > 0 && *tokens > 0) {
            after.prefill = *tokens / *seconds;
            after.promptTokens = std::llround(*tokens);
        }
        after.priced = base::textAt(metrics, "time_base") == "virtual";
        const auto context = base::numberAt(metrics, "max_context");
        after.context = context ? context : after.context;
        const auto ids = metrics.find("ids");
        if (ids != metrics.end() && ids->is_array() && spec.value("temperature", Json(0.0)) == 0.0) {
            after.ids.clear();
            for (const Json& id : *ids) {
                after.ids.push_back(id.is_number_integer() ? id.get<std::int64_t>() : -1);
            }
            after.prompt = spec.value("prompt", Json()).dump() + spec.value("tokens", Json()).dump() +
                           spec.value("chat", Json()).dump() + spec.value("raw", Json()).dump();
        }
    }
    return after;
}

std::optional<AfterLoad> measuredAfterLoad(const sessions::RunInfo& run, std::size_t variant) {
    const Json metrics = base::parsedObject(run.metricsJson);
    if (!metrics.contains("variants") || !metrics["variants"].is_array() || variant >= metrics["variants"].size()) {
        return std::nullopt;
    }
    const Json measured = objectAt(metrics["variants"][variant], "after_load");
    AfterLoad after;
    after.decode = base::numberAt(measured, "decode_tokens_per_second");
    if (!after.decode) {
        return std::nullopt;
    }
    after.decode16 = base::numberAt(measured, "decode_tokens_per_second_batch_16");
    after.prefill = base::numberAt(measured, "prefill_tokens_per_second");
    after.promptTokens = std::llround(base::numberAt(measured, "prompt_tokens").value_or(0));
    after.context = base::numberAt(measured, "context_tokens");
    after.priced = base::textAt(metrics, "time_base") == "virtual";
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

FlatTreePtr measuredAgreement(const sessions::RunInfo& run) {
    const Json metrics = base::parsedObject(run.metricsJson);
    const Json agreement = objectAt(metrics, "agreement");
    const auto tokens = base::numberAt(agreement, "tokens"), equal = base::numberAt(agreement, "tokens_equal");
    if (!tokens || !equal) {
        return nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Agreement")}, {QObject::tr("same prompt, greedy"), true}};
    table->nodes.push_back(
        row(QObject::tr("tokens equal"),
            QObject::tr("%1 of %2").arg(countText(std::llround(*equal)), countText(std::llround(*tokens)))));
    if (const auto first = base::numberAt(agreement, "first_difference")) {
        table->nodes.push_back(
            row(QObject::tr("first difference"), QObject::tr("token %1").arg(countText(std::llround(*first) + 1))));
    }
    const auto largest = base::numberAt(agreement, "largest_logit_difference"),
               spread = base::numberAt(agreement, "logit_spread");
    if (largest && spread && *spread > 0) {
        table->nodes.push_back(row(QObject::tr("largest logit difference"),
                                   QObject::tr("%1 of spread").arg(smallShare(*largest / *spread))));
        table->nodes.back().cells[1].tip =
            QObject::tr("%1 of %2, over the logits of %3 prompt positions")
                .arg(QString::number(*largest, 'g', 3), QString::number(*spread, 'g', 4),
                     countText(std::llround(base::numberAt(agreement, "logit_positions").value_or(0))));
    }
    for (std::size_t i = 0; i < table->nodes.size(); ++i) {
        table->nodes[i].key = i + 1;
    }
    return table;
}

} // namespace vitrine::ui
