// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Parts of parseModelConfig: which layers slide, and the size of the whole model.

#include <cstdint>

#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

// Bounds that keep every product of sizes far inside 64 bits, and lists of tensors small.
inline constexpr std::int64_t kMaxDim = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxVocab = std::int64_t{1} << 22;
inline constexpr std::int64_t kMaxLayers = 1024;
inline constexpr std::int64_t kMaxPositions = std::int64_t{1} << 40;

/// Sets the window of every layer from sliding_window, layer_types and the family's own rules. `defaultWindow` is the
/// class default for a missing sliding_window, 0 for none.
void parseLayerWindows(ConfigReader& reader, std::int64_t defaultWindow, ModelConfig& config);

/// Throws unless all weights together have a size that some machine could hold. So later sums cannot overflow.
void checkWholeSize(ConfigReader& reader, const ModelConfig& config);

} // namespace vitrine::engine
