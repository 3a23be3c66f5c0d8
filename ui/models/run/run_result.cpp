// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/run_result.h"

#include <QObject>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

using Json = nlohmann::json;

std::optional<RunResult> runResult(const std::string& metricsJson) {
    if (!base::holdsObject(metricsJson)) {
        return std::nullopt;
    }
    const Json metrics = base::parsedObject(metricsJson);
    RunResult result;
    result.peakBytes = engine::countOf(metrics, engine::result::kPeakBytes);
    result.tokens = engine::countOf(metrics, engine::result::kGeneratedTokens);
    result.kvBytes = engine::countOf(metrics, engine::result::kKvBytes);
    result.tokensPerSecond = engine::numberOf(metrics, engine::result::kDecodeTokensPerSecond);
    if (!result.tokensPerSecond) {
        result.tokensPerSecond = engine::numberOf(metrics, engine::result::kTokensPerSecond);
    }
    if (const Json* error = engine::valueOf(metrics, engine::result::kError)) {
        result.errorDetails = QString::fromStdString(error->dump(2, ' ', false, Json::error_handler_t::replace));
    }
    return result;
}

QString endingText(const std::string& metricsJson, const std::string& experimentJson) {
    const Json metrics = base::parsedObject(metricsJson);
    const std::string reason = engine::textOf(metrics, engine::result::kFinishReason);
    if (reason == "stop_token") {
        return QObject::tr("ended at a stop token");
    }
    if (reason == "stop_text") {
        return QObject::tr("ended at a stop text");
    }
    const auto experiment = engine::Experiment::read(experimentJson);
    const auto made = engine::countOf(metrics, engine::result::kGeneratedTokens);
    if (reason != "length" || !experiment || !experiment->has("max_new_tokens") || !made) {
        return {};
    }
    const auto limit = static_cast<std::uint64_t>(experiment->integer("max_new_tokens"));
    const bool one = engine::valueOf(metrics, engine::result::kRequests) == nullptr;
    if (one && *made < limit) {
        return QObject::tr("ended at the end of the model's context, after %1 of %2 new tokens")
            .arg(countText(static_cast<qint64>(*made)), countText(static_cast<qint64>(limit)));
    }
    return QObject::tr("ended at the limit of %1 new tokens").arg(countText(static_cast<qint64>(limit)));
}

} // namespace vitrine::ui
