// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/load_after.h"

#include <QObject>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ui/models/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

Json objectAt(const Json& value, const char* key) {
    const auto found = value.is_object() ? value.find(key) : value.end();
    return value.is_object() && found != value.end() && found->is_object() ? *found : Json();
}

std::optional<double> numberAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
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

} // namespace

std::optional<AfterLoad> measuredAfterLoad(const sessions::RunInfo& run, std::size_t variant) {
    const Json metrics = Json::parse(run.metricsJson, nullptr, false);
    if (!metrics.is_object() || !metrics.contains("variants") || !metrics["variants"].is_array() ||
        variant >= metrics["variants"].size()) {
        return std::nullopt;
    }
    const Json measured = objectAt(metrics["variants"][variant], "after_load");
    AfterLoad after;
    after.decode = numberAt(measured, "decode_tokens_per_second");
    if (!after.decode) {
        return std::nullopt;
    }
    after.decode16 = numberAt(measured, "decode_tokens_per_second_batch_16");
    after.prefill = numberAt(measured, "prefill_tokens_per_second");
    after.promptTokens = std::llround(numberAt(measured, "prompt_tokens").value_or(0));
    return after;
}

FlatTreePtr measuredAgreement(const sessions::RunInfo& run) {
    const Json metrics = Json::parse(run.metricsJson, nullptr, false);
    const Json agreement = objectAt(metrics, "agreement");
    const auto tokens = numberAt(agreement, "tokens"), equal = numberAt(agreement, "tokens_equal");
    if (!tokens || !equal) {
        return nullptr;
    }
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Agreement")}, {QObject::tr("same prompt, greedy"), true}};
    table->nodes.push_back(
        row(QObject::tr("tokens equal"),
            QObject::tr("%1 of %2").arg(countText(std::llround(*equal)), countText(std::llround(*tokens)))));
    if (const auto first = numberAt(agreement, "first_difference")) {
        table->nodes.push_back(
            row(QObject::tr("first difference"), QObject::tr("token %1").arg(countText(std::llround(*first) + 1))));
    }
    const auto largest = numberAt(agreement, "largest_logit_difference"), spread = numberAt(agreement, "logit_spread");
    if (largest && spread && *spread > 0) {
        table->nodes.push_back(row(QObject::tr("largest logit difference"),
                                   QObject::tr("%1 of spread").arg(smallShare(*largest / *spread))));
        table->nodes.back().cells[1].tip =
            QObject::tr("%1 of %2, over the logits of %3 prompt positions")
                .arg(QString::number(*largest, 'g', 3), QString::number(*spread, 'g', 4),
                     countText(std::llround(numberAt(agreement, "logit_positions").value_or(0))));
    }
    for (std::size_t i = 0; i < table->nodes.size(); ++i) {
        table->nodes[i].key = i + 1;
    }
    return table;
}

} // namespace vitrine::ui
