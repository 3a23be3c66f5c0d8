// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The boundary at which a run happens: an experiment goes in; progress and streamed text come out as JSON lines; events
// go into the session file. The command line, the GUI and tests start runs through it.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"

namespace vitrine::app {

/// How a run ended.
struct RunOutcome {
    enum class Status : std::uint8_t { Done, Failed, OutOfMemory, Cancelled };
    Status status = Status::Done;
    std::int64_t run = 0; ///< number in the session file, 0 without a session
    int exitCode = 0;
    base::ErrorKind errorKind = base::ErrorKind::Internal;
    std::string error;       ///< one sentence, empty when done
    std::string metricsJson; ///< the fields of `--json`; partial when it did not end well
};

/// Receives one JSON value a line: {"type": "progress", "what", "done", "total"} | {"type": "token", "request", "index",
/// "id", "text", "channel", "logprob", "top": [{"id", "logprob", "text"}], "time"} (nanoseconds since the run's start) |
/// {"type": "metric", "name", "value"} | {"type": "started", "run"} | {"type": "ended", "status", "error", "error_kind",
/// "exit_code", "run", "metrics"}. Called on the run's thread.
/// A session keeps the tokens too, one line each, as texts "tokens.000000", "tokens.000001", ... of 512 tokens.
using RunMessageSink = std::function<void(const nlohmann::json&)>;

class RunHost {
public:
    virtual ~RunHost() = default;

    /// Starts `experiment` on a thread of its own. `sessionFile` empty: nothing is kept. Throws BadInput before
    /// anything starts. One run at a time: throws Internal while one is running.
    virtual void start(const nlohmann::json& experiment, const std::string& sessionFile, RunMessageSink sink) = 0;
    /// Asks the run to stop; it ends soon, saved, with Status::Cancelled.
    virtual void stop() = 0;
    virtual bool running() const = 0;
    /// Waits for the end. Returns the outcome of the last run.
    virtual RunOutcome wait() = 0;

    /// Runs inside this process (CPU and Meta; the command line).
    static std::unique_ptr<RunHost> inProcess();
    /// Runs inside a child process, `program worker`, which serves one run after the other and is started anew when it is
    /// gone: after a device fault, a crash or the system's out-of-memory killer. Nothing of this process is touched then.
    static std::unique_ptr<RunHost> inWorker(const std::string& program);
};

} // namespace vitrine::app
