// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Random weights for models without a checkpoint, in memory or written as a Hugging Face checkpoint.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/shards.h"

namespace vitrine::engine {

/// How a tensor of a synthetic model is filled, in the words of kernels::FillRandom: normal with `deviation` around
/// `center` for floats; U8 with a deviation of 0 is the constant `center`, other U8 uniform bytes.
/// Deviations are 1 / sqrt(fan in), so that the logits spread about 1.
struct RandomRule {
    float center = 0;
    float deviation = 1;
};
RandomRule randomRule(const ModelConfig& config, const TensorSpec& spec);

/// Fills `data` (bytesOf(spec) bytes) with the numbers of `stream`: the tensor's place in expectedTensors, so that a
/// model in memory and one written to files are equal.
using FillTensor =
    std::function<void(const TensorSpec& spec, const RandomRule& rule, std::uint32_t stream, void* data)>;

struct SynthesizedFiles {
    std::uint64_t bytes = 0;        ///< of all files
    std::vector<std::string> files; ///< names in the folder, weights first
};

/// Writes the model as config.json, generation_config.json and safetensors files of at most `shardBytes` each (one
/// tensor at least; an index when there are several). Makes the folder; REQUIRES that it holds no model yet. Throws
/// BadInput when it cannot be written, Cancelled when stopped (files that were complete stay).
SynthesizedFiles synthesizeCheckpoint(const ModelSource& source, const std::string& folder, const FillTensor& fill,
                                      base::ProgressSink* progress, const base::StopToken& stop,
                                      std::uint64_t shardBytes = kShardBytes);

} // namespace vitrine::engine
