// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"

namespace vitrine::engine {

AtomicFile::AtomicFile(const std::string& path) : path_(path), temporary_(fmt::format("{}.part-{}", path, ::getpid())) {
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) {
        fail("creating");
    }
}

AtomicFile::~AtomicFile() {
    if (fd_ >= 0) {
        ::close(fd_);
        ::unlink(temporary_.c_str());
    }
}

void AtomicFile::fail(const char* what) const {
    throw base::BadInput(fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

void AtomicFile::write(const void* data, std::uint64_t bytes) {
    const auto* from = static_cast<const char*>(data);
    const std::uint64_t all = bytes;
    while (bytes > 0) {
        const ssize_t done = ::write(fd_, from, static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 1U << 30)));
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            fail("writing");
        }
        from += done;
        bytes -= static_cast<std::uint64_t>(done);
    }
    constexpr std::uint64_t kWorthSending = std::uint64_t{1} << 20;
    if (all >= kWorthSending) {
        // On its way to the disk now, so that finish() has less to wait for; a refusal does no harm.
        ::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

void AtomicFile::finish() {
    if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
        fail("finishing");
    }
    ::close(fd_);
    fd_ = -1;
    // The name itself is safe only when the folder is synced, too; a file system that cannot do this is no error.
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const int folderFd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folderFd >= 0) {
        ::fsync(folderFd);
        ::close(folderFd);
    }
}

void writeTextFile(const std::string& path, std::string_view text) {
    AtomicFile file(path);
    file.write(text.data(), text.size());
    file.finish();
}

} // namespace vitrine::engine
