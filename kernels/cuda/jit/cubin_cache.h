// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Compiled kernels on disk. A file holds one cubin, what the compiler reported about it and a checksum of both; it
// appears by an atomic rename, so that several processes may share the folder. A damaged file counts as absent. Over
// the size limit, the files that were unused for the longest time are removed. Thread-safe; a folder that cannot be
// written only costs time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/jit/kernel_library.h"

namespace vitrine::kernels {

/// A compiled program and what is known of it.
struct CompiledKernel {
    std::vector<std::uint8_t> image; ///< cubin, or PTX text
    std::vector<KernelResources> resources;
    std::vector<std::string> warnings; ///< of ptxas: spills, serialised wgmma, ignored setmaxnreg
    double seconds = 0;
    std::string label; ///< "rms_norm/registers dim=2880", for people
};

class CubinCache {
public:
    /// An empty folder: the user's cache folder.
    CubinCache(std::string folder, std::uint64_t limit);

    /// `key` is a hexadecimal digest of everything that the image depends on.
    std::optional<CompiledKernel> load(std::string_view key) const;
    void store(std::string_view key, const CompiledKernel& kernel);

    /// Held by the one process that compiles a key, while others wait for its file. It ends with its process.
    class CompileLock {
    public:
        explicit CompileLock(const std::string& path);
        ~CompileLock();
        CompileLock(const CompileLock&) = delete;
        CompileLock& operator=(const CompileLock&) = delete;

    private:
        std::string path_;
        int file_ = -1; ///< -1: the folder cannot be written, so every process compiles for itself
    };
    /// Waits until no other process or thread compiles the key. Ask load() again then: the other one may have stored
    /// it.
    std::unique_ptr<CompileLock> lock(std::string_view key) const;

    struct File {
        std::string key, label;
        std::uint64_t bytes = 0;
        bool intact = true;
    };
    /// Every file, most recently used first. Reads and checks them all.
    std::vector<File> list() const;
    /// Removes every file of the cache; returns how many.
    int clear();

    const std::string& folder() const { return folder_; }
    /// VITRINE_CACHE_DIR, XDG_CACHE_HOME/vitrine or ~/.cache/vitrine, + "/cubins".
    static std::string userFolder();

private:
    std::string pathOf(std::string_view key) const;
    void evict();

    std::string folder_;
    std::uint64_t limit_;
};

} // namespace vitrine::kernels
