// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What an op asks of the GPU: "run a variant of this kernel family with these parameters". The kernel library
// (kernel_library.h) decides which variant of which pack runs, what it is compiled for and how it is launched.
//
// A call names its family (the stem: "rms_norm", "kv_write"), passes the versioned `<Stem>Params` of
// kernels/device/abi/<stem>.h and a list of named integers. A variant's manifest uses these names in its condition
// ("x_dtype == 3 && dim % 8 == 0"), in what it is specialised for (`-DVT_DIM=2880`), and in its grid, block,
// shared-memory and scratch expressions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vitrine::kernels {

/// A named integer. Dtypes are the numbers of DType; flags are 0 or 1.
struct KernelVariable {
    std::string_view name;
    std::int64_t value = 0;
};

/// Device source that is written for a call: what the family includes as kGeneratedHeader, in place of the file of that
/// name.
struct GeneratedSource {
    std::string text;
    std::string digest; ///< SHA-256 of the text: equal digests mean equal kernels
};
inline constexpr std::string_view kGeneratedHeader = "device/generated/program.cuh";

struct KernelCall {
    std::string_view family;          ///< "rms_norm"
    int abi = 1;                      ///< version of the parameter struct
    const void* parameters = nullptr; ///< the struct, copied at launch
    std::size_t parameterBytes = 0;
    std::span<const KernelVariable> variables;
    const GeneratedSource* generated = nullptr; ///< or null; copied when a kernel is compiled
    bool dependent = true; ///< may start before the kernel before it has ended (programmatic dependent launch): the
                           ///< sources of a family say where they wait
};

/// `variables` by name; throws Internal for a name that the call lacks.
std::int64_t variable(const KernelCall& call, std::string_view name);

} // namespace vitrine::kernels
