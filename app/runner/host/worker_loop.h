// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inside of `vitrine worker`: runs experiments that come as JSON lines and answers with the messages of run_host.h.
//
// Lines in: {"type": "run", "experiment": {...}, "session": "FILE"} | {"type": "stop"} | {"type": "quit"} |
// {"type": "save"}: a checkpoint after the present step |
// {"type": "release"}: gives back what is kept for the next run.
// Lines out: the messages of a run; {"type": "refused", "kind", "error"} for a run that could not start.
// The end of the input means that the owner is gone: the run is stopped and saved, and the worker ends.

#include <chrono>

namespace vitrine::app {

/// Serves until it gets the message to quit, its owner is gone, or a run met a device fault (CUDA asks for a new
/// process then). A run leaves its weights and the device's context to the next; without a run for `keepIdle` they are
/// given back (0: nothing is kept). Returns the program's exit code: 0, or 1 after a device fault.
int serveRuns(int in, int out, std::chrono::seconds keepIdle);

} // namespace vitrine::app
