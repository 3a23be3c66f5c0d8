// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/synthesize.h"

#include <array>
#include <nlohmann/json.hpp>

#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workloads.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 3> kSynthesizeResults = {result::kRunSet, result::kRateSet, result::kFileSet};

constexpr std::array<std::string_view, 1> kSynthesizeSharedKeys = {"output"};
constexpr std::array<WorkloadOutput, 1> kSynthesizeOutputs{{{"output"}}};

void runSynthesize(const Run& run) {
    const ModelSource source = openSource(run);
    const RunDevices context = makeContext(run);
    addContextMetrics(run, *context);
    const auto seed = run.seed();
    const base::TimeNs begin = context->clock().now();
    const FillTensor fill = [&](const TensorSpec& spec, const RandomRule&, std::uint32_t stream, void* data) {
        kernels::TensorView view;
        view.data = data;
        view.dtype = spec.dtype;
        view.shape = kernels::Shape(spec.shape);
        fillSynthetic(*context, spec, source.config, stream, seed, view);
    };
    const SynthesizedFiles files =
        synthesizeCheckpoint(source, run.spec.text("output"), fill, run.sinks.progress, run.stop);
    run.metrics[result::kBytes.key] = files.bytes;
    run.metrics[result::kFiles.key] = files.files;
    const double seconds = static_cast<double>(context->clock().now() - begin) * 1e-9;
    run.metrics[result::kSeconds.key] = seconds;
    run.metrics[result::kGbPerSecond.key] = static_cast<double>(files.bytes) * 1e-9 / seconds;
}

/// Files are written from host memory.
bool prefersCpu(const Experiment&) {
    return true;
}

void checkSynthesize(const Experiment& experiment, const std::string& name) {
    requireOption(experiment, name, "output", "name the folder that the checkpoint goes to");
    if (!experiment.text("model").starts_with("synthetic:")) {
        failOption(name, "model", "synthesize writes synthetic models only; name one as synthetic:NAME");
    }
}

} // namespace

constinit const Workload kSynthesizeWorkload = {
    .name = "synthesize",
    .title = "Synthesize",
    .optionSets = kModelOptions | kRunOptions,
    .optionKeys = kSynthesizeSharedKeys,
    .outputs = kSynthesizeOutputs,
    .check = checkSynthesize,
    .run = runSynthesize,
    .prefersCpu = prefersCpu,
    .results = kSynthesizeResults,
};

} // namespace vitrine::engine
