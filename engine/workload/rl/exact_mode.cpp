// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/exact_mode.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/workload/experiment/option_value.h"

namespace vitrine::engine {

namespace {

/// Other pages are read by other kernels than those of training.
constexpr std::int64_t kPageUnit = 8;

} // namespace

void checkExact(const Experiment& experiment, const std::string& name) {
    if (!experiment.flag("exact")) {
        return;
    }
    if (experiment.has("kv_dtype") && experiment.text("kv_dtype") != experiment.text("dtype")) {
        failOption(name, "kv_dtype", "an exact run caches keys and values as they are computed; leave it out");
    }
    const std::string rollout = experiment.text("rollout");
    if (!rollout.empty() && rollout != "bf16" && rollout != experiment.text("qat")) {
        failOption(name, "rollout",
                   fmt::format("{} weights sample with other numbers than training has; give the same format to qat, "
                               "or leave it out",
                               rollout));
    }
    if (rollout == "bf16" && experiment.text("qat") != "none") {
        failOption(name, "rollout",
                   "training computes with the weights of qat, which bf16 rollouts do not; leave it "
                   "out");
    }
    if (experiment.integer("page_size") % kPageUnit != 0) {
        failOption(name, "page_size", fmt::format("an exact run takes multiples of {}", kPageUnit));
    }
}

void checkExactModel(const Experiment& experiment, const Model& model) {
    if (experiment.flag("exact") && model.decoder().rope().inverseFrequency.empty()) {
        throw base::Unsupported(
            "exact: the model's rotary frequencies follow the length of an answer, so that keys which "
            "were sampled early are not those of training; leave exact out");
    }
}

void sayIfInexact(const Experiment& experiment, std::int64_t step, const RlStep& numbers) {
    if (experiment.flag("exact") && numbers.largestDifference != 0 && numbers.mixedShare == 0) {
        base::logWarning(fmt::format("exact: step {}: log-probabilities of sampler and trainer differ by up to {:.2g}; "
                                     "the kernels of this device are not exact for this model",
                                     step, numbers.largestDifference));
    }
}

bool sharesPrompts(const Experiment& experiment) {
    return experiment.flag("share_prompts") && !experiment.flag("exact");
}

} // namespace vitrine::engine
