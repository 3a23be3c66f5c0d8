// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tensor types of GGUF files (llama.cpp), and how their blocks become what kernels read. A block holds some
// neighbouring elements of a row with their scales. In memory codes and scales lie in tensors of their own, except
// where kernels read the blocks themselves. Functions have no state and may be called on any thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/quant/packing.h"
#include "kernels/core/dtype.h"

namespace vitrine::engine {

/// A type of tensors as the file names it by a number. Sizes are those of ggml.
struct GgufType {
    std::uint32_t number = 0;
    std::string_view name;
    std::int64_t elements = 1; ///< of a block
    std::int64_t bytes = 0;    ///< of a block
    /// Of plain floats: their type. None: blocks, or nothing that a model of ours has.
    kernels::DType floats = kernels::DType::None;
    /// What the blocks are in memory. Dense: they are not supported, or plain floats.
    kernels::WeightFormat format = kernels::WeightFormat::Dense;

    bool supported() const { return floats != kernels::DType::None || format != kernels::WeightFormat::Dense; }
};

/// Null for a number that no type has.
const GgufType* ggufType(std::uint32_t number);

/// Names of the supported types for a sentence: "F32, F16, Q4_0".
std::string ggufTypeNames();

/// What says that the weights of a model lie in a GGUF file: nothing is known before its tensors are looked at.
Quantization ggufQuantization();

/// How a weight of blocks is packed.
WeightPacking ggufPacking(const GgufType& type);

/// Writes what one field of the weight (Data, or Scales where there are such) holds for whole blocks, in their order.
/// `out` has the bytes of exactly these elements.
void unpackGguf(const GgufType& type, kernels::WeightField field, std::span<const std::uint8_t> blocks,
                std::span<std::uint8_t> out);

/// Elements of whole blocks, or of plain floats, as float32: to the last bit what the gguf package of Python makes.
void expandGguf(const GgufType& type, std::span<const std::uint8_t> blocks, float* out);

/// The first of the blocks whose scale is not a number, which would spoil every token.
std::optional<std::int64_t> damagedGgufBlock(const GgufType& type, std::span<const std::uint8_t> blocks);

} // namespace vitrine::engine
