// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/op.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <initializer_list>
#include <span>

#include "base/error.h"
#include "kernels/core/op_rates.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kNarrowHeadDim = 64;

/// The endings of the families of a class: its own, then those that stand in for it.
struct Endings {
    RateClass rateClass = RateClass::Any;
    std::array<std::string_view, 7> texts;
    std::size_t count = 0;
};

constexpr Endings endings(RateClass rateClass, std::initializer_list<std::string_view> texts) {
    Endings out{rateClass, {}, texts.size()};
    std::copy(texts.begin(), texts.end(), out.texts.begin());
    return out;
}

/// In the order of RateClass. Files of older versions know ".bytes" for a cache of either byte type, ".copies" and ""
/// for experts however they are stored, and "" and ".packed" for every format of weights.
constexpr std::array<Endings, kRateClasses> kEndings{{
    endings(RateClass::Any, {""}),
    endings(RateClass::NarrowHeads, {".narrow", ""}),
    endings(RateClass::WideHeads, {".wide", ""}),
    endings(RateClass::NarrowHeadsFp8, {".narrow.fp8", ".narrow.bytes", ".narrow.int8", ".narrow", ""}),
    endings(RateClass::WideHeadsFp8, {".wide.fp8", ".wide.bytes", ".wide.int8", ".wide", ""}),
    endings(RateClass::NarrowHeadsInt8, {".narrow.int8", ".narrow.bytes", ".narrow.fp8", ".narrow", ""}),
    endings(RateClass::WideHeadsInt8, {".wide.int8", ".wide.bytes", ".wide.fp8", ".wide", ""}),
    endings(RateClass::PackedExperts, {".packed", "", ".dense"}),
    endings(RateClass::DenseExperts, {".dense", "", ".packed"}),
    endings(RateClass::CopiesPacked, {".packed.copies", ".copies", ".packed", "", ".dense"}),
    endings(RateClass::CopiesDense, {".dense.copies", ".copies", ".dense", "", ".packed"}),
    endings(RateClass::Mxfp4Weights, {".mxfp4", ""}),
    endings(RateClass::Nf4Weights, {".nf4", ""}),
    endings(RateClass::Int4Weights, {".int4", ""}),
    endings(RateClass::Int8Weights, {".int8", ""}),
    endings(RateClass::Fp8Weights, {".fp8", ""}),
    endings(RateClass::BlockWeights, {".blocks", ""}),
    endings(RateClass::Nf4Experts, {".nf4", ".packed", "", ".dense"}),
    endings(RateClass::Int4Experts, {".int4", ".packed", "", ".dense"}),
    endings(RateClass::Int8Experts, {".int8", ".packed", "", ".dense"}),
    endings(RateClass::Fp8Experts, {".fp8", ".packed", "", ".dense"}),
    endings(RateClass::BlockExperts, {".blocks", ".packed", "", ".dense"}),
    endings(RateClass::CopiesNf4, {".nf4.copies", ".packed.copies", ".copies", ".nf4", ".packed", "", ".dense"}),
    endings(RateClass::CopiesInt4, {".int4.copies", ".packed.copies", ".copies", ".int4", ".packed", "", ".dense"}),
    endings(RateClass::CopiesInt8, {".int8.copies", ".packed.copies", ".copies", ".int8", ".packed", "", ".dense"}),
    endings(RateClass::CopiesFp8, {".fp8.copies", ".packed.copies", ".copies", ".fp8", ".packed", "", ".dense"}),
    endings(RateClass::CopiesBlock,
            {".blocks.copies", ".packed.copies", ".copies", ".blocks", ".packed", "", ".dense"}),
}};
static_assert([] {
    for (std::size_t i = 0; i < kEndings.size(); ++i) {
        if (static_cast<std::size_t>(kEndings[i].rateClass) != i) {
            return false;
        }
    }
    return true;
}());

std::span<const std::string_view> suffixesOf(RateClass rateClass) {
    const Endings& found = kEndings[static_cast<std::size_t>(rateClass)];
    return {found.texts.data(), found.count};
}

/// The classes that the format of weights makes, in the order of WeightFormat.
struct FormatClasses {
    RateClass weights, experts, copies;
};
constexpr FormatClasses kBlocks{RateClass::BlockWeights, RateClass::BlockExperts, RateClass::CopiesBlock};
constexpr std::array<FormatClasses, 11> kFormatClasses{{
    {RateClass::Any, RateClass::DenseExperts, RateClass::CopiesDense},
    {RateClass::Mxfp4Weights, RateClass::PackedExperts, RateClass::CopiesPacked},
    {RateClass::Nf4Weights, RateClass::Nf4Experts, RateClass::CopiesNf4},
    {RateClass::Int4Weights, RateClass::Int4Experts, RateClass::CopiesInt4},
    {RateClass::Int8Weights, RateClass::Int8Experts, RateClass::CopiesInt8},
    {RateClass::Fp8Weights, RateClass::Fp8Experts, RateClass::CopiesFp8},
    kBlocks,
    kBlocks,
    kBlocks,
    kBlocks,
    kBlocks,
}};

const FormatClasses& classesOf(WeightFormat format) {
    return kFormatClasses[std::min(static_cast<std::size_t>(format), kFormatClasses.size() - 1)];
}

} // namespace

double rooflineSeconds(const Cost& cost, const DeviceTraits& traits) {
    const double memory = traits.memoryBandwidth > 0 ? static_cast<double>(cost.bytes()) / traits.memoryBandwidth : 0;
    const double flops = traits.flops(cost.computeType) * cost.share;
    const double compute = flops > 0 ? static_cast<double>(cost.flops) / flops : 0;
    return std::max(memory, compute) + cost.launches * traits.launchSeconds;
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
    return classesOf(format).weights;
}

RateClass expertRateClass(WeightFormat format, bool copies) {
    return copies ? classesOf(format).copies : classesOf(format).experts;
}

RateClass rateClassOfCopies(RateClass rateClass) {
    const auto found = std::ranges::find(kFormatClasses, rateClass, &FormatClasses::experts);
    return found == kFormatClasses.end() ? rateClass : found->copies;
}

std::string rateFamily(std::string_view op, RateClass rateClass) {
    return std::string(op).append(suffixesOf(rateClass).front());
}

std::vector<std::string> rateFamilies(std::string_view op, RateClass rateClass) {
    std::vector<std::string> out;
    for (const std::string_view suffix : suffixesOf(rateClass)) {
        out.push_back(std::string(op).append(suffix));
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
