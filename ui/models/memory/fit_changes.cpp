// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/fit_changes.h"

#include <QObject>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

using Json = nlohmann::json;

std::vector<FitChange> fitChanges(const std::string& specJson) {
    std::vector<FitChange> changes;
    const Json spec = Json::parse(specJson, nullptr, false);
    if (!spec.is_object()) {
        return changes;
    }
    // The experiment as it was: its step time is what the others are measured by.
    changes.push_back({{}, {}, specJson, false, {}, 0, 0});
    const auto add = [&](const QString& title, const QString& why,
                         const std::vector<std::pair<const char*, Json>>& values) {
        Json changed = spec;
        for (const auto& [key, value] : values) {
            changed[key] = value;
        }
        changes.push_back({title, why, changed.dump(), false, {}, 0, 0});
    };
    if (base::textAt(spec, "weights") == "dequantized" || base::textAt(spec, "weights") == "both") {
        add(QObject::tr("Quantized weights"), QObject::tr("blocks stay as the checkpoint stores them"),
            {{"weights", "quantized"}});
    }
    if (base::textAt(spec, "dtype") == "float32") {
        add(QObject::tr("Compute in bfloat16"), QObject::tr("activations and cache take half the bytes"),
            {{"dtype", "bfloat16"}});
    }
    if (base::textAt(spec, "kv_dtype") == "float32") {
        add(QObject::tr("KV cache in bfloat16"), QObject::tr("half the bytes for each token"),
            {{"kv_dtype", "bfloat16"}});
    }
    const engine::Workload* workload = engine::findWorkload(base::textAt(spec, "workload"));
    const bool keepsCache = workload != nullptr && workload->plan != nullptr &&
                            engine::optionApplies(*engine::findOption("kv_dtype"), workload->name, false);
    const std::string kvType = base::textAt(spec, "kv_dtype");
    if (keepsCache && kvType != "fp8" && kvType != "int8") {
        add(QObject::tr("KV cache in int8"), QObject::tr("a byte for each element and a scale for each token and head"),
            {{"kv_dtype", "int8"}});
    }
    for (const char* key : {"prompt_length", "max_new_tokens", "batch"}) {
        const std::int64_t now = std::llround(base::numberAt(spec, key).value_or(0));
        for (const std::int64_t part : {2, 4}) {
            if (now / part >= 1 && now > 1) {
                const QString name = QString::fromLatin1(key).replace(QLatin1Char('_'), QLatin1Char(' '));
                add(QObject::tr("%1 %2 instead of %3").arg(name, countText(now / part), countText(now)),
                    QObject::tr("with nothing else changed"), {{key, now / part}});
            }
        }
    }
    if (changes.size() == 1) {
        changes.clear(); // nothing to change
    }
    return changes;
}

void setPrice(FitChange& change, const std::string& metricsJson, const QString& error) {
    const Json metrics = base::parsedObject(metricsJson);
    change.priced = true;
    change.error = error;
    change.peak = engine::countOf(metrics, engine::result::kPeakBytes).value_or(change.peak);
    change.seconds = engine::numberOf(metrics, engine::result::kStepSecondsEstimate).value_or(change.seconds);
}

} // namespace vitrine::ui
