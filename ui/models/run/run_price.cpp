// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/run_price.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

using Json = nlohmann::json;

namespace {

void addTexts(const Json& value, std::vector<std::string>& texts) {
    if (value.is_string()) {
        texts.push_back(value.get<std::string>());
    } else if (value.is_array()) {
        for (const Json& item : value) {
            addTexts(item, texts);
        }
    }
}

} // namespace

std::optional<RunPrice> runPrice(const std::string& metricsJson) {
    const Json metrics = base::parsedObject(metricsJson);
    RunPrice price;
    price.peak = engine::countOf(metrics, engine::result::kPeakBytes).value_or(0);
    price.budget = engine::countOf(metrics, engine::result::kBudgetBytes).value_or(0);
    if (price.peak == 0 || price.budget == 0) {
        return std::nullopt; // 0 stands for unknown: no run needs nothing
    }
    price.missing = engine::countOf(metrics, engine::result::kShortByBytes).value_or(0);
    price.fits = engine::flagOf(metrics, engine::result::kFits).value_or(price.missing == 0);
    if (const Json* split = engine::valueOf(metrics, engine::result::kPeakByCategory)) {
        for (int i = 0; i < base::kCategoryCount; ++i) {
            const std::string name(base::categoryName(static_cast<base::MemoryCategory>(i)));
            price.peakByCategory[static_cast<std::size_t>(i)] = base::bytesAt(*split, name.c_str()).value_or(0);
        }
    }
    price.newTokens = engine::countOf(metrics, engine::result::kMaxNewTokens).value_or(0);
    price.context = engine::countOf(metrics, engine::result::kKvCacheContextLimit).value_or(0);
    const std::uint64_t asked = engine::countOf(metrics, engine::result::kPromptTokens).value_or(0) + price.newTokens;
    price.cutTokens = price.context > 0 && asked > price.context ? std::min(asked - price.context, price.newTokens) : 0;
    price.device = textOf(engine::textOf(metrics, engine::result::kDevice));
    price.peakAt = textOf(engine::textOf(metrics, engine::result::kPeakAt));
    price.stepSeconds = engine::numberOf(metrics, engine::result::kStepSecondsEstimate).value_or(0);
    return price;
}

std::vector<std::string> namedTexts(const std::string& experimentJson) {
    std::vector<std::string> texts;
    for (const Json& value : base::parsedObject(experimentJson)) {
        addTexts(value, texts);
    }
    return texts;
}

} // namespace vitrine::ui
