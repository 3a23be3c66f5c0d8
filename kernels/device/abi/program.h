// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kProgramCaptures = 32;

/// A captured tensor (contiguous but for dimension 0), or a captured number as a tensor without dimensions.
struct ProgramCapture {
    const void* data;
    long long rowStride; ///< elements between neighbours of dimension 0
    int extents[3];      ///< 1 where the tensor has no such dimension
    int unused;
};

/// In the order of Program::captures.
struct ProgramCaptures {
    ProgramCapture items[kProgramCaptures];
};

} // namespace vitrine::kernels::abi
