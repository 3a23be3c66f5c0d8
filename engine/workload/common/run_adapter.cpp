// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/run_adapter.h"

#include <nlohmann/json.hpp>

#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

std::unique_ptr<Adapter> loadAdapter(const Run& run, Model& model) {
    const std::string folder = run.spec.text("adapter");
    if (folder.empty()) {
        return nullptr;
    }
    const AdapterFile file = AdapterFile::open(folder);
    const std::vector<AdapterTarget> targets = file.targets(model.parameters());
    run.metrics[result::kAdapter.key] = folder;
    if (targets.empty()) {
        return nullptr; // all that it changes is in the weights
    }
    auto adapter = std::make_unique<Adapter>(model, targets);
    adapter->read(file);
    return adapter;
}

} // namespace vitrine::engine
