// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a packed weight lies in a checkpoint: which tensors it consists of, which bytes of them are damaged, and random
// bytes for models without a checkpoint. The rest of the engine asks here and knows no format. Stateless; safe from any
// thread.

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
    std::string name; ///< in the checkpoint: that of the weight and an ending
    kernels::DType dtype = kernels::DType::None;
    std::vector<std::int64_t> shape;
};

/// The tensors of the weight `name` of `shape` (..., out, in), in checkpoint order. REQUIRES a packed format, and `in`
/// a multiple of its quantization group.
std::vector<StoredTensor> storedTensors(kernels::WeightFormat format, const std::string& name,
                                        std::span<const std::int64_t> shape);

/// The format that a quantization_config calls by this "quant_method"; none when it is not known.
std::optional<kernels::WeightFormat> formatOfMethod(std::string_view method);

/// How the weight `name` is stored where `has` says which tensors there are; none when there is no such weight.
std::optional<kernels::WeightFormat> formatInFile(const std::string& name,
                                                  const std::function<bool(const std::string&)>& has);

/// Random bytes of one tensor of a packed weight. A deviation of 0: every byte is `center`; else the bytes are uniform.
struct RandomBytes {
    float center = 0;
    float deviation = 1;
};

/// Gives the weight the deviation 1 / sqrt(in). `shape` is that of the stored tensor.
RandomBytes randomBytes(kernels::WeightFormat format, kernels::WeightField field, std::span<const std::int64_t> shape);

/// Throws BadInput "NAME: what" where `bytes` of a stored tensor hold what is no number and would poison every token.
/// `first` is the place in the tensor of the first byte given. Dense tensors are not looked at.
void checkStoredBytes(kernels::WeightFormat format, kernels::WeightField field, std::span<const std::uint8_t> bytes,
                      const std::function<std::string()>& name, std::uint64_t first);

/// Help of the option that keeps packed weights as they are or expands them.
inline constexpr std::string_view kKeepPackedHelp =
    "Keep MXFP4 weights as stored or expand them to BF16 at load; load also takes both, one after the other";

} // namespace vitrine::engine
