// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What every workload that trains demands of its options.

#include <string>

namespace vitrine::engine {

class Experiment;

/// Adapter, quantization-aware training, chunks of the loss, output and merging. Throws BadInput "NAME: KEY: what".
void checkTraining(const Experiment& experiment, const std::string& name);

} // namespace vitrine::engine
