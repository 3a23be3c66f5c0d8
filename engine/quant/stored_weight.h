// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a checkpoint stores a packed weight: the tensors of the weight, the check for damaged bytes, and random bytes for
// models without a checkpoint. The rest of the engine uses these functions and knows no format. They have no state and
// may be called on any thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/weight_view.h"

namespace vitrine::engine {

/// One tensor of a packed weight.
struct StoredTensor {
    kernels::WeightField field = kernels::WeightField::Data;
    std::string name; ///< in the checkpoint: the name of the weight with an ending
    kernels::DType dtype = kernels::DType::None;
    std::vector<std::int64_t> shape;
};

/// The tensors of the weight `name` of `shape` (..., out, in), in checkpoint order. REQUIRES a packed format, and `in`
/// a multiple of its quantization group. `packedScales`: the scales of a format that can pack them are packed too.
std::vector<StoredTensor> storedTensors(kernels::WeightFormat format, const std::string& name,
                                        std::span<const std::int64_t> shape, bool packedScales = false);

/// The shape in which a stored tensor of a weight of `weight` (..., out, in) lies in memory, where kernels read it.
kernels::Shape shapeInMemory(kernels::WeightFormat format, kernels::WeightField field,
                             std::span<const std::int64_t> stored, const kernels::Shape& weight);

/// The format that "quant_method" of a quantization_config names; none when the name is not known.
std::optional<kernels::WeightFormat> formatOfMethod(std::string_view method);

/// The format in which the weight `name` is stored; none when there is no such weight. `has` says whether a tensor is
/// in the checkpoint.
std::optional<kernels::WeightFormat> formatInFile(const std::string& name,
                                                  const std::function<bool(const std::string&)>& has);

/// How one tensor of a packed weight is filled with random bytes. With a deviation of 0 every byte is `center`,
/// otherwise bytes are uniformly distributed.
struct RandomBytes {
    float center = 0;
    float deviation = 1;
};

/// Random bytes that give the weight the deviation 1 / sqrt(in). `shape` is the shape of the stored tensor.
RandomBytes randomBytes(kernels::WeightFormat format, kernels::WeightField field, std::span<const std::int64_t> shape);

/// Checks `bytes` of a stored tensor, which begin at byte `first` of the tensor. Throws BadInput "NAME: what" when they
/// stand for values that are not numbers: one of these would spoil every token. Dense tensors are not checked. `bytes`
/// are whole elements of `dtype`.
void checkStoredBytes(kernels::WeightFormat format, kernels::WeightField field, kernels::DType dtype,
                      std::span<const std::uint8_t> bytes, const std::function<std::string()>& name,
                      std::uint64_t first);

/// Whether kernels::MergePacked packs weights of this format again.
bool canMergePacked(kernels::WeightFormat format);

/// "quant_method" of a quantization_config. REQUIRES a packed format.
std::string_view methodOfFormat(kernels::WeightFormat format);

/// The values of the option that merges an adapter into a model, and its help text. A value but "none" and "bf16" is
/// the name of a packed format.
inline constexpr std::string_view kMergeChoices = "none|bf16|mxfp4|nf4";
inline constexpr std::string_view kMergeHelp =
    "Write the model with the adapter in its weights into output/merged: BF16, experts as MXFP4, or linears as NF4";

/// The values of the option that says how weights are kept, and its help text. A value but "quantized", "dequantized"
/// and "both" is the name of a format that the linears of a dense model are packed to.
inline constexpr std::string_view kWeightsChoices = "quantized|dequantized|nf4|both";
inline constexpr std::string_view kWeightsHelp = "Keep packed weights as stored, expand them to BF16, or pack the "
                                                 "linears of a dense model to NF4 at load; load also "
                                                 "takes both of the first two, one after the other";

/// The packed format that a value of one of these options names; Dense when it names none.
kernels::WeightFormat formatNamed(std::string_view name);

} // namespace vitrine::engine
