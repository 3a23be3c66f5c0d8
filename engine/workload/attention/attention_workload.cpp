// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload attention: its options, what must stand together, and its words.

#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/checkpoint/output_check.h"
#include "engine/workload/attention/attention_run.h"
#include "engine/workload/attention/attention_tensors.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/experiment/workloads.h"

namespace vitrine::engine {
namespace {

constexpr std::array<ResultSet, 7> kAttentionResults = {result::kRunSet,  result::kMemorySet, result::kKernelSet,
                                                        result::kPlanSet, result::kRateSet,   result::kAttentionSet,
                                                        result::kFileSet};

using nlohmann::json;

constexpr std::array<std::string_view, 2> kAttentionSharedKeys = {"output", "repeat"};
constexpr std::array<std::string_view, 1> kAttentionViews = {"mask"};

constexpr std::array<WorkloadOutput, 1> kAttentionOutputs{{{"output", &kAttentionOutput}}};

/// Columns as in option_table.cpp.
constexpr std::array kAttentionOptions = {
    OptionSpec{
        "mods", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
        "Python file with score_mod and mask_mod functions; may be given several times. The built-in catalogue is "
        "always at hand",
        0, false, true},
    OptionSpec{"program", OptionType::Text, "", "", 0, 0, "", "", "Attention",
               "The text of such a file, read after the files"},
    OptionSpec{"mask", OptionType::Text, "", "", 0, 0, "", "", "Attention",
               "A mask function, or a call that makes one: \"causal\", \"generate_natten(16, 16, 5, 5)\""},
    OptionSpec{"score", OptionType::Text, "", "", 0, 0, "", "", "Attention",
               "A score function, or a call that makes one"},
    OptionSpec{"define", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
               "An integer that the file reads as a global, as WINDOW=1024"},
    OptionSpec{"parameter", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
               "A number in place of the file's constant or of a factory's argument of that name, as WINDOW=512"},
    OptionSpec{"capture", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
               "A small captured tensor: prefix=5,9, slopes=0.5,0.25, doc_id=documents:1250,2900 (from the documents' "
               "lengths)"},
    OptionSpec{"tensors", OptionType::Path, "", "", 0, 0, "", "", "Attention",
               "q, k, v (batch, heads, seq, headDim), grad_out, optional sinks, and captured tensors by name: a "
               "safetensors file"},
    OptionSpec{
        "random", OptionType::Text, "", "", 0, 0, "", "B,H,HKV,S,D", "Attention",
        "Random q, k, v and grad_out of these sizes in place of the file's; B,H,HKV,Q,KV,D where queries and keys "
        "differ"},
    OptionSpec{"stands_for", OptionType::Text, "", "", 0, 0, "", "B,H,HKV,S,D", "Attention",
               "The sizes that random stands for, where a smaller part of them is measured; kept with the run"},
    OptionSpec{"no_sinks", OptionType::Bool, "false", "", 0, 0, "", "", "Attention", "Leave the file's sinks out"},
    OptionSpec{"backward", OptionType::Bool, "false", "", 0, 0, "", "", "Attention", "Also compute gradients"},
    OptionSpec{"compare_full", OptionType::Bool, "false", "", 0, 0, "", "", "Attention",
               "Also time the same tensors without the mask"},
    OptionSpec{"block_size", OptionType::Integer, "128", "", 1, kMaxCount, "", "tokens", "Attention",
               "Queries and keys of a mask block"},
    OptionSpec{"scale", OptionType::Real, "", "", -1e6, 1e6, "", "", "Attention",
               "Factor of q.k; unset: 1 / sqrt(headDim)"},
};

bool needsModel(const Experiment&) {
    return false;
}

void checkAttention(const Experiment& experiment, const std::string& name) {
    for (const char* key : {"random", "stands_for"}) {
        try {
            if (experiment.has(key)) {
                parseAttentionSizes(experiment.text(key), key);
            }
        } catch (const base::BadInput& error) {
            throw base::BadInput(fmt::format("{}: {}", name, error.message()));
        }
    }
    if (!experiment.has("random") && !experiment.has("tensors")) {
        failOption(name, "tensors", "name a file with q, k and v, or give random sizes as B,H,HKV,S,D");
    }
}

std::string listName(const Experiment& experiment) {
    const std::string mask = experiment.text("mask");
    const std::string score = experiment.text("score");
    return fmt::format("attention {}{}{}", score, score.empty() || mask.empty() ? "" : ", ",
                       score.empty() && mask.empty() ? "full" : mask);
}

/// The sizes, the mask's sparsity and the times; nothing where nothing was timed.
std::optional<std::string> words(const Experiment&, const json& report) {
    if (!report.contains("forward_ms")) {
        return std::nullopt;
    }
    const auto rate = [&](const std::string& key) {
        return report.contains(key) && report[key].is_number() ? fmt::format("{:.4g}", report[key].get<double>())
                                                               : std::string("-");
    };
    std::string text = fmt::format("{} on {}: batch {}, heads {}, KV heads {}, {} queries, {} keys, head dim {}\n",
                                   report["dtype"].get<std::string>(), report["device"].get<std::string>(),
                                   report["batch"].get<std::int64_t>(), report["heads"].get<std::int64_t>(),
                                   report["kv_heads"].get<std::int64_t>(), report["q_len"].get<std::int64_t>(),
                                   report["kv_len"].get<std::int64_t>(), report["head_dim"].get<std::int64_t>());
    if (report.contains("block_sparsity")) {
        text += fmt::format("block sparsity {:.4f}, full share {:.4f}\n", report["block_sparsity"].get<double>(),
                            report["full_share"].get<double>());
    }
    std::vector<std::vector<std::string>> rows{{"", "ms", "TFLOP/s"}};
    for (const std::string name : {"forward", "backward"}) {
        rows.push_back({name, rate(name + "_ms"), rate(name + "_tflops")});
        if (report.contains("full_" + name + "_ms")) {
            rows.push_back({name + " without the mask", rate("full_" + name + "_ms"), ""});
        }
        if (report.contains("predicted_" + name + "_ms")) {
            rows.push_back({name + " predicted", rate("predicted_" + name + "_ms"), ""});
        }
    }
    return text + tableText(rows);
}

} // namespace

constinit const Workload kAttentionWorkload = {
    .name = "attention",
    .title = "Attention",
    .optionSets = kDeviceOptions | kRunOptions,
    .optionKeys = kAttentionSharedKeys,
    .ownOptions = kAttentionOptions,
    .outputs = kAttentionOutputs,
    .ownOptionsBefore = "bench",
    .needsModel = needsModel,
    .check = checkAttention,
    .takesAllDTypes = true,
    .run = runAttention,
    .startsAfresh = true,
    .results = kAttentionResults,
    .runName = listName,
    .resultText = words,
    .formView = "mask",
    .formPlace = 1,
    .views = kAttentionViews,
};

} // namespace vitrine::engine
