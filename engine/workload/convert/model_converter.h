// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes a model with its weights in another format, and says what that costs in accuracy.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/shards.h"
#include "engine/quant/rounding_error.h"

namespace vitrine::engine {

struct ConversionRules {
    std::optional<Quantization> quantization; ///< nothing: all weights become dense BF16
    std::vector<std::string> ignored;         ///< modules that stay dense (module_pattern.h)
    /// The factor of the inputs of a weight of a layer (compensated_rounding.h), null where there were none. Asked in
    /// the order of the layers. Null: weights are rounded to the nearest.
    std::function<const std::vector<float>*(std::int32_t layer, const std::string& weight)> factorOf;
};

/// What became of one weight that may be packed.
struct ConvertedWeight {
    std::string name;
    std::vector<std::int64_t> shape; ///< (out, in), or (experts, out, in)
    ModelPart part = ModelPart::Attention;
    kernels::WeightFormat before = kernels::WeightFormat::Dense;
    kernels::WeightFormat after = kernels::WeightFormat::Dense;
    std::uint64_t bytesBefore = 0, bytesAfter = 0;
    /// What the values of the new files differ from those of the old ones. No values: the bytes were copied.
    RoundingError error;
};

struct ConvertedModel {
    std::vector<ConvertedWeight> weights; ///< in the order of the files
    std::uint64_t bytesRead = 0;          ///< of all tensors
    std::uint64_t bytes = 0;              ///< of all files that were written
    std::vector<std::string> files;       ///< names in the folder
};

/// Writes the model to a new folder. Embeddings, heads, routers, norms and biases keep their values. Each matrix is
/// read, packed and written before the next one, so host memory holds a few of them. The same model and rules give the
/// same bytes. When it fails or is stopped, what was written is removed; config.json, which makes a folder a model, is
/// written last. Throws BadInput "TENSOR: what", Unsupported for a format that the model's family has no layout for,
/// Cancelled. `progress` may be null.
ConvertedModel convertModel(const ModelSource& source, const ConversionRules& rules, const std::string& folder,
                            base::ThreadPool& pool, base::ProgressSink* progress, const base::StopToken& stop,
                            std::uint64_t shardBytes = kShardBytes);

} // namespace vitrine::engine
