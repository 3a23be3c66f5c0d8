// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine worker: runs for the desktop program, apart from it, so that a device fault ends this process alone.

#include <chrono>
#include <cstdint>
#include <memory>
#include <unistd.h>

#include "app/cli/commands/commands.h"
#include "app/runner/host/run_host.h"
#include "app/runner/host/worker_loop.h"

namespace vitrine::app {

void addWorker(CLI::App& app, CommandLine& line) {
    CLI::App* command =
        addCommand(app, "worker", "Serve runs over standard input and output (the desktop program starts it)",
                   R"(echo '{"type": "run", "experiment": {...}, "session": "runs.vitrine"}' | vitrine worker)");
    const auto keep = std::make_shared<std::int64_t>(RunHost::kKeepIdle.count());
    command
        ->add_option("--keep", *keep,
                     "Seconds without a run after which weights kept for the next run are given back; 0 keeps none")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{86400}))
        ->capture_default_str();
    command->callback([&line, keep] {
        line.action = [keep] { return serveRuns(STDIN_FILENO, STDOUT_FILENO, std::chrono::seconds(*keep)); };
    });
}

} // namespace vitrine::app
