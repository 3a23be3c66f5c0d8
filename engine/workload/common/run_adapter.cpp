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
    auto adapter = std::make_unique<Adapter>(model, file.targets(model.parameters()));
    adapter->read(file);
    run.metrics[result::kAdapter.key] = folder;
    return adapter;
}

} // namespace vitrine::engine
