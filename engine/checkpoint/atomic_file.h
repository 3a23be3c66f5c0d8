// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes a file that appears under its name only when it is complete. The file is written under another name in the
// same folder, synced and renamed. When the name is a link, the link stays and the file that it leads to is replaced. A
// device, a pipe or /dev/stdout is written directly. One thread at a time may use an object.

#include <cstdint>
#include <functional>
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

    /// Throws Internal when the disk is full or fails.
    void write(const void* data, std::uint64_t bytes);
    void finish();
    const std::string& path() const { return path_; }

private:
    std::string path_;
    std::string target_;    ///< what gets the new contents: where path_ leads
    std::string temporary_; ///< empty: the file is written in place
    int fd_ = -1;
};

/// Writes a whole text file.
void writeTextFile(const std::string& path, std::string_view text);

/// Removes what killed processes left of files of a folder that the caller owns: "NAME.part-NUMBER" where `isOwn` knows
/// the name. What cannot be removed stays.
void removeParts(const std::string& folder, const std::function<bool(const std::string& name)>& isOwn);

/// Checks whether a file of this name could be written now, and throws BadInput if not. Changes nothing.
void checkWritable(const std::string& path);
/// Whether two names mean the same file, which need not exist yet. False for empty names and for anything but regular
/// files.
bool isSameFile(const std::string& a, const std::string& b);

} // namespace vitrine::engine
