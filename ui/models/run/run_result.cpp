// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/run_result.h"

#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/ending_words.h"
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
    const auto experiment = engine::Experiment::read(experimentJson);
    return experiment ? textOf(engine::endingWords(base::parsedObject(metricsJson), *experiment)) : QString();
}

} // namespace vitrine::ui
