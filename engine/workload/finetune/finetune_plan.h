// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The plan of a fine-tuning run: one step on Meta, and the search for the longest context.

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

void planFinetune(const Run& run);

} // namespace vitrine::engine
