// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Opens a vendor's shared library at run time. Nothing of a vendor is linked.
//
// Search order: the folders of VITRINE_CUDA_HOME, the folder of this program and ../lib, CUDA_HOME, the usual prefixes,
// the bare soname (the system's own search), pip's nvidia folders.

#include <span>
#include <string>
#include <string_view>

namespace vitrine::base {

/// An open library, or why there is none. It stays loaded until the process ends: vendor libraries keep memory of their
/// own that unloading would leak, and another part of the program may hold functions of it. Copies share it.
class SharedLibrary {
public:
    SharedLibrary() = default;

    /// Tries `sonames` (newest first) in every place of the search order. Never throws for what is missing.
    static SharedLibrary find(std::span<const std::string> sonames);

    bool isOpen() const { return handle_ != nullptr; }
    /// As opened: a full path, or the bare soname. Empty when not open.
    const std::string& path() const { return path_; }
    /// The message of the last attempt, when a file was found but could not be opened.
    const std::string& error() const { return error_; }
    /// Null when the library lacks it or is not open.
    void* symbol(const char* name) const;

private:
    bool open(const std::string& file);

    void* handle_ = nullptr;
    std::string path_;
    std::string error_;
};

} // namespace vitrine::base
