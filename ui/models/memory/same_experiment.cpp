// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/same_experiment.h"

#include <nlohmann/json.hpp>

namespace vitrine::ui {

using Json = nlohmann::json;

bool sameExperiment(const std::string& specA, const std::string& specB) {
    Json a = Json::parse(specA, nullptr, false), b = Json::parse(specB, nullptr, false);
    if (!a.is_object() || !b.is_object()) {
        return false;
    }
    for (Json* spec : {&a, &b}) {
        for (const char* key :
             {"backend", "plan", "profile", "max_batch", "max_context", "techniques", "threads", "session"}) {
            spec->erase(key);
        }
    }
    return a == b;
}

} // namespace vitrine::ui
