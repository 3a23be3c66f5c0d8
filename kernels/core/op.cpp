// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/op.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>

#include "base/error.h"
#include "kernels/core/op_rates.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kNarrowHeadDim = 64;

using Endings = std::vector<std::string>;

/// Of the families of attention: its own, then those that stand in for it. Files of older versions know ".bytes" for a
/// cache of either byte type.
Endings attentionEndings(RateClass::Kind kind) {
    switch (kind) {
    case RateClass::NarrowHeads:
        return {".narrow", ""};
    case RateClass::WideHeads:
        return {".wide", ""};
    case RateClass::NarrowHeadsFp8:
        return {".narrow.fp8", ".narrow.bytes", ".narrow.int8", ".narrow", ""};
    case RateClass::WideHeadsFp8:
        return {".wide.fp8", ".wide.bytes", ".wide.int8", ".wide", ""};
    case RateClass::NarrowHeadsInt8:
        return {".narrow.int8", ".narrow.bytes", ".narrow.fp8", ".narrow", ""};
    case RateClass::WideHeadsInt8:
        return {".wide.int8", ".wide.bytes", ".wide.fp8", ".wide", ""};
    default:
        return {""};
    }
}

/// ".int4"; of floats ".dense".
std::string formatEnding(WeightFormat format) {
    const auto names = weightFormatNames();
    const auto found = std::ranges::find(names, format, &WeightFormatName::format);
    std::string out = ".";
    for (const char letter : found == names.end() ? std::string_view("packed") : found->name) {
        out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    return out;
}

/// Of experts: their own format, any packed one where they are packed, then the rest. Files of older versions know
/// ".packed", and "" for experts however they are stored.
Endings expertEndings(WeightFormat format) {
    Endings packed{".packed"}, out{formatEnding(format)};
    for (const WeightFormatName& other : weightFormatNames()) {
        if (other.format != format && other.format != WeightFormat::Dense) {
            packed.push_back(formatEnding(other.format));
        }
    }
    if (format == WeightFormat::Dense) {
        out.emplace_back("");
    }
    out.insert(out.end(), packed.begin(), packed.end());
    if (format != WeightFormat::Dense) {
        out.insert(out.end(), {"", formatEnding(WeightFormat::Dense)});
    }
    return out;
}

Endings copiesEndings(WeightFormat format) {
    const std::string own = formatEnding(format) + ".copies";
    Endings out = format == WeightFormat::Dense ? Endings{own, ".copies"} : Endings{own, ".packed.copies", ".copies"};
    const Endings others = expertEndings(format);
    out.insert(out.end(), others.begin(), others.end());
    return out;
}

Endings endingsOf(RateClass rateClass) {
    switch (rateClass.kind) {
    case RateClass::Weights:
        return {formatEnding(rateClass.format), ""};
    case RateClass::Experts:
        return expertEndings(rateClass.format);
    case RateClass::Copies:
        return copiesEndings(rateClass.format);
    default:
        return attentionEndings(rateClass.kind);
    }
}

} // namespace

double rooflineSeconds(const Cost& cost, const DeviceTraits& traits) {
    const double memory = traits.memoryBandwidth > 0 ? static_cast<double>(cost.bytes()) / traits.memoryBandwidth : 0;
    const double flops = traits.flops(cost.computeType) * cost.share;
    const double compute = flops > 0 ? static_cast<double>(cost.flops) / flops : 0;
    return std::max(memory, compute) + cost.launches * traits.launchSeconds +
           traits.linkSeconds(static_cast<double>(cost.linkBytes), cost.exchanges, cost.ranks);
}

RateClass attentionRateClass(std::int64_t headDim, DType cache) {
    const bool wide = headDim > kNarrowHeadDim;
    switch (cache) {
    case DType::F8E4M3:
        return wide ? RateClass::WideHeadsFp8 : RateClass::NarrowHeadsFp8;
    case DType::I8:
        return wide ? RateClass::WideHeadsInt8 : RateClass::NarrowHeadsInt8;
    default:
        return wide ? RateClass::WideHeads : RateClass::NarrowHeads;
    }
}

RateClass weightRateClass(WeightFormat format) {
    return format == WeightFormat::Dense ? RateClass() : RateClass(RateClass::Weights, format);
}

RateClass expertRateClass(WeightFormat format, bool copies) {
    return {copies ? RateClass::Copies : RateClass::Experts, format};
}

RateClass rateClassOfCopies(RateClass rateClass) {
    return rateClass.kind == RateClass::Experts ? expertRateClass(rateClass.format, true) : rateClass;
}

std::string rateFamily(std::string_view op, RateClass rateClass) {
    return std::string(op).append(endingsOf(rateClass).front());
}

std::vector<std::string> rateFamilies(std::string_view op, RateClass rateClass) {
    Endings out = endingsOf(rateClass);
    for (std::string& ending : out) {
        ending.insert(0, op);
    }
    return out;
}

RateClass RunRateClasses::of(std::string_view op) const {
    if (op == "Attention" || op == "FlexAttention" || op == "FlexAttentionBackward") {
        return attention;
    }
    if (op == "ExpertMlp") {
        return experts;
    }
    if (op == "QkvProject" || op == "OutProject") {
        return projections;
    }
    // Training multiplies by all weights with the same ops.
    const bool product = op == "Matmul" || op == "MatmulInputGradient";
    return op == "DenseMlp" ? mlp : product && projections == mlp ? mlp : RateClass::Any;
}

OpSeconds opSeconds(std::string_view name, const Cost& cost, const DeviceTraits& traits) {
    if (traits.rates != nullptr) {
        const std::vector<std::string> families = rateFamilies(name, cost.rateClass);
        for (const std::string& family : families) {
            if (const auto rated = traits.rates->seconds(family, cost.bytes(), cost.flops, traits)) {
                return {rated->seconds, true, rated->far || &family != &families.front(),
                        traits.rates->wake(families.front())};
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
