// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// bench copy, bench matmul: what the device can do at best.

#include <nlohmann/json.hpp>

#include "engine/workload/bench/bench.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

nlohmann::json ceilingRow(const std::string& name, const Ceiling& ceiling) {
    nlohmann::json row =
        name == "copy" ? benchRow(name, ceiling.rate * 1e-9, "GB/s") : benchRow(name, ceiling.rate * 1e-12, "TFLOP/s");
    row["what"] = ceiling.what;
    return row;
}

void benchCeiling(const Run& run) {
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    const std::string name = run.spec.text("bench");
    const auto seed = run.seed();
    run.metrics[result::kRows.key] = nlohmann::json::array(
        {ceilingRow(name, name == "copy" ? measureCopy(*context, seed) : measureMatmul(*context, seed))});
    addMemoryMetrics(run.metrics, *context);
}

} // namespace vitrine::engine
