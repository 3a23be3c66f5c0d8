// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Worker processes as tests start and find them.

#include <fstream>
#include <string>
#include <sys/types.h>
#include <unistd.h>

#include "tests/base/eventually.h"
#include "tests/fixture_paths.h"

namespace vitrine::test {

inline const std::string kWorkerProgram = vitrineProgram();

/// The child of a thread (this one, or the first one of a program) whose name is vitrine; -1 when none appears within a
/// minute.
inline pid_t workerPid(pid_t parent = ::gettid()) {
    pid_t found = -1;
    eventually([&found, thread = std::to_string(parent)] {
        std::ifstream children("/proc/" + thread + "/task/" + thread + "/children");
        for (pid_t pid = 0; found < 0 && children >> pid;) {
            std::string name;
            std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
            found = name == "vitrine" ? pid : -1;
        }
        return found >= 0;
    });
    return found;
}

} // namespace vitrine::test
