// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine worker: runs for the desktop program, apart from it, so that a device fault ends this process alone.

#include <unistd.h>

#include "app/cli/commands.h"
#include "app/runner/worker_loop.h"

namespace vitrine::app {

void addWorker(CLI::App& app, CommandLine& line) {
    CLI::App* command =
        addCommand(app, "worker", "Serve runs over standard input and output (the desktop program starts it)",
                   R"(echo '{"type": "run", "experiment": {...}, "session": "runs.vitrine"}' | vitrine worker)");
    command->callback([&line] { line.action = [] { return serveRuns(STDIN_FILENO, STDOUT_FILENO); }; });
}

} // namespace vitrine::app
