// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/run_summary.h"

#include <QFileInfo>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

/// The first of several keys that holds a non-empty text.
QString firstText(const Json& object, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
        const auto found = object.find(key);
        if (found != object.end() && found->is_string() && !found->get_ref<const std::string&>().empty()) {
            return QString::fromStdString(found->get<std::string>());
        }
        if (found != object.end() && found->is_object()) {
            const QString inner = firstText(*found, {"name"});
            if (!inner.isEmpty()) {
                return inner;
            }
        }
    }
    return {};
}

std::optional<std::uint64_t> firstBytes(const Json& object, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
        const auto found = object.find(key);
        if (found == object.end()) {
            continue;
        }
        if (found->is_number_unsigned()) {
            return found->get<std::uint64_t>();
        }
        if (found->is_number() && found->get<double>() >= 0 && found->get<double>() < 9e18) {
            return static_cast<std::uint64_t>(found->get<double>());
        }
        if (found->is_string()) {
            try {
                return base::parseBytes(found->get<std::string>(), key);
            } catch (const base::Error&) {
                continue; // a budget in words is no budget
            }
        }
    }
    return std::nullopt;
}

} // namespace

RunSummary runSummary(const sessions::RunInfo& run) {
    const auto experiment = engine::Experiment::read(run.specJson);
    const auto setting = [&](const char* key) { return textOf(experiment ? experiment->text(key) : std::string()); };
    const Json environment = base::parsedObject(run.environmentJson);
    const Json metrics = base::parsedObject(run.metricsJson);
    RunSummary facts;
    facts.model = setting("model");
    if (!facts.model.startsWith(QLatin1String("synthetic:")) && facts.model.contains(QLatin1Char('/'))) {
        facts.model = QFileInfo(facts.model).fileName();
    }
    facts.backend = firstText(environment, {"backend"});
    if (facts.backend.isEmpty()) {
        facts.backend = setting("backend");
    }
    facts.device = firstText(environment, {"device", "device_name", "traits", "device_traits", "device_profile"});
    if (facts.device.isEmpty()) {
        facts.device = setting("device_profile");
    }
    if (facts.device.isEmpty()) {
        facts.device = facts.backend.toUpper();
    }
    facts.weights = setting("weights");
    facts.dtype = setting("dtype");
    if (facts.dtype.isEmpty()) {
        facts.dtype = textOf(engine::textOf(metrics, engine::result::kDtype)); // what the backend chose
    }
    facts.virtualTime = firstText(environment, {"time_base", "clock"}) == QLatin1String("virtual");
    facts.budget = firstBytes(environment, {"vram_budget", "budget_bytes", "budget"});
    if (!facts.budget || *facts.budget == 0) {
        facts.budget = experiment ? experiment->maybeBytes("vram_budget") : std::nullopt;
    }
    if (!facts.budget || *facts.budget == 0) {
        facts.budget = engine::countOf(metrics, engine::result::kBudgetBytes);
    }
    if (facts.budget && *facts.budget == 0) {
        facts.budget.reset();
    }
    facts.peak = engine::countOf(metrics, engine::result::kPeakBytes);
    const Json* split = engine::valueOf(metrics, engine::result::kPeakByCategory);
    if (split != nullptr && split->is_object()) {
        base::CategoryBytes bytes{};
        for (const auto& [key, value] : split->items()) {
            const auto category = categoryNamed(key);
            if (category && value.is_number() && value.get<double>() >= 0) {
                bytes[static_cast<std::size_t>(*category)] = value.get<std::uint64_t>();
            }
        }
        facts.peakByCategory = bytes;
    }
    return facts;
}

std::optional<double> runMetric(const sessions::RunInfo& run, std::string_view name) {
    const Json metrics = base::parsedObject(run.metricsJson);
    const Json* at = &metrics;
    while (!name.empty()) {
        const std::size_t dot = name.find('.');
        const std::string key(name.substr(0, dot));
        name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
        if (at->is_object() && at->contains(key)) {
            at = &(*at)[key];
        } else if (at->is_array() && !key.empty() && key.size() < 9 &&
                   key.find_first_not_of("0123456789") == std::string::npos && std::stoul(key) < at->size()) {
            at = &(*at)[std::stoul(key)];
        } else {
            return std::nullopt;
        }
    }
    return at->is_number() ? std::optional<double>(at->get<double>()) : std::nullopt;
}

std::optional<base::MemoryCategory> categoryNamed(std::string_view name) {
    for (int i = 0; i < base::kCategoryCount; ++i) {
        const auto category = static_cast<base::MemoryCategory>(i);
        if (base::categoryName(category) == name) {
            return category;
        }
    }
    return std::nullopt;
}

} // namespace vitrine::ui
