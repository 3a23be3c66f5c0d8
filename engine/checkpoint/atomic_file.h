// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A file that appears under its name only when it is complete: written under another name in the same folder, synced,
// renamed. One thread at a time.

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine::engine {

class AtomicFile {
public:
    /// Throws BadInput when the file cannot be created.
    explicit AtomicFile(const std::string& path);
    /// Removes what was written unless finish() was reached.
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete; // owns a descriptor and a name
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Throws BadInput when the disk is full or fails.
    void write(const void* data, std::uint64_t bytes);
    void finish();
    const std::string& path() const { return path_; }

private:
    [[noreturn]] void fail(const char* what) const;

    std::string path_;
    std::string temporary_;
    int fd_ = -1;
};

/// A whole text file in one go.
void writeTextFile(const std::string& path, std::string_view text);

} // namespace vitrine::engine
