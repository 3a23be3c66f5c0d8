// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>
#include <vector>

#include "engine/checkpoint/folder_lock.h"

namespace vitrine::engine {

class Experiment;

/// Checks what the experiment will write against what it reads, against what is there, and against `sessionFile`
/// (empty: none), by the outputs that its row of the workload table names. Changes nothing. Throws BadInput.
void checkOutputs(const Experiment& experiment, const std::string& sessionFile = {});

/// The folders that the experiment writes into, which belong to it as long as the locks live. Throws BadInput where
/// another run writes into one.
std::vector<FolderLock> lockOutputs(const Experiment& experiment);

} // namespace vitrine::engine
