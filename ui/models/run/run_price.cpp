// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/run_price.h"

#include <nlohmann/json.hpp>

#include "base/json_values.h"
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
    price.peak = base::bytesAt(metrics, "peak_bytes").value_or(0);
    price.budget = base::bytesAt(metrics, "budget_bytes").value_or(0);
    if (price.peak == 0 || price.budget == 0) {
        return std::nullopt; // 0 stands for unknown: no run needs nothing
    }
    price.missing = base::bytesAt(metrics, "short_by_bytes").value_or(0);
    const auto fits = metrics.find("fits");
    price.fits = fits != metrics.end() && fits->is_boolean() ? fits->get<bool>() : price.missing == 0;
    if (const auto split = metrics.find("peak_by_category"); split != metrics.end() && split->is_object()) {
        for (int i = 0; i < base::kCategoryCount; ++i) {
            const std::string name(base::categoryName(static_cast<base::MemoryCategory>(i)));
            price.peakByCategory[static_cast<std::size_t>(i)] = base::bytesAt(*split, name.c_str()).value_or(0);
        }
    }
    price.device = textOf(base::textAt(metrics, "device"));
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
