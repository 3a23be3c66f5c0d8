// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Part of parseModelConfig: models of the classes of DeepSeek-V3 and Kimi-K2, with latent attention, shared experts and
// routers that choose by groups.

#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/model_config.h"

namespace vitrine::engine {

/// Sets everything of the family but rope and the activation. Throws Unsupported for other routers, and BadInput for
/// groups that do not divide the experts or hold too few.
void parseDeepseekV3(ConfigReader& reader, ModelConfig& config);

/// Sets attentionScale, once config.rope is there: YaRN scales the scores by the square of its mscale_all_dim, as
/// transformers' class does.
void scaleLatentScores(ModelConfig& config);

} // namespace vitrine::engine
