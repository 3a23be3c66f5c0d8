// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where a GGUF file has a tensor that Hugging Face's files call by another name.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

struct GgufPlace {
    std::string tensor;
    /// A second tensor, whose rows stand between those of the first: up between gate.
    std::string interleaved;
    /// The matrix of a stack of experts; -1: the whole tensor.
    std::int64_t expert = -1;
    /// llama.cpp turns neighbouring rows of a head, Hugging Face's models turn rows that lie half a head apart. Models
    /// of llama have the rows of their queries and keys in the order of the first.
    bool neighbours = false;
};

/// Of a tensor of expectedTensors(config), or a weight of packableWeights(config). Throws Internal for another name.
GgufPlace ggufPlaceOf(std::string_view name, const ModelConfig& config);

} // namespace vitrine::engine
