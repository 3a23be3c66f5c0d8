// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Fine-tuning when memory ends at any allocation.

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/context/context.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using test::fixture;

/// Runs a fine-tuning on a context whose device memory refuses its reservation `failFrom` and all later ones; 0: none.
Json finetune(Json experiment, std::uint64_t failFrom) {
    experiment["vitrine"] = 1;
    experiment["workload"] = "finetune";
    experiment["model"] = fixture("gpt-oss-mxfp4");
    experiment["tokens_file"] = fixture("gpt-oss-full-ft/batch.safetensors");
    experiment["train"] = "attention+experts";
    experiment["rank"] = 2;
    experiment["lr"] = 0.01;
    const Experiment spec = Experiment::parse(experiment, "experiment");
    kernels::ContextOptions options;
    options.backend = kernels::Backend::Cpu;
    options.threads = 2;
    options.memory.failFrom = failFrom;
    kernels::Context context(options);
    const WorkloadSinks sinks;
    Json metrics;
    const Run run{spec, sinks, {}, metrics};
    const ModelSource source = openSource(run);
    FinetuneData data(run, source);
    FinetuneModel model(run, source, context);
    FinetuneLoop(run, source, model, data).run();
    return metrics;
}

TEST(FinetuneMemory, AnAllocationThatFailsLeavesTheLastCheckpointWhole) {
    for (const Json& more : {Json{{"checkpoint", "none"}}, Json{{"checkpoint", "offload"}},
                             Json{{"method", "lora"}, {"qat", "mxfp4"}, {"merge", "mxfp4"}},
                             Json{{"method", "full"}, {"qat", "int4"}, {"weights", "dequantized"}}}) {
        const std::string checkpoint = more.dump();
        const test::TempFolder folder;
        const std::string output = folder.path() + "/out";
        Json options = {{"tiled_mlp", "on"}, {"loss_chunks", "2"}};
        options.update(more);
        Json saving = options;
        saving.update({{"output", output}, {"save_every", 1}, {"steps", 1}});
        finetune(saving, 0);
        saving.update({{"steps", 3}, {"resume", output}});
        std::uint64_t failures = 0;
        bool done = false;
        while (!done) {
            try {
                finetune(saving, failures + 1);
                done = true;
            } catch (const base::OutOfMemory&) {
                ++failures;
            }
        }
        EXPECT_GE(failures, 5u) << checkpoint;
        Json whole = options;
        whole["merge"] = "none";
        saving["steps"] = 4;
        const Json longer = finetune(saving, 0);
        EXPECT_EQ(longer["resumed_from_step"], 3) << "the run that had enough memory saved its last step";
        whole["steps"] = 4;
        EXPECT_EQ(longer["losses"], finetune(whole, 0)["losses"]) << checkpoint;
    }
}

} // namespace
} // namespace vitrine::engine
