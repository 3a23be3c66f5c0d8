// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows of the table of tasks, one source file each. What each one asks at which difficulty and how it gives credit
// stands at the top of that file.

#include "engine/rl/problems/task.h"

namespace vitrine::engine {

const Task& sumsTask();
const Task& sortingTask();
const Task& bracketsTask();
const Task& lettersTask();
const Task& formatTask();

} // namespace vitrine::engine
