// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/file_name.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include "base/error.h"

namespace vitrine::sessions {

namespace {

/// Held while logs are removed and a name is given, so that no other process opens a file under that name in between.
class FolderLock {
public:
    explicit FolderLock(const std::string& folder)
        : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        // A program of another kind may hold it for long, and some file systems have no such locks: what remains then
        // is a chance of microseconds.
        constexpr int kTries = 100;
        for (int attempt = 0; attempt < kTries && ::flock(folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
             ++attempt) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    ~FolderLock() {
        if (folder_ >= 0) {
            ::close(folder_);
        }
    }
    FolderLock(const FolderLock&) = delete; // owns the lock
    FolderLock& operator=(const FolderLock&) = delete;

private:
    const int folder_;
};

void removeLogsOf(const std::string& path) {
    for (const char* ending : {"-wal", "-shm", "-journal"}) {
        ::unlink((path + ending).c_str());
    }
}

bool isThere(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

} // namespace

std::string folderOf(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) {
        return ".";
    }
    return slash == 0 ? "/" : path.substr(0, slash);
}

void removeLogsOfGone(const std::string& path) {
    const FolderLock lock(folderOf(path));
    if (!isThere(path)) {
        removeLogsOf(path);
    }
}

bool takeName(const std::string& passing, const std::string& path, bool replace) {
    const FolderLock lock(folderOf(path));
    if (!replace && isThere(path)) {
        return false;
    }
    removeLogsOf(path);
    if (!replace && ::link(passing.c_str(), path.c_str()) == 0) {
        ::unlink(passing.c_str());
        return true;
    }
    if (!replace && errno == EEXIST) {
        return false;
    }
    // Some file systems have no hard links; there the last of two creators wins, before either wrote a run.
    if (::rename(passing.c_str(), path.c_str()) != 0) {
        throw base::Internal(std::strerror(errno));
    }
    return true;
}

} // namespace vitrine::sessions
