// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/folder_lock.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <ranges>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".vitrine-lock";

/// Makes the folder and those above it. Returns the ones that were not there.
std::vector<std::string> makeFolders(std::string_view option, const std::string& folder) {
    std::vector<std::string> made;
    std::error_code error;
    fs::path path = fs::absolute(folder, error).lexically_normal();
    path = path.has_filename() ? path : path.parent_path();
    for (fs::path at = path; !at.empty() && !fs::exists(at, error) && !error; at = at.parent_path()) {
        made.insert(made.begin(), at.string());
    }
    fs::create_directories(path, error);
    if (error) {
        throw base::BadInput(
            fmt::format("{}: {} cannot be made: {}; name another folder", option, folder, error.message()));
    }
    return made;
}

bool isNamed(int fd, const std::string& path) {
    struct stat open{};
    struct stat named{};
    return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
           open.st_dev == named.st_dev;
}

} // namespace

FolderLock::FolderLock(std::string_view option, const std::string& folder)
    : option_(option), folder_(folder), file_((fs::path(folder) / kLockFile).string()) {
    take();
}

void FolderLock::take() {
    for (;;) {
        made_ = makeFolders(option_, folder_);
        fd_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd_ < 0 && errno == ENOENT) {
            continue; // another run that ended took the empty folder away
        }
        if (fd_ < 0) {
            throw base::BadInput(fmt::format("{}: {}: creating: {}; check the folder and its permissions", option_,
                                             file_, std::strerror(errno)));
        }
        if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
            if (isNamed(fd_, file_)) {
                return;
            }
            close(); // its last holder has removed the file
            continue;
        }
        const int reason = errno;
        if (reason == EINTR) {
            close();
            continue;
        }
        if (reason == EWOULDBLOCK) {
            close();
            throw base::BadInput(fmt::format(
                "{}: another run writes into {} now; wait until it ends, or name another folder", option_, folder_));
        }
        base::logWarning(fmt::format("{}: cannot be locked: {}; see that no other run writes into this folder", folder_,
                                     std::strerror(reason)));
        return;
    }
}

void FolderLock::renew() {
    if (file_.empty() || (fd_ >= 0 && isNamed(fd_, file_))) {
        return;
    }
    close();
    const std::vector<std::string> before = std::move(made_);
    take();
    // Folders of the first time that nobody removed are still this run's to clear away.
    made_.insert(made_.begin(), before.begin(), before.end());
    std::ranges::sort(made_, {}, &std::string::size);
    const auto twice = std::ranges::unique(made_);
    made_.erase(twice.begin(), twice.end());
}

void FolderLock::close() {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

FolderLock::~FolderLock() {
    if (file_.empty()) {
        return;
    }
    if (fd_ >= 0 && isNamed(fd_, file_)) {
        ::unlink(file_.c_str()); // while the lock is held: nobody else can have taken it
    }
    close();
    for (const std::string& folder : made_ | std::views::reverse) {
        ::rmdir(folder.c_str()); // it stays where something was written
    }
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : option_(std::move(other.option_)), folder_(std::move(other.folder_)), file_(std::exchange(other.file_, {})),
      made_(std::move(other.made_)), fd_(std::exchange(other.fd_, -1)) {}

bool isFolderFree(const std::string& folder) {
    const int fd = ::open((fs::path(folder) / kLockFile).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return true;
    }
    const bool busy = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(fd);
    return !busy;
}

} // namespace vitrine::engine
