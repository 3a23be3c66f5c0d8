// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experiments that say how fast a device is: short runs of many kinds, whose ops' times price later plans.

#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "engine/workload/experiment/experiment.h"

namespace vitrine::app {

struct RateExperiment {
    std::string name; ///< "decode gpt-oss-20b, 8,192 tokens"
    engine::Experiment experiment;
};

/// Of a JSON array of {"name", "experiment"}; empty `file`: the series that ships
/// (resources/device-profiles/series/rates.json). Throws BadInput that names the file, the entry and the field.
std::vector<RateExperiment> readRateSeries(const std::string& file);

/// The same experiment with as many layers of its synthetic model as fit into `deviceBytes`: the given number, else
/// half of it, and so on. An op takes the same time whether its layer has one neighbour or forty. Nothing where two
/// layers do not fit. An experiment without such a model stays as it is. Plans for it; throws Cancelled.
std::optional<engine::Experiment> fittedToDevice(const engine::Experiment& experiment, std::uint64_t deviceBytes,
                                                 const base::StopToken& stop);

} // namespace vitrine::app
