// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which layers of a model do the same on other numbers.

#include <span>
#include <vector>

#include "engine/model/decoder_layer.h"

namespace vitrine::engine {

/// The number of each layer's kind. Layers of a kind have weights and adapters of the same shapes and types, and the
/// same attention, so that their ops allocate and cost the same.
std::vector<int> layerKinds(std::span<const DecoderLayer> layers);

} // namespace vitrine::engine
