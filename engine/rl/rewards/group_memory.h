// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <sys/types.h>

namespace vitrine::engine {

/// Resident bytes of each process group of this machine, added up over its processes: what they share counts for each.
/// Processes that go meanwhile are left out. Reads a small file per process; never throws for what it cannot read.
std::map<pid_t, std::uint64_t> residentByGroup();

/// What /proc/PID/stat says of a process.
struct ProcessMemory {
    pid_t group = 0;
    std::uint64_t pages = 0; ///< resident
};
/// Nothing where the text is none of it. The name of a program, which is in it, may hold anything.
std::optional<ProcessMemory> readProcessStat(std::string_view text);

} // namespace vitrine::engine
