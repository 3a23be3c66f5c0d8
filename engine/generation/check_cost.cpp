// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/check_cost.h"

#include <cmath>

#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

/// A step over several tokens of a sequence launches other kernels for attention.
constexpr double kStepCost = 0.05;
/// Products over few rows reach this share of a device's rate. A step over six tokens took 1.3 times as long as one
/// over a single token on two cores of a CPU.
constexpr double kProductShare = 0.5;

} // namespace

CheckCosts::CheckCosts(Model& model, std::uint64_t draftBytes) : draftBytes_(static_cast<double>(draftBytes)) {
    const ModelConfig& config = model.config();
    const WeightBytes bytes = model.weightBytes();
    shared_ = static_cast<double>(bytes.shared + bytes.head);
    if (bytes.moeLayers > 0) {
        expertsBytes_ = static_cast<double>(bytes.moeLayers) * static_cast<double>(bytes.expert) *
                        static_cast<double>(config.expertsPerToken);
        chosenShare_ = static_cast<double>(config.expertsPerToken) / static_cast<double>(config.experts);
    }
    const kernels::DeviceTraits& traits = model.context().traits();
    const kernels::DType type = model.options().computeDType;
    const double flops = traits.flops(type);
    if (flops > 0) {
        products_ =
            2 * traits.memoryBandwidth / (kProductShare * flops * static_cast<double>(kernels::bytesOf(type, 1)));
    }
}

CheckCost CheckCosts::of(std::int64_t rows) const {
    const auto tokens = static_cast<double>(rows);
    const double unread = chosenShare_ > 0 ? std::pow(1 - chosenShare_, tokens) : 0;
    const double experts = chosenShare_ > 0 ? expertsBytes_ * (1 - unread) / chosenShare_ : 0;
    const double step = shared_ + experts;
    if (step <= 0) {
        return {};
    }
    const double products = products_ * (shared_ + expertsBytes_);
    return {kStepCost, (tokens * (expertsBytes_ * unread + products) + draftBytes_) / step};
}

} // namespace vitrine::engine
