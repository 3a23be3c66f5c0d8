// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/op.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

#include "base/error.h"
#include "kernels/core/op_rates.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kNarrowHeadDim = 64;

using Suffixes = std::span<const std::string_view>;

/// The endings of the families of a class: its own, then those that stand in for it. Files of older versions know
/// ".bytes" for a cache of either byte type, and ".copies" and "" for experts however they are stored.
Suffixes suffixesOf(RateClass rateClass) {
    using Text = std::string_view;
    static constexpr std::array kAny{Text("")};
    static constexpr std::array kNarrow{Text(".narrow"), Text("")};
    static constexpr std::array kWide{Text(".wide"), Text("")};
    static constexpr std::array kNarrowFp8{Text(".narrow.fp8"), Text(".narrow.bytes"), Text(".narrow.int8"),
                                           Text(".narrow"), Text("")};
    static constexpr std::array kWideFp8{Text(".wide.fp8"), Text(".wide.bytes"), Text(".wide.int8"), Text(".wide"),
                                         Text("")};
    static constexpr std::array kNarrowInt8{Text(".narrow.int8"), Text(".narrow.bytes"), Text(".narrow.fp8"),
                                            Text(".narrow"), Text("")};
    static constexpr std::array kWideInt8{Text(".wide.int8"), Text(".wide.bytes"), Text(".wide.fp8"), Text(".wide"),
                                          Text("")};
    static constexpr std::array kPacked{Text(".packed"), Text(""), Text(".dense")};
    static constexpr std::array kDense{Text(".dense"), Text(""), Text(".packed")};
    static constexpr std::array kPackedCopies{Text(".packed.copies"), Text(".copies"), Text(".packed"), Text(""),
                                              Text(".dense")};
    static constexpr std::array kDenseCopies{Text(".dense.copies"), Text(".copies"), Text(".dense"), Text(""),
                                             Text(".packed")};
    static constexpr std::array<Suffixes, 11> kOfClasses{kAny,     kNarrow,       kWide,       kNarrowFp8,
                                                         kWideFp8, kNarrowInt8,   kWideInt8,   kPacked,
                                                         kDense,   kPackedCopies, kDenseCopies};
    return kOfClasses[static_cast<std::size_t>(rateClass)];
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

RateClass expertRateClass(bool packed, bool copies) {
    const RateClass rateClass = packed ? RateClass::PackedExperts : RateClass::DenseExperts;
    return copies ? rateClassOfCopies(rateClass) : rateClass;
}

RateClass rateClassOfCopies(RateClass rateClass) {
    return rateClass == RateClass::PackedExperts  ? RateClass::CopiesPacked
           : rateClass == RateClass::DenseExperts ? RateClass::CopiesDense
                                                  : rateClass;
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
    return op == "ExpertMlp" ? experts : RateClass::Any;
}

OpSeconds opSeconds(std::string_view name, const Cost& cost, const DeviceTraits& traits) {
    if (traits.rates != nullptr) {
        const std::vector<std::string> families = rateFamilies(name, cost.rateClass);
        for (const std::string& family : families) {
            if (const auto rated = traits.rates->seconds(family, cost.bytes(), cost.flops, traits)) {
                return {rated->seconds, true, rated->far || &family != &families.front()};
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
