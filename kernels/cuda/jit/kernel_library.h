// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// From a KernelCall to something that can be launched: chooses a variant, compiles it (or takes the cubin from the disk
// cache), loads it and keeps what is known of it. docs/kernel-packs.md describes packs and the rules of choice.
//
// Thread-safe. Choosing a second time for the same family and values is a hash lookup. This header needs no CUDA: the
// planner, the command `kernels` and tests choose and compile without a device.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/stop.h"
#include "kernels/cuda/jit/kernel_call.h"

namespace vitrine::kernels {

class KernelPack;
struct KernelVariant;

/// What a variant is compiled for and chosen by.
struct DeviceArch {
    std::string name = "sm_90a"; ///< "sm_80", "sm_89", "sm_90a", "sm_100", "sm_120"
    int number = 90;
    int multiprocessors = 132;
    std::int64_t sharedPerBlock = 227 * 1024;
};

struct CudaDeviceInfo;
DeviceArch archOf(const CudaDeviceInfo& device);

/// One compiled entry of a variant, as the compiler and the driver report it.
struct KernelResources {
    std::string entry;
    int registers = 0;
    int spillBytes = 0; ///< local memory of a thread that ptxas spilled
    std::int64_t staticShared = 0;
    std::int64_t cubinBytes = 0;
};

/// Which variant of a family was chosen for one set of values, and why.
struct KernelUse {
    std::string family, variant, pack, arch;
    std::string reason; ///< "highest priority that fits", "named by --kernel", "fallback: when failed (dim % 8 == 0)"
    std::string specialization; ///< "dim=2880 x_dtype=BF16"
    std::string origin;         ///< "cubin cache", "compiled in 0.61 s", "cubin file"
    double compileSeconds = 0;
    std::vector<KernelResources> kernels;
    std::uint64_t calls = 0; ///< launches asked for by ops, replays of graphs not counted
};

struct KernelLaunch {
    std::string entry;
    std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
    unsigned sharedBytes = 0;
    bool dependent = false;
};

struct KernelLibraryOptions {
    std::vector<std::string> packs;                             ///< folders, first wins
    std::vector<std::pair<std::string, std::string>> overrides; ///< family (or op name) -> "variant" or "pack/variant"
    std::string cacheFolder; ///< empty: VITRINE_CACHE_DIR, XDG_CACHE_HOME or ~/.cache, + "/vitrine/cubins"
    std::uint64_t cacheLimit = std::uint64_t{512} << 20;
    int threads = 0; ///< of the compile pool, 0: all cores
};

class KernelLibrary {
public:
    /// Reads the manifests. Throws BadInput "PACK/manifest.json: FIELD: what".
    KernelLibrary(DeviceArch arch, KernelLibraryOptions options);
    ~KernelLibrary();
    KernelLibrary(const KernelLibrary&) = delete; // variants hold its address
    KernelLibrary& operator=(const KernelLibrary&) = delete;

    class Entry; ///< a chosen, compiled variant

    /// Whether some variant fits; never compiles.
    bool fits(const KernelCall& call);
    /// Whether an override names a variant of the family: ops take some families only when they are asked for.
    bool named(std::string_view family) const;
    /// Chooses, and compiles when needed (other threads asking for the same wait for it). Throws Unsupported that names
    /// the family, the values and why each variant did not fit, or KernelCompileError with the compiler's log.
    const Entry& entry(const KernelCall& call);
    /// Starts compiling on the pool and returns at once.
    void prefetch(const KernelCall& call);
    /// Waits for all that prefetch started. Reports progress "Compiling kernels".
    void waitForPrefetch(base::ProgressSink* progress, const base::StopToken& stop);

    /// Another run begins: uses() and waitedSeconds() count from here. Compiled kernels stay. Call it while no thread
    /// waits for this library.
    void beginRun();

    static std::vector<KernelLaunch> launches(const Entry& entry, const KernelCall& call);
    static const std::vector<std::uint8_t>& cubin(const Entry& entry);
    static const KernelUse& use(const Entry& entry);
    /// Whether it comes with the program.
    static bool builtin(const Entry& entry);

    /// Every variant that this run uses so far, in order of first use.
    std::vector<KernelUse> uses() const;
    /// Seconds that callers of entry() and waitForPrefetch() have waited for compilers and the disk cache.
    double waitedSeconds() const;

    /// A variant as the library sees it, in the order of choice inside its family.
    struct Listing {
        const KernelPack* pack = nullptr;
        const KernelVariant* variant = nullptr;
        bool runs = false; ///< on this arch, with the parameters that this program passes
        int chosen = 0;    ///< of `examples`, for how many calls it would be taken
        int examples = 0;  ///< examples of all variants of its family that some variant fits
    };
    /// Every variant of every pack; families in alphabetical order. Compiles nothing.
    std::vector<Listing> list() const;
    const DeviceArch& arch() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
