// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How files store packed weights, as a table: a scheme knows the tensors of a weight, what a quantization_config says
// of it, and how the bytes of a file become the bytes that kernels read. The rest of the engine asks these functions
// and knows no scheme. They have no state and may be called on any thread.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/quant/packing.h"
#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// One tensor of a packed weight: in a file, and in memory.
struct StoredTensor {
    kernels::WeightField field = kernels::WeightField::Data;
    std::string name;                            ///< in the file
    kernels::DType dtype = kernels::DType::None; ///< BF16 stands for F32, BF16 or F16, whichever the file has
    std::vector<std::int64_t> shape;
    kernels::DType memoryType = kernels::DType::None; ///< None: the type of the file
    kernels::Shape memoryShape;
    bool converts = false; ///< the bytes in memory are others than those of the file: toMemory makes them
};

/// A small tensor as it lies in the file.
struct SideTensor {
    std::string name; ///< "FILE: TENSOR"; of one that is made only TENSOR
    kernels::DType dtype = kernels::DType::None;
    std::vector<std::uint8_t> bytes;
};

/// The tensors of a checkpoint, as schemes look at them.
struct TensorLookup {
    std::function<bool(const std::string& name)> has;
    std::function<std::vector<std::int64_t>(const std::string& name)> shape; ///< of a tensor that is there
    /// Throws BadInput for one that is missing or larger than a side tensor may be.
    std::function<SideTensor(const std::string& name)> read;
    std::function<kernels::DType(const std::string& name)> dtype; ///< of a tensor that is there
    /// The first bytes of a tensor that is there, at most `bytes` of them.
    std::function<SideTensor(const std::string& name, std::uint64_t bytes)> begin;
    /// Takes what a scheme found and a person should know, such as a tensor that contradicts the config. The reader
    /// says equal texts once.
    std::function<void(const std::string& what)> remark;
};

/// What a quantization_config says. Throws Unsupported and BadInput "FILE: quantization_config.FIELD: what". `file` is
/// the name for errors, `path` where the object is in it: empty when it is the whole file.
Quantization parseQuantization(const nlohmann::json& quantization, const std::string& file,
                               const std::string& path = "quantization_config.");

/// The method of a file of its own that names none: AutoGPTQ and AutoAWQ write such, with different fields.
std::string impliedMethod(const nlohmann::json& quantization);

/// The quantization_config of a model whose weights are packed so.
nlohmann::json quantizationConfig(const Quantization& quantization);

/// The packing of the weight NAME of `shape` (..., out, in) in a checkpoint, nothing when it is dense or not there.
/// `declared` is what config.json says, or null. Reads the side tensors of the weight, and throws BadInput "FILE:
/// TENSOR: what" and Unsupported when they are damaged or do not fit the weight.
std::optional<WeightPacking> packingInFile(const std::string& name, std::span<const std::int64_t> shape,
                                           const Quantization* declared, const TensorLookup& files);

/// The tensors of the weight `name` of `shape` (..., out, in), in checkpoint order. Throws Unsupported "NAME: what" for
/// shapes that the scheme or the format cannot hold.
std::vector<StoredTensor> storedTensors(const WeightPacking& packing, const std::string& name,
                                        std::span<const std::int64_t> shape);

/// The bytes in memory of a tensor that `converts`, from all of its bytes in the file. Sizes are those of the shapes.
void toMemory(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> stored,
              std::span<std::uint8_t> memory);

/// The reverse: the bytes in the file of a tensor that `converts`, from all of its bytes in memory.
void toStored(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> memory,
              std::span<std::uint8_t> stored);

/// Names of the tensors beside the weight that hold neither elements nor what unpacks them.
std::vector<std::string> sideTensorNames(const WeightPacking& packing, const std::string& weight);

/// Their contents, in that order. Sizes do not depend on `packing.scaleOffset`, so that a file can be laid out before
/// anything is packed.
std::vector<SideTensor> makeSideTensors(const WeightPacking& packing, const std::string& weight,
                                        std::span<const std::int64_t> shape);

/// What a random tensor of a packed weight is filled with. With a deviation of 0 every element is `center`, otherwise
/// bytes are uniform but for the bits of `center`, which are clear, and floats are normal around the center.
struct RandomFill {
    float center = 0;
    float deviation = 1;
};

/// The fill that gives a weight with `in` inputs the deviation 1 / sqrt(in).
RandomFill randomFill(const WeightPacking& packing, kernels::WeightField field, std::int64_t in);

/// Checks `bytes` in the memory of a tensor, which begin at byte `first` of it. Throws BadInput "NAME: what" when they
/// stand for values that are not numbers: one of these would spoil every token. `bytes` are whole elements of `dtype`.
void checkStoredBytes(const WeightPacking& packing, kernels::WeightField field, kernels::DType dtype,
                      std::span<const std::uint8_t> bytes, const std::function<std::string()>& name,
                      std::uint64_t first);

/// Checks the order of a weight with `in` inputs in the same way: a group that is not there would be read beyond the
/// scales. Other fields pass.
void checkStoredOrder(const WeightPacking& packing, kernels::WeightField field, std::int64_t in,
                      std::span<const std::uint8_t> bytes, const std::function<std::string()>& name,
                      std::uint64_t first);

/// The methods that config.json may name, for a sentence: "mxfp4, bitsandbytes, compressed-tensors".
std::string quantizationMethods();

} // namespace vitrine::engine
