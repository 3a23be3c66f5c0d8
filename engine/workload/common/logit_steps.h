// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "kernels/core/device_traits.h"

namespace vitrine::engine {

/// Tokens of one step that gives a row of logits (vocab) for each of them: those of a usual prefill step
/// (prefillChunk() for `asked`), but no more than 256 MiB of float32 logits hold.
std::int64_t logitStepTokens(const kernels::DeviceTraits& traits, std::int64_t asked, const ModelConfig& config);

} // namespace vitrine::engine
