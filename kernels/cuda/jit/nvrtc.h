// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// NVRTC: CUDA C++ in, cubin out. Opened at run time; needs no device. Thread-safe: compilations run side by side.
// Declared in every build; without CUDA headers there is no compiler.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/jit/cubin_cache.h"

namespace vitrine::kernels {

/// A source that does not compile. `log` is everything that the compiler said; the message has its first error.
class KernelCompileError : public base::Error {
public:
    KernelCompileError(base::ErrorKind kind, std::string message, std::string log)
        : Error(kind, std::move(message)), log_(std::move(log)) {}
    const std::string& log() const noexcept { return log_; }

private:
    std::string log_;
};

struct CompileJob {
    std::string name;   ///< of the source, in messages: "device/rowwise/rms_norm.cuh"
    std::string source; ///< what is compiled
    std::vector<std::pair<std::string, std::string>> headers; ///< by the name in #include
    std::string arch;                                         ///< "sm_90a"
    std::vector<std::string> options;                         ///< "-DVT_DIM=2880"
    base::ErrorKind errorKind = base::ErrorKind::Internal;    ///< of a source that does not compile
};

class Nvrtc {
public:
    /// The compiler of this machine, or null.
    static const Nvrtc* find();
    /// One sentence: why find() is null.
    static const std::string& whyMissing();

    /// Throws KernelCompileError.
    CompiledKernel compile(const CompileJob& request) const;
    const std::string& version() const { return version_; } ///< "13.0"
    const std::string& path() const { return path_; }

private:
    Nvrtc() = default;
    std::string version_, path_;
};

/// What the log of `--ptxas-options=-v` says: registers, spills and shared memory of each kernel, and the warnings that
/// cost speed silently.
void readCompileLog(std::string_view log, CompiledKernel& out);

} // namespace vitrine::kernels
