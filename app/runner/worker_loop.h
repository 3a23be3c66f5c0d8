// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inside of `vitrine worker`: runs experiments that come as JSON lines and answers with the messages of run_host.h.
//
// Lines in: {"type": "run", "experiment": {...}, "session": "FILE"} | {"type": "stop"} | {"type": "quit"}.
// Lines out: the messages of a run; {"type": "refused", "kind", "error"} for a run that could not start.
// The end of the input means that the owner is gone: the run is stopped and saved, and the worker ends.

namespace vitrine::app {

/// Serves until it is told to quit, its owner is gone, or a run met a device fault (CUDA asks for a new process then).
/// Returns the program's exit code: 0, or 1 after a device fault.
int serveRuns(int in, int out);

} // namespace vitrine::app
