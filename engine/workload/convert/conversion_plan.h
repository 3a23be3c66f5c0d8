// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which weights of a model a conversion packs, and what its config says then.

#include <string>
#include <vector>

#include "engine/workload/convert/model_converter.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

struct ConversionPlan {
    ModelConfig config;       ///< of the new model: packings are what its files will have
    std::string configText;   ///< config.json
    bool convertsAll = false; ///< dense tensors become BF16 too
};

/// Throws BadInput "TENSOR: what to do" for weights whose shape the format cannot hold, and Unsupported when it packs
/// no weight of the model.
ConversionPlan planConversion(const ModelSource& source, const ConversionRules& rules);

/// Throws BadInput "NAME: ignore: what" for a pattern of the option ignore that can mean no module.
void checkIgnored(const Experiment& experiment, const std::string& name);
/// Warns once of each pattern that no tensor of the model has the name of: its author meant another.
void warnOfIgnored(const ModelSource& source, const std::vector<std::string>& patterns);

} // namespace vitrine::engine
