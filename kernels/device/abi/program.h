// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kProgramAbi = 1;
constexpr int kProgramMaxCaptures = 32;

/// A captured tensor. Its dtype is part of the emitted text.
struct ProgramCapture {
    const void* data;
    long long stride; ///< elements between neighbours of dimension 0
    int extents[3];   ///< 1 beyond its rank
    int unused;
};

/// In the order of the program's captures.
struct ProgramCaptures {
    ProgramCapture items[kProgramMaxCaptures];
};

} // namespace vitrine::kernels::abi
