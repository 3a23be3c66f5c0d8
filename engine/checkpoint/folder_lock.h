// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A folder that one run writes into at a time. The lock is flock() on a file in the folder: the kernel releases it when
// the process dies, however it dies. The file goes with the lock.

#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

class FolderLock {
public:
    /// Makes the folder where there is none. Throws BadInput "OPTION: what" when somebody else holds it or it cannot be
    /// made. A file system without locks is used without one, with a warning.
    FolderLock(std::string_view option, const std::string& folder);
    /// Removes the folders that it made and nobody wrote into.
    ~FolderLock();
    FolderLock(FolderLock&& other) noexcept;
    /// Where the folder vanished, the lock went with it: makes the folder again where there is none, and locks it anew.
    /// Does nothing while the lock holds. Throws as the constructor does; the folder is not this run's then.
    void renew();
    FolderLock(const FolderLock&) = delete; // owns a descriptor
    FolderLock& operator=(const FolderLock&) = delete;
    FolderLock& operator=(FolderLock&&) = delete;

private:
    void take();
    void close();

    std::string option_, folder_;
    std::string file_;              ///< empty: moved away
    std::vector<std::string> made_; ///< outermost first
    int fd_ = -1;
};

/// Whether nobody holds the folder now. Makes nothing.
bool isFolderFree(const std::string& folder);

} // namespace vitrine::engine
