// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Checkpoints whose linears are packed one by one: what config.json says of them, and the small tensors beside each
// weight that say how to unpack it. The functions have no state and may be called on any thread.

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/dtype.h"
#include "kernels/core/weight_view.h"

namespace vitrine::engine {

/// How the files of a model store its linears.
struct LinearPacking {
    kernels::WeightFormat format = kernels::WeightFormat::Dense;
    bool packedScales = false;
    /// What is added to unpacked scales, by the name of the weight. Weights that are not listed are dense.
    std::map<std::string, float, std::less<>> offsets;
};

/// What a quantization_config says, without the weights; nothing when its quant_method packs no linears. `file` is the
/// name for errors. Throws Unsupported and BadInput "FILE: quantization_config.FIELD: what".
std::optional<LinearPacking> parseLinearPacking(const nlohmann::json& quantization, const std::string& file);

/// A small tensor as it lies in the file.
struct SideTensor {
    std::string name; ///< "FILE: TENSOR"; of one that is made only TENSOR
    kernels::DType dtype = kernels::DType::None;
    std::vector<std::uint8_t> bytes;
};

/// The quantization_config of a model whose linears are packed so.
nlohmann::json linearQuantization(const LinearPacking& packing);

/// The format that packs linears one by one, with packed scales and no weights listed, if `format` is one; else
/// nothing.
std::optional<LinearPacking> packingOfLinears(kernels::WeightFormat format);

/// The contents of the side tensors of a weight of `shape` (out, in), in the order of sideTensorNames. Their sizes do
/// not depend on `scaleOffset`, so that a file can be laid out before anything is packed.
std::vector<SideTensor> makeSideTensors(const LinearPacking& packing, const std::string& weight,
                                        std::span<const std::int64_t> shape, float scaleOffset);

/// Names of the tensors beside the weight that hold neither elements nor scales.
std::vector<std::string> sideTensorNames(const LinearPacking& packing, const std::string& weight);

/// Reads the side tensors of a weight of `shape` (out, in) through `read`, which throws BadInput for a name that is not
/// there, and returns what is added to its unpacked scales. Throws BadInput "FILE: TENSOR: what" when they are damaged
/// or do not fit the weight, and Unsupported for sizes of groups that no kernel knows.
float readScaleOffset(const LinearPacking& packing, const std::string& weight, std::span<const std::int64_t> shape,
                      const std::function<SideTensor(const std::string& name)>& read);

} // namespace vitrine::engine
