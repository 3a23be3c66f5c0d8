// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/run_result.h"

#include <nlohmann/json.hpp>

#include "base/json_values.h"

namespace vitrine::ui {

using Json = nlohmann::json;

std::optional<RunResult> runResult(const std::string& metricsJson) {
    if (!base::holdsObject(metricsJson)) {
        return std::nullopt;
    }
    const Json metrics = base::parsedObject(metricsJson);
    RunResult result;
    result.peakBytes = base::bytesAt(metrics, "peak_bytes");
    result.tokens = base::bytesAt(metrics, "generated_tokens");
    result.kvBytes = base::bytesAt(metrics, "kv_bytes");
    result.tokensPerSecond = base::numberAt(metrics, "decode_tokens_per_second");
    if (!result.tokensPerSecond) {
        result.tokensPerSecond = base::numberAt(metrics, "tokens_per_second");
    }
    if (const auto error = metrics.find("error"); error != metrics.end()) {
        result.errorDetails = QString::fromStdString(error->dump(2, ' ', false, Json::error_handler_t::replace));
    }
    return result;
}

} // namespace vitrine::ui
