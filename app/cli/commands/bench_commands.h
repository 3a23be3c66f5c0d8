// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The commands below `vitrine bench` that are no benchmark of the engine.

#include "app/cli/common/command.h"

namespace vitrine::app {

void addBenchRates(CLI::App& bench, CommandLine& line);

} // namespace vitrine::app
