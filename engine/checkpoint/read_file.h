// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A regular file that is open for reading. It is read with pread, so a file that shrinks meanwhile is an error and not
// a signal.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace vitrine::engine {

/// Any number of threads may read at once.
class ReadFile {
public:
    /// Throws BadInput "FILE: opening: what" for what cannot be opened or is no regular file.
    explicit ReadFile(const std::string& path);
    ~ReadFile();
    ReadFile(const ReadFile&) = delete; // one owner of the descriptor
    ReadFile& operator=(const ReadFile&) = delete;

    const std::string& path() const { return path_; }
    std::uint64_t bytes() const { return bytes_; } ///< when it was opened
    /// A text that identifies the file and the time of its last write, as they were when it was opened.
    const std::string& identity() const { return identity_; }

    /// Reads exactly `bytes` bytes. Throws BadInput "FILE: reading: what" when the file does not have them.
    void read(std::uint64_t offset, void* out, std::uint64_t bytes) const;
    /// The share of the file that is in the page cache, from 0 to 1, estimated at a sample of places. 1 where the
    /// system cannot say.
    double cachedShare() const;
    /// As read(), but past the page cache where the file system can do it. `buffer` is aligned to `alignment`, a power
    /// of two that the file system accepts, and has room for `bytes` plus twice that. Returns where in it the bytes
    /// begin.
    const std::byte* readDirect(std::uint64_t offset, std::byte* buffer, std::uint64_t bytes,
                                std::uint64_t alignment) const;

private:
    std::string path_;
    std::string identity_;
    int fd_ = -1;
    std::uint64_t bytes_ = 0;
    mutable std::once_flag directOnce_;
    mutable int direct_ = -1; ///< of the same file, past the page cache; -1: not opened, or the system cannot
};

} // namespace vitrine::engine
