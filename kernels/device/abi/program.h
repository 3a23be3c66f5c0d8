// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kProgramCaptures = 32;

/// A captured tensor (contiguous but for dimension 0) or, with null data, a captured number.
struct ProgramCapture {
    const void* data;
    union {
        long long rowStride; ///< elements between neighbours of dimension 0
        long long integer;   ///< a captured integer
    };
    int extents[3]; ///< 1 where the tensor has no such dimension
    float real;     ///< a captured float
};

/// In the order of Program::captures.
struct ProgramCaptures {
    ProgramCapture items[kProgramCaptures];
};

} // namespace vitrine::kernels::abi
