// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which process writes a run, and whether it still lives.

#include <cstdint>
#include <string>

namespace vitrine::sessions {

struct Owner {
    std::string machine; ///< boot id and process-id namespace: process ids mean something only within both
    std::int64_t pid = 0;
    std::int64_t start =
        0; ///< clock ticks from boot to the process's start: distinguishes the owner from a process that reuses its id
};

/// This process.
Owner thisProcess();

/// A process of this boot is looked up in /proc, so a late heartbeat alone never counts as death. One of another
/// machine (or of a boot before this one) counts as gone when its last heartbeat is over a minute old.
bool ownerIsGone(const Owner& owner, std::int64_t heartbeatMs, std::int64_t nowMs);

} // namespace vitrine::sessions
