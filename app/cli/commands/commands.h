// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The commands of `vitrine`: each add function makes one subcommand and lies in a file of its name in this folder.

#include "app/cli/common/command.h"

namespace vitrine::app {

void addDoctor(CLI::App& app, CommandLine& line);
void addRun(CLI::App& app, CommandLine& line);
void addSweep(CLI::App& app, CommandLine& line);
void addTokenize(CLI::App& app, CommandLine& line);
void addLogits(CLI::App& app, CommandLine& line);
void addGenerate(CLI::App& app, CommandLine& line);
void addBatch(CLI::App& app, CommandLine& line);
void addFinetune(CLI::App& app, CommandLine& line);
void addRl(CLI::App& app, CommandLine& line);
void addScore(CLI::App& app, CommandLine& line);
void addData(CLI::App& app, CommandLine& line);
void addServe(CLI::App& app, CommandLine& line);
void addLoad(CLI::App& app, CommandLine& line);
void addSynthesize(CLI::App& app, CommandLine& line);
void addConvert(CLI::App& app, CommandLine& line);
void addPrecision(CLI::App& app, CommandLine& line);
void addPlan(CLI::App& app, CommandLine& line);
void addBench(CLI::App& app, CommandLine& line);
void addSession(CLI::App& app, CommandLine& line);
void addKernels(CLI::App& app, CommandLine& line);
void addMask(CLI::App& app, CommandLine& line);
void addAttention(CLI::App& app, CommandLine& line);
void addWorker(CLI::App& app, CommandLine& line);
void addCompletion(CLI::App& app, CommandLine& line);

} // namespace vitrine::app
