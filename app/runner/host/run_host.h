// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The boundary at which a run happens: an experiment goes in; progress and streamed text come out as JSON lines; events
// go into the session file. The command line, the GUI and tests start runs through it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"

namespace vitrine::engine {
class Experiment;
class RequestFeed;
} // namespace vitrine::engine

namespace vitrine::app {

/// How a run ended.
struct RunOutcome {
    enum class Status : std::uint8_t { Done, Failed, OutOfMemory, Cancelled };
    Status status = Status::Done;
    std::int64_t run = 0; ///< number in the session file, 0 without a session
    int exitCode = 0;
    base::ErrorKind errorKind = base::ErrorKind::Internal;
    std::string error;       ///< one sentence, empty when done
    std::string unsaved;     ///< one sentence when the session does not hold the run as it should; exitCode is not 0
    std::string metricsJson; ///< the fields of `--json`; partial when it did not end well
    std::uint64_t keptBytes = 0; ///< of weights that the host holds for the next run
};

/// Receives one JSON value a line: {"type": "progress", "what", "done", "total"} | {"type": "token", "request",
/// "index", "id", "text", "channel", "logprob", "top": [{"id", "logprob", "text"}], "time"} (nanoseconds since the
/// run's start) |
/// {"type": "metric", "name", "value"} | {"type": "started", "run"} | {"type": "ended", "status", "error",
/// "error_kind", "unsaved", "exit_code", "run", "metrics", "kept_bytes"} | {"type": "notice", "text"}: a sentence for
/// the user, of a worker that was lost or a session file that was deleted. Called on the run's thread, a notice also
/// inside start(). Of a workload that serves clients, only those get the tokens. A session keeps the tokens too, one
/// line each, as texts "tokens.000000", "tokens.000001", ... of 512 tokens. In this process a sink may throw: it hears
/// no more, and the run is stopped and ends saved with that failure.
using RunMessageSink = std::function<void(const nlohmann::json&)>;

class RunHost {
public:
    virtual ~RunHost() = default;

    /// Starts `experiment` on a thread of its own. `sessionFile` empty: nothing is kept. Throws BadInput, before
    /// anything starts, for a session file that cannot be had. One run at a time: throws Internal while one is running.
    virtual void start(const engine::Experiment& experiment, const std::string& sessionFile, RunMessageSink sink) = 0;
    /// Asks the run to stop; it ends soon, saved, with Status::Cancelled.
    virtual void stop() = 0;
    /// Asks a run that writes checkpoints to write one after its present step. Others ignore it.
    virtual void saveCheckpoint() = 0;
    virtual bool running() const = 0;
    /// Waits for the end. Returns the outcome of the last run.
    virtual RunOutcome wait() = 0;

    /// Gives back what is held for the next run: weights, compiled kernels, the device's context. While a run is going
    /// on it happens at the run's end.
    virtual void release() = 0;

    /// Runs inside this process (CPU and Meta; the command line). `keeps`: a run leaves weights and CUDA context to the
    /// next, as WorkloadSinks::kept says. `feed`: where the requests of a workload that serves clients come from; it
    /// must outlive the host.
    static std::unique_ptr<RunHost> inProcess(bool keeps = false, engine::RequestFeed* feed = nullptr);

    /// How long a worker holds weights that no run uses.
    static constexpr std::chrono::seconds kKeepIdle{600};
    /// Runs inside a child process, `program worker`, which serves one run after the other and keeps weights between
    /// them. It is started anew by the next run when it is gone: after a device fault, a crash or the system's
    /// out-of-memory killer. Nothing of this process is touched then. `keepIdle` 0: nothing is kept.
    static std::unique_ptr<RunHost> inWorker(const std::string& program, std::chrono::seconds keepIdle = kKeepIdle);
};

} // namespace vitrine::app
