// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which weights of a model a conversion packs, and what its config says then.

#include <string>

#include "engine/workload/convert/model_converter.h"

namespace vitrine::engine {

struct ConversionPlan {
    ModelConfig config;       ///< of the new model: packings are what its files will have
    std::string configText;   ///< config.json
    bool convertsAll = false; ///< dense tensors become BF16 too
};

/// Throws BadInput "TENSOR: what to do" for weights whose shape the format cannot hold, and Unsupported when it packs
/// no weight of the model.
ConversionPlan planConversion(const ModelSource& source, const ConversionRules& rules);

} // namespace vitrine::engine
