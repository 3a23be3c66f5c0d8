// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/op.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/core/op_rates.h"

namespace vitrine::kernels {

double rooflineSeconds(const Cost& cost, const DeviceTraits& traits) {
    const double memory = traits.memoryBandwidth > 0 ? static_cast<double>(cost.bytes()) / traits.memoryBandwidth : 0;
    const double flops = traits.flops(cost.computeType) * cost.share;
    const double compute = flops > 0 ? static_cast<double>(cost.flops) / flops : 0;
    return std::max(memory, compute) + cost.launches * traits.launchSeconds;
}

std::string rateFamily(std::string_view op, RateClass rateClass) {
    static constexpr std::array<std::string_view, 6> kSuffixes{
        "", ".narrow", ".wide", ".narrow.bytes", ".wide.bytes", ".copies"};
    return std::string(op).append(kSuffixes[static_cast<std::size_t>(rateClass)]);
}

RateClass rateClassOf(std::string_view op, RateClass attention, bool copies) {
    if (op == "Attention" || op == "FlexAttention" || op == "FlexAttentionBackward") {
        return attention;
    }
    return copies && op == "ExpertMlp" ? RateClass::Copies : RateClass::Any;
}

OpSeconds opSeconds(std::string_view name, const Cost& cost, const DeviceTraits& traits) {
    if (traits.rates != nullptr) {
        for (const RateClass rateClass : {cost.rateClass, RateClass::Any}) {
            const std::string family = rateFamily(name, rateClass);
            if (const auto seconds = traits.rates->seconds(family, cost.bytes(), cost.flops, traits)) {
                return {*seconds, true};
            }
        }
    }
    return {rooflineSeconds(cost, traits), false};
}

void throwNoCuda(std::string_view op) {
    throw base::Unsupported(
        fmt::format("backend: {} does not run on CUDA in this build; use --backend cpu or --backend meta", op));
}

} // namespace vitrine::kernels
