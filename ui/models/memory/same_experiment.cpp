// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/same_experiment.h"

#include <optional>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::ui {

bool sameExperiment(const std::string& specA, const std::string& specB) {
    auto a = engine::Experiment::read(specA), b = engine::Experiment::read(specB);
    if (!a || !b || &a->workload() != &b->workload()) {
        return false;
    }
    for (engine::Experiment* experiment : {&*a, &*b}) {
        *experiment = experiment->as(experiment->workload()); // without what only a plan takes
        for (const char* key : {"backend", "plan", "profile", "threads"}) {
            experiment->unset(key);
        }
    }
    return *a == *b;
}

} // namespace vitrine::ui
