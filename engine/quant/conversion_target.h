// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a model can be converted to, by the names that the option has. Stateless; safe from any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/quant/packing.h"

namespace vitrine::engine {

/// The values of the option, and its help text.
inline constexpr std::string_view kConversionChoices = "int4|int8|gptq|awq|mxfp4|nf4|fp8|bf16";
inline constexpr std::string_view kConversionHelp =
    "Format of the linears: int4 and int8 are compressed-tensors, gptq and awq their own layouts, nf4 bitsandbytes, "
    "fp8 DeepSeek's; mxfp4 packs stacks of experts as gpt-oss has them; bf16 unpacks";

/// The rules by which values become INT4 codes (kernels/formats/integer_rounding.h), the usual one first.
inline constexpr std::string_view kInt4Rules = "compressed-tensors|seven";
inline constexpr std::string_view kInt4RuleHelp =
    "How values become int4: by the largest magnitude over 7.5 and -8 to 7 (compressed-tensors), or over 7 and -7 to "
    "7, "
    "as training in INT4 has it (seven); unset: compressed-tensors, with qat seven";

/// Nothing: weights become dense BF16. `group` is the number of inputs that share a scale, kWholeRow for all of them;
/// unset: what is usual. Of FP8, kWholeRow is a scale for the whole matrix. `symmetric` says that zeros are not chosen;
/// unset: what is usual. `rule` is a value of the option int4_rule, or empty. Throws BadInput "group_size: what",
/// "symmetric: what" and "int4_rule: what" for what the format does not have.
std::optional<Quantization> conversionTarget(std::string_view name, std::optional<std::int64_t> group,
                                             std::optional<bool> symmetric, std::string_view rule = {});

/// Whether integers can have groups of so many inputs: kWholeRow, or a multiple of 8.
bool isGroupSize(std::int64_t group);

/// Whether weights can be calibrated for it: rounded so that products with typical inputs change least.
bool canCalibrate(const std::optional<Quantization>& target);

/// The method of files with such a packing that rounded their weights so that products with typical inputs change
/// least: "GPTQ" or "AWQ". Empty: none did.
std::string_view calibratedMethod(const WeightPacking& packing);

/// What a target is called for people, with the size of its groups: "INT4, g32".
std::string conversionTitle(const Quantization& target);

/// How a weight w becomes a code q or a value w' by rounding to the nearest, for people:
/// "s = max(|w|) / 7.5, q = round(w / s), -8 to 7". The maximum is that of a group. Empty: nothing packs to it.
std::string roundingRule(const Quantization& target);

/// Targets that are worth comparing, as the option formats of the Precision lab writes them (NAME or NAME:GROUP or
/// NAME:GROUP:RULE), and
/// those that its table of one matrix has in any case.
inline constexpr std::string_view kComparedTargets = "bf16,fp8,int4:32,int4:128,mxfp4,nf4";
inline constexpr std::string_view kUsualTargets = "fp8,int4:16,awq:32,int4:32,mxfp4,int4:128";

/// The format as a result names it: "int4".
std::string_view formatName(kernels::WeightFormat format);

} // namespace vitrine::engine
