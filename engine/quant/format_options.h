// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Options whose values are names of packed formats, so that the rest of the engine names none.

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/core/weight_view.h"

namespace vitrine::engine {

/// The values of the option that merges an adapter into a model, and its help text. A value but "none" and "bf16" is
/// the name of a packed format.
inline constexpr std::string_view kMergeChoices = "none|bf16|mxfp4|nf4|int4|fp8";
inline constexpr std::string_view kMergeHelp =
    "Write the model with the adapter in its weights into output/merged: BF16, experts as MXFP4, linears as NF4, or, "
    "as they were trained with qat, int4 and fp8; with method full and qat, output is then the packed model";
/// Whether a value of merge is written only from weights that were packed while they were trained.
bool needsCopies(std::string_view merge);

/// The values of the option of quantization-aware training, and its help text. A value but "none" is a conversion
/// target (conversion_target.h).
inline constexpr std::string_view kQatChoices = "none|int4|fp8|mxfp4";
inline constexpr std::string_view kQatHelp =
    "Quantization-aware training: compute with weights as this format rounds them, and change float masters; int4 has "
    "groups of group_size inputs, fp8 blocks of 128 by 128, mxfp4 packs stacks of experts";
/// Weights that rollouts are sampled with, as the option rollout has them: dense, or conversion targets.
inline constexpr std::string_view kRolloutChoices = "bf16|fp8|int4|mxfp4";
/// Whether the option group_size is for that value, and the groups and the rule of INT4 in training where none is
/// given.
bool hasGroups(std::string_view name);
inline constexpr std::int64_t kQatInt4Group = 32;
inline constexpr std::string_view kQatInt4Rule = "seven";

/// The values of the option that says how weights are kept, and its help text. A value but "quantized", "dequantized"
/// and "both" is the name of a format that the linears of a dense model are packed to.
inline constexpr std::string_view kWeightsChoices = "quantized|dequantized|nf4|both";
inline constexpr std::string_view kWeightsHelp = "Keep packed weights as stored, expand them to BF16, or pack the "
                                                 "linears of a dense model to NF4 at load; load also "
                                                 "takes both of the first two, one after the other";

/// The packed format that a value of one of these options names; Dense when it names none.
kernels::WeightFormat formatNamed(std::string_view name);

/// Whether kernels::PackWeights packs weights to this format.
bool canPackAgain(kernels::WeightFormat format);
/// Whether full training that is merge-aware packs weights so that files have in this format.
bool canMergePacked(kernels::WeightFormat format);
/// The type that values of a packed weight are rounded to before it is packed again: that of its scales, or that of the
/// computation, or none.
kernels::DType typeOfPacked(const kernels::WeightView& weight, kernels::DType compute);

} // namespace vitrine::engine
