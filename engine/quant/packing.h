// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How one weight is packed, in memory and in the files of a model. Every weight has a packing of its own: a model may
// store its experts as INT4, its attention as BF16 and one layer as INT8.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/dtype.h"
#include "kernels/core/weight_view.h"
#include "kernels/formats/integer_rounding.h"

namespace vitrine::engine {

/// How files store packed weights: names, shapes and the order of codes in their tensors. A row of
/// engine/quant/storage_scheme.cpp each.
enum class StorageScheme : std::uint8_t {
    GptOss,        ///< stacks of MXFP4 experts: NAME_blocks, NAME_scales
    BitsAndBytes,  ///< NF4 linears
    PackQuantized, ///< integers of compressed-tensors
    Gptq,          ///< integers, packed along the inputs
    Awq,           ///< integers of the GEMM version, packed along the outputs
    Fp8,           ///< E4M3 with a scale for each block, row or tensor
    Gguf,          ///< blocks of a GGUF file, as engine/quant/gguf.h takes them apart
};

/// Of no scheme: the scale covers all inputs of a row.
inline constexpr std::int64_t kWholeRow = -1;

struct WeightPacking {
    StorageScheme scheme = StorageScheme::GptOss;
    kernels::WeightFormat format = kernels::WeightFormat::Dense;
    std::int64_t group = 0;     ///< inputs that share a scale, or kWholeRow; 0: what the format says
    std::int64_t rowGroup = 1;  ///< outputs that share a row of scales, or kWholeRow: all
    bool zeros = false;         ///< each group has a zero
    bool ordered = false;       ///< a tensor says the group of each input
    bool packedScales = false;  ///< scales are packed too
    bool zerosMinusOne = false; ///< files hold zeros less one (GPTQ version 1)
    bool middleZeros = false;   ///< the config says that all zeros are the middle code (GPTQ)
    /// The ending of the tensor of scales, where a scheme has several.
    std::string_view scalesName;
    float scaleOffset = 0; ///< see kernels::WeightView
    /// Of NF4: the type that files give the tensor of packed bytes. Trainers that shard models take that of the model.
    kernels::DType storageType = kernels::DType::U8;
    /// Of symmetric integers: how codes follow from values.
    kernels::IntegerRule rule = kernels::IntegerRule::CompressedTensors;

    bool operator==(const WeightPacking&) const = default;
};

/// Inputs and outputs that share a scale in a weight of that shape.
std::int64_t groupOf(const WeightPacking& packing, std::int64_t in);
std::int64_t rowGroupOf(const WeightPacking& packing, std::int64_t out);

/// Sets what a view of a packed weight of `shape` (..., out, in) says beside its tensors. `rows` are the outputs that a
/// scale for all of them covers: those of one weight of a stack.
void describePacked(const WeightPacking& packing, const kernels::Shape& shape, std::int64_t rows,
                    kernels::WeightView& view);

/// What a quantization_config says of a whole model.
struct Quantization {
    WeightPacking packing;            ///< of every weight that is packed
    std::vector<std::string> ignored; ///< modules that stay dense: names, parts of names, or "re:PATTERN"
    bool allLinears = true;           ///< false: experts only
    bool symmetric = false;           ///< the zeros that files hold are all the middle code
    std::vector<std::string> unread;  ///< fields that are there and that nothing reads, with their full names

    /// Whether the weight NAME, or its module without ".weight", is packed by these rules.
    bool packs(std::string_view weight) const;
};

/// "model.layers.0.mlp.up_proj" of "model.layers.0.mlp.up_proj.weight"; other names as they are.
std::string_view moduleOf(std::string_view weight);

/// The packing of stacks of experts that files of gpt_oss have, and that of linears that are packed at load or when an
/// adapter is merged.
WeightPacking stackPacking();
WeightPacking linearPacking();

/// Whether experts that are packed so, each by itself, can become one stack.
bool canStack(const WeightPacking& packing);

} // namespace vitrine::engine
