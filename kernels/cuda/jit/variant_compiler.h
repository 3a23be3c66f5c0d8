// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// From a variant and values to a compiled program: collects the sources, makes the macros, asks the cubin cache and
// then the compiler. Thread-safe.

#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/jit/cubin_cache.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/cuda/jit/kernel_pack.h"
#include "kernels/cuda/jit/nvrtc.h"

namespace vitrine::kernels {

/// A variant with the values that it is specialised for, and the device's arch.
struct Specialization {
    const KernelPack* pack = nullptr;
    const KernelVariant* variant = nullptr;
    std::vector<std::pair<std::string, std::int64_t>> values;
    std::string arch;
    GeneratedSource generated; ///< empty: the file of the pack

    std::string text() const; ///< "dim=2880 x_dtype=BF16"
};

/// What a device adds to a call's variables: sms, shared_per_block, arch.
std::optional<std::int64_t> deviceVariable(const DeviceArch& arch, std::string_view name);

/// Takes the values of variant.specialize from `lookup`. Throws BadInput that names the variant for one that is
/// missing.
Specialization specialize(const KernelPack& pack, const KernelVariant& variant, const Expression::Lookup& lookup,
                          const std::string& arch, const GeneratedSource* generated = nullptr);

/// What the compiler gets: the first file, the files that it includes (transitively), macros.
CompileJob compileRequest(const Specialization& what);

/// The key of everything that the result depends on.
std::string cubinKey(const CompileJob& request, const std::string& compilerVersion);

struct CompiledVariant {
    CompiledKernel kernel;
    std::string origin; ///< "cubin cache", "compiled in 0.61 s", "cubin file", "ptx file"
    bool cached = false;
};

/// Throws Unsupported when there is no compiler, KernelCompileError when the source is at fault.
CompiledVariant compileVariant(const Specialization& what, CubinCache& cache);

} // namespace vitrine::kernels
