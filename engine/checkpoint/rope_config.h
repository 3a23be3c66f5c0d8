// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rotary embedding's part of config.json: rope_theta and rope_scaling (v4), or rope_parameters (v5).

#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

/// Reads the RoPE fields of a config whose maxPositions and headDim are already in `config`. `defaults` is what the
/// family's class takes when the file says nothing. Throws BadInput or Unsupported naming the field.
RopeConfig parseRope(ConfigReader& reader, const ModelConfig& config, const RopeConfig& defaults);

/// YaRN's factor of attention scores (Peng and others 2023, equation 22, with a coefficient of mscale / 10).
double yarnScale(double factor, double mscale);

} // namespace vitrine::engine
