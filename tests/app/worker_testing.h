// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Worker processes as tests start and find them.

#include <chrono>
#include <fstream>
#include <string>
#include <sys/types.h>
#include <thread>
#include <unistd.h>

namespace vitrine::test {

inline const std::string kWorkerProgram = VITRINE_BINARY_DIR "/app/vitrine";

/// The child of this thread's process whose name is vitrine; -1 when none appears within seconds.
inline pid_t workerPid() {
    for (int attempt = 0; attempt < 600; ++attempt) {
        std::ifstream children("/proc/self/task/" + std::to_string(::gettid()) + "/children");
        pid_t pid = 0;
        while (children >> pid) {
            std::string name;
            std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
            if (name == "vitrine") {
                return pid;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
}

} // namespace vitrine::test
