// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/read_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"

namespace vitrine::engine {

ReadFile::ReadFile(const std::string& path)
    // Opening a pipe would wait for its writer; what is no regular file is refused below.
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) {
        throw base::BadInput(fmt::format("{}: opening: {}", path, std::strerror(errno)));
    }
    struct stat info{};
    if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(fd_);
        throw base::BadInput(path + ": opening: not a regular file");
    }
    bytes_ = static_cast<std::uint64_t>(info.st_size);
    identity_ = fmt::format("{} {}:{} {} {}.{:09} {}.{:09}", path, info.st_dev, info.st_ino, info.st_size,
                            info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

ReadFile::~ReadFile() {
    ::close(fd_);
    if (direct_ >= 0) {
        ::close(direct_);
    }
}

void ReadFile::read(std::uint64_t offset, void* out, std::uint64_t bytes) const {
    auto* to = static_cast<char*>(out);
    while (bytes > 0) {
        // One call returns 2 GiB at most.
        const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 30));
        const ssize_t got = ::pread(fd_, to, part, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            throw base::BadInput(fmt::format("{}: reading: {}", path_, std::strerror(errno)));
        }
        if (got == 0) {
            throw base::BadInput(path_ + ": reading: the file became shorter while it was open");
        }
        to += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::uint64_t>(got);
    }
}

double ReadFile::cachedShare() const {
    constexpr std::uint64_t kPlaces = 64;
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < kPlaces; ++i) {
        char byte = 0;
        iovec target{&byte, 1};
        const auto place = static_cast<off_t>(bytes_ / kPlaces * i + bytes_ / kPlaces / 2);
        if (::preadv2(fd_, &target, 1, place, RWF_NOWAIT) == 1) {
            ++found;
        } else if (errno != EAGAIN) {
            return 1;
        }
    }
    return static_cast<double>(found) / kPlaces;
}

const std::byte* ReadFile::readDirect(std::uint64_t offset, std::byte* buffer, std::uint64_t bytes,
                                      std::uint64_t alignment) const {
    std::call_once(directOnce_, [this] {
        // By the descriptor: the name may mean another file by now.
        const std::string same = fmt::format("/proc/self/fd/{}", fd_);
        direct_ = ::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    });
    const std::uint64_t first = offset / alignment * alignment;
    const std::uint64_t skipped = offset - first;
    const std::uint64_t wanted = (skipped + bytes + alignment - 1) / alignment * alignment;
    std::uint64_t done = 0;
    while (direct_ >= 0 && done < skipped + bytes) {
        const ssize_t got = ::pread(direct_, buffer + done, wanted - done, static_cast<off_t>(first + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        // What cannot be read so (another alignment, the file's last block) is read the common way.
        if (got <= 0 || got % static_cast<ssize_t>(alignment) != 0) {
            done += got > 0 ? static_cast<std::uint64_t>(got) : 0;
            break;
        }
        done += static_cast<std::uint64_t>(got);
    }
    if (done < skipped + bytes) {
        read(first + done, buffer + done, skipped + bytes - done);
    }
    return buffer + skipped;
}

} // namespace vitrine::engine
