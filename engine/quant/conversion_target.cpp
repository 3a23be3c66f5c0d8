// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/conversion_target.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/quant/format_options.h"
#include "kernels/core/floats.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::WeightFormat;

constexpr std::int64_t kUsualGroup = 128;
constexpr std::string_view kSeven = "seven";

void refuseGroup(std::string_view name, std::optional<std::int64_t> group) {
    if (group) {
        throw base::BadInput(fmt::format("group_size: {} has groups of one size; leave the option out", name));
    }
}

kernels::IntegerRule int4Rule(std::string_view name, std::string_view rule, bool symmetric) {
    if (rule != kSeven) {
        return kernels::IntegerRule::CompressedTensors;
    }
    if (name != "int4") {
        throw base::BadInput(fmt::format("int4_rule: {} has one rule; leave the option out", name));
    }
    if (!symmetric) {
        throw base::BadInput("int4_rule: seven has no zeros; leave symmetric out");
    }
    return kernels::IntegerRule::Seven;
}

void refuseZeros(std::string_view name, std::optional<bool> symmetric) {
    if (symmetric && !*symmetric) {
        throw base::BadInput(fmt::format("symmetric: {} has no zeros; leave the option out", name));
    }
}

/// Integers in the layout of compressed-tensors, GPTQ or AWQ.
Quantization integers(std::string_view name, std::optional<std::int64_t> group, bool symmetric) {
    Quantization out;
    WeightPacking& packing = out.packing;
    packing.format = name == "int8" ? WeightFormat::Int8 : WeightFormat::Int4;
    packing.group = group.value_or(name == "int8" ? kWholeRow : kUsualGroup);
    packing.scheme = name == "gptq"  ? StorageScheme::Gptq
                     : name == "awq" ? StorageScheme::Awq
                                     : StorageScheme::PackQuantized;
    // The files of GPTQ and AWQ have zeros even where all are the middle code.
    packing.zeros = packing.scheme != StorageScheme::PackQuantized || !symmetric;
    // Version 1 of GPTQ has no code for a zero of 0: some readers would take it for another one.
    packing.zerosMinusOne = packing.scheme == StorageScheme::Gptq && symmetric;
    out.symmetric = symmetric;
    return out;
}

Quantization fp8(std::optional<std::int64_t> group) {
    if (group && *group != kUsualGroup && *group != kWholeRow) {
        throw base::BadInput("group_size: fp8 has a scale for 128 by 128 values, or with -1 for a whole matrix");
    }
    const bool whole = group == kWholeRow;
    Quantization out;
    out.packing.scheme = StorageScheme::Fp8;
    out.packing.format = WeightFormat::Fp8;
    out.packing.group = out.packing.rowGroup = whole ? kWholeRow : kUsualGroup;
    out.packing.scalesName = whole ? "weight_scale" : "weight_scale_inv";
    return out;
}

} // namespace

std::optional<Quantization> conversionTarget(std::string_view name, std::optional<std::int64_t> group,
                                             std::optional<bool> symmetric, std::string_view rule) {
    const kernels::IntegerRule integerRule = int4Rule(name, rule, symmetric.value_or(true));
    if (name == "int4" || name == "int8" || name == "gptq" || name == "awq") {
        Quantization out = integers(name, group, symmetric.value_or(name != "awq"));
        out.packing.rule = integerRule;
        return out;
    }
    refuseZeros(name, symmetric);
    if (name == "fp8") {
        return fp8(group);
    }
    refuseGroup(name, group);
    if (name == "bf16") {
        return std::nullopt;
    }
    Quantization out;
    out.packing = formatNamed(name) == stackPacking().format ? stackPacking() : linearPacking();
    out.allLinears = out.packing.scheme != StorageScheme::GptOss;
    return out;
}

std::string_view calibratedMethod(const WeightPacking& packing) {
    return packing.scheme == StorageScheme::Gptq ? "GPTQ" : packing.scheme == StorageScheme::Awq ? "AWQ" : "";
}

std::string conversionTitle(const Quantization& target) {
    const WeightPacking& packing = target.packing;
    std::string title(kernels::packedFormat(packing.format).title);
    if (const std::string_view method = calibratedMethod(packing); !method.empty()) {
        title = fmt::format("{} {}", method, title);
    }
    if (packing.group == 0) {
        return title; // the format has groups of one size
    }
    if (packing.rowGroup != 1) {
        return title + (packing.group == kWholeRow ? std::string(", one scale")
                                                   : fmt::format(", {} x {}", packing.rowGroup, packing.group));
    }
    title += packing.group == kWholeRow ? std::string(", whole rows") : fmt::format(", g{}", packing.group);
    return packing.rule == kernels::IntegerRule::Seven ? title + ", rule of seven" : title;
}

std::string roundingRule(const Quantization& target) {
    const auto integers = [&](int bits) {
        const int codes = 1 << bits;
        if (target.packing.rule == kernels::IntegerRule::Seven) {
            return std::string("s = max(max(|w|) / 7, 1e-5), q = round(w / s), -7 to 7");
        }
        if (target.packing.zeros && !target.symmetric) {
            return fmt::format("s = (max(w) - min(w)) / {0}, q = round(w / s) + zero, 0 to {0}", codes - 1);
        }
        return fmt::format("s = max(|w|) / {}, q = round(w / s), -{} to {}", (codes - 1) / 2.0, codes / 2,
                           codes / 2 - 1);
    };
    switch (target.packing.format) {
    case WeightFormat::Int4:
        return integers(4);
    case WeightFormat::Int8:
        return integers(8);
    case WeightFormat::Fp8:
        return fmt::format("s = max(|w|) / {}, w' = s times the nearest E4M3 to w / s", kernels::kLargestE4m3);
    case WeightFormat::Mxfp4:
        return "s = 2^(floor(log2(max(|w|))) - 2), w' = s times the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6";
    case WeightFormat::Nf4:
        return "s = max(|w|), w' = s times the nearest of 16 quantiles of a normal distribution";
    default:
        return {};
    }
}

bool isGroupSize(std::int64_t group) {
    return group == kWholeRow || (group >= 8 && group % 8 == 0);
}

bool canCalibrate(const std::optional<Quantization>& target) {
    return target && (target->packing.format == WeightFormat::Int4 || target->packing.format == WeightFormat::Int8);
}

std::string_view formatName(WeightFormat format) {
    return format == WeightFormat::Dense ? "dense" : kernels::packedFormat(format).name;
}

} // namespace vitrine::engine
