// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a session keeps of a run beside its events.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::sessions {

using RunId = std::int64_t;

enum class RunStatus : std::uint8_t { Running, Done, Failed, OutOfMemory, Cancelled, Interrupted };
std::string_view runStatusName(RunStatus status); ///< "running", "done", "out_of_memory", ...
/// The status of a name; Interrupted for a name of a later format.
RunStatus runStatusFromName(std::string_view name);

/// Everything of a run but its events.
struct RunInfo {
    RunId id = 0;
    std::string name;     ///< shown in lists; the user may change it
    std::string workload; ///< "generate"
    std::string specJson; ///< the experiment
    /// Not in the file: the experiment as the file has it, where a reader's specJson names files by where they are now.
    std::string storedSpecJson;
    std::string environmentJson; ///< program version, machine, backend, device traits, time base
    std::string metricsJson;     ///< flat or nested results; {} while running
    std::string error;           ///< one sentence, empty when it ended well
    RunStatus status = RunStatus::Running;
    std::int64_t startedMs = 0; ///< Unix milliseconds
    std::int64_t endedMs = 0;   ///< 0 while running
    std::uint64_t lostRecords = 0;
    std::vector<std::string> tags;
    std::string note;
    std::string sweep; ///< the group of runs that it belongs to; empty: none
};

/// A text that belongs to a run: "prompt", "output", "log".
struct RunText {
    std::string kind;
    std::string body;
};

struct TimelineNote {
    std::int64_t id = 0;
    std::int64_t timeBegin = 0, timeEnd = 0; ///< run time, ns
    std::string body;
};

} // namespace vitrine::sessions
