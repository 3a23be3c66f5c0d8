// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/rollout_weights.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"
#include "engine/training/quantized/quantized_training.h"
#include "engine/workload/rl/exact_mode.h"
#include "engine/workload/rl/rollout_names.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

namespace {

constexpr std::string_view kDenseRollout = "bf16";

/// Dense weights that rollouts compute with packed: those that qat would quantize.
std::vector<PackedTarget> denseLinears(const WeightPacking& packing, const Model& model) {
    const QuantizedTraining quantized(packing, {}, model.parameters());
    std::vector<PackedTarget> out;
    for (const Parameter& parameter : model.parameters()) {
        if (!parameter.view.quantized() && quantized.covers(parameter)) {
            PackedTarget target;
            target.weight = parameter.name;
            target.packing = packing;
            target.rule = packing.rule;
            target.type = model.options().computeDType;
            out.push_back(std::move(target));
        }
    }
    return out;
}

} // namespace

RolloutWeights::RolloutWeights(const Run& run, FinetuneModel& model) : model_(model) {
    checkExactModel(run.spec, model.model());
    const std::string qat = run.spec.text("qat");
    const std::string asked = run.spec.text("rollout");
    format_ = !asked.empty() ? asked : qat != "none" ? qat : std::string(kDenseRollout);
    const bool merged = model.packed() != nullptr && model.adapter() != nullptr;
    if (format_ == qat) {
        // In an exact run the sampler takes what training computes with: the copies' values, in the weights' own type.
        usesTraining_ = model.packed() != nullptr && !run.spec.flag("exact");
        return;
    }
    if (merged) {
        throw base::BadInput(fmt::format("rollout: {}: the adapter is merged into {} weights while it trains; sample "
                                         "with these, or leave qat out",
                                         format_, qat));
    }
    showsMasters_ = model.packed() != nullptr;
    if (format_ != kDenseRollout) {
        packing_ = conversionTarget(format_,
                                    hasGroups(format_) ? run.spec.maybeInteger("group_size").value_or(kQatInt4Group)
                                                       : run.spec.maybeInteger("group_size"),
                                    std::nullopt, hasGroups(format_) ? std::string(kQatInt4Rule) : std::string())
                       ->packing;
        if (denseLinears(*packing_, model.model()).empty()) {
            throw base::BadInput(fmt::format("rollout: {}: the model has no dense weights that could be packed; leave "
                                             "rollout out",
                                             format_));
        }
    }
}

RolloutWeights::~RolloutWeights() {
    if (usesTraining_) {
        model_.packed()->serve(false);
    }
}

void RolloutWeights::attach() {
    if (usesTraining_) {
        model_.packed()->serve(true);
    }
    if (showsMasters_) {
        model_.packed()->showMasters(true);
        shown_ = true;
    }
    if (packing_ && copies_ == nullptr) {
        copies_ = std::make_unique<PackedCopies>(model_.model(), denseLinears(*packing_, model_.model()), nullptr,
                                                 nullptr, std::string(kRolloutCopy));
        copies_->refresh();
    }
}

void RolloutWeights::detach() {
    if (usesTraining_) {
        model_.packed()->serve(false);
    }
    copies_.reset();
    if (shown_) {
        model_.packed()->showMasters(false);
        shown_ = false;
    }
}

} // namespace vitrine::engine
