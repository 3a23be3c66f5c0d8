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
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/output_file.h"

namespace vitrine::engine {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view kPartMark = ".part-";
} // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(base::outputTarget(path)) {
    if (base::isWrittenInPlace(path)) {
        fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    } else {
        temporary_ = fmt::format("{}{}{}", target_, kPartMark, ::getpid());
        fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    }
    if (fd_ < 0) {
        throw base::BadInput(fmt::format("{}: creating: {}", path_, std::strerror(errno)));
    }
}

AtomicFile::~AtomicFile() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
    if (fd_ >= 0 && !temporary_.empty()) {
        ::unlink(temporary_.c_str());
    }
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
            base::failWriting(path_, errno);
        }
        from += done;
        bytes -= static_cast<std::uint64_t>(done);
    }
    constexpr std::uint64_t kWorthSending = std::uint64_t{1} << 20;
    if (all >= kWorthSending && !temporary_.empty()) {
        // On its way to the disk now, so that finish() has less to wait for; a refusal does no harm.
        ::sync_file_range(fd_, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

void AtomicFile::finish() {
    if (temporary_.empty()) {
        ::close(std::exchange(fd_, -1));
        return;
    }
    if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
        base::failWriting(path_, errno);
    }
    ::close(std::exchange(fd_, -1));
    // The name itself is safe only when the folder is synced, too; a file system that cannot do this is no error.
    const std::string folder = std::filesystem::path(target_).parent_path().string();
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

void removeParts(const std::string& folder, const std::function<bool(const std::string& name)>& isOwn) {
    std::vector<fs::path> left;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        const std::size_t mark = name.rfind(kPartMark);
        std::error_code none;
        if (mark != std::string::npos && mark + kPartMark.size() < name.size() &&
            name.find_first_not_of("0123456789", mark + kPartMark.size()) == std::string::npos &&
            fs::is_regular_file(it->symlink_status(none)) && isOwn(name.substr(0, mark))) {
            left.push_back(it->path());
        }
    }
    for (const fs::path& path : left) {
        fs::remove(path, error);
    }
}

void checkWritable(const std::string& path) {
    if (!base::isWrittenInPlace(path)) {
        const AtomicFile trial(path); // its other name goes with it
    } else if (::access(path.c_str(), W_OK) != 0) {
        throw base::BadInput(fmt::format("{}: writing: {}", path, std::strerror(errno)));
    }
}

bool isSameFile(const std::string& a, const std::string& b) {
    std::error_code none;
    const auto place = [&none](const std::string& path) {
        return fs::weakly_canonical(fs::absolute(path, none), none);
    };
    if (a.empty() || b.empty() || (fs::exists(a, none) && !fs::is_regular_file(a, none))) {
        return false;
    }
    return fs::equivalent(a, b, none) || place(a) == place(b);
}

} // namespace vitrine::engine
