// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>

namespace vitrine::engine {

class Experiment;

/// Checks what the experiment will write against what it reads, against what is there, and against `sessionFile`
/// (empty: none), by the outputs that its row of the workload table names. Changes nothing. Throws BadInput.
void checkOutputs(const Experiment& experiment, const std::string& sessionFile = {});

} // namespace vitrine::engine
