// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unordered_map>

#include "base/error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/safetensors_header.h"

namespace vitrine::engine {
namespace {

class FileHandle {
public:
    explicit FileHandle(int fd) : fd_(fd) {}
    ~FileHandle() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    FileHandle(const FileHandle&) = delete; // one owner of the descriptor
    FileHandle& operator=(const FileHandle&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

/// Reads exactly `bytes` bytes, which the file must have.
void readAt(int fd, const std::string& path, std::uint64_t offset, void* out, std::uint64_t bytes) {
    auto* to = static_cast<char*>(out);
    while (bytes > 0) {
        // One call returns 2 GiB at most.
        const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 30));
        const ssize_t got = ::pread(fd, to, part, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            throw base::BadInput(fmt::format("{}: reading: {}", path, std::strerror(errno)));
        }
        if (got == 0) {
            throw base::BadInput(path + ": reading: the file became shorter while it was open");
        }
        to += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::uint64_t>(got);
    }
}

class OpenSafetensorsFile final : public SafetensorsFile {
public:
    explicit OpenSafetensorsFile(const std::string& path)
        // Opening a pipe would wait for its writer; what is no regular file is refused below.
        : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (file_.get() < 0) {
            throw base::BadInput(fmt::format("{}: opening: {}", path, std::strerror(errno)));
        }
        struct stat info{};
        if (::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
            throw base::BadInput(path + ": opening: not a regular file");
        }
        identity_ = fmt::format("{} {}:{} {} {}.{:09} {}.{:09}", path, info.st_dev, info.st_ino, info.st_size,
                                info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
        readHeader(static_cast<std::uint64_t>(info.st_size));
    }

    const std::string& path() const override { return path_; }
    const std::string& identity() const override { return identity_; }
    double cachedShare() const override;
    const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                std::uint64_t bytes) const override;
    const std::vector<TensorEntry>& tensors() const override { return header_.tensors; }
    const std::map<std::string, std::string>& metadata() const override { return header_.metadata; }

    const TensorEntry* find(std::string_view name) const override {
        const auto found = byName_.find(name);
        return found == byName_.end() ? nullptr : &header_.tensors[found->second];
    }

    void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const override {
        checkRange(entry, offset, bytes);
        readAt(file_.get(), path_, entry.offset + offset, out, bytes);
    }

private:
    void checkRange(const TensorEntry& entry, std::uint64_t offset, std::uint64_t bytes) const {
        if (offset > entry.bytes || bytes > entry.bytes - offset) {
            throw base::Internal(fmt::format("{}: {}: reading {} bytes at {} of {}", path_, quotedText(entry.name),
                                             bytes, offset, entry.bytes));
        }
    }

    void readHeader(std::uint64_t fileBytes) {
        fileBytes_ = fileBytes;
        if (fileBytes < 8) {
            throw base::BadInput(
                fmt::format("{}: size: {} bytes; a safetensors file has at least 8", path_, fileBytes));
        }
        unsigned char prefix[8];
        readAt(file_.get(), path_, 0, prefix, sizeof prefix);
        if (std::memcmp(prefix, "GGUF", 4) == 0) {
            throw base::Unsupported(path_ + ": format: GGUF files are not read; use the model in safetensors form");
        }
        if (std::memcmp(prefix, "version ", sizeof prefix) == 0) {
            throw base::BadInput(path_ +
                                 ": format: a Git LFS pointer stands here instead of the file; run git lfs pull");
        }
        std::uint64_t length = 0;
        for (int i = 7; i >= 0; --i) {
            length = length << 8 | prefix[i];
        }
        if (length > kMaxSafetensorsHeader || length > fileBytes - 8) {
            throw base::BadInput(
                fmt::format("{}: header length: {} bytes, but the file has {} and a header at most {}; "
                            "this is no safetensors file or an incomplete one",
                            path_, length, fileBytes, kMaxSafetensorsHeader));
        }
        std::string text(static_cast<std::size_t>(length), '\0');
        readAt(file_.get(), path_, 8, text.data(), length);
        header_ = parseSafetensorsHeader(text, fileBytes, path_);
        byName_.reserve(header_.tensors.size());
        for (std::size_t i = 0; i < header_.tensors.size(); ++i) {
            byName_.emplace(header_.tensors[i].name, i);
        }
    }

    std::string path_;
    std::string identity_;
    FileHandle file_;
    mutable std::once_flag directOnce_;
    mutable std::unique_ptr<FileHandle> direct_; ///< of the same file, past the page cache
    std::uint64_t fileBytes_ = 0;
    SafetensorsHeader header_;
    std::unordered_map<std::string_view, std::size_t> byName_; // views into header_
};

double OpenSafetensorsFile::cachedShare() const {
    constexpr std::uint64_t kPlaces = 64;
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < kPlaces; ++i) {
        char byte = 0;
        iovec target{&byte, 1};
        const auto place = static_cast<off_t>(fileBytes_ / kPlaces * i + fileBytes_ / kPlaces / 2);
        if (::preadv2(file_.get(), &target, 1, place, RWF_NOWAIT) == 1) {
            ++found;
        } else if (errno != EAGAIN) {
            return 1;
        }
    }
    return static_cast<double>(found) / kPlaces;
}

const std::byte* OpenSafetensorsFile::readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                                 std::uint64_t bytes) const {
    checkRange(entry, offset, bytes);
    std::call_once(directOnce_, [this] {
        // By the descriptor: the name may mean another file by now.
        const std::string same = fmt::format("/proc/self/fd/{}", file_.get());
        direct_ = std::make_unique<FileHandle>(::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
    });
    const std::uint64_t first = (entry.offset + offset) / kDirectAlignment * kDirectAlignment;
    const std::uint64_t skipped = entry.offset + offset - first;
    const std::uint64_t wanted = (skipped + bytes + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
    std::uint64_t done = 0;
    while (direct_->get() >= 0 && done < skipped + bytes) {
        const ssize_t got = ::pread(direct_->get(), buffer + done, wanted - done, static_cast<off_t>(first + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        // What cannot be read so (another alignment, the file's last block) is read the common way.
        if (got <= 0 || got % static_cast<ssize_t>(kDirectAlignment) != 0) {
            done += got > 0 ? static_cast<std::uint64_t>(got) : 0;
            break;
        }
        done += static_cast<std::uint64_t>(got);
    }
    if (done < skipped + bytes) {
        readAt(file_.get(), path_, first + done, buffer + done, skipped + bytes - done);
    }
    return buffer + skipped;
}

} // namespace

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(const std::string& path) {
    return std::make_shared<const OpenSafetensorsFile>(path);
}

} // namespace vitrine::engine
