// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kPackWeightAbi = 1;

struct PackWeightParams {
    const void* x;               ///< (experts, out, in)
    void* data;                  ///< codes of as many weights: two in a byte, or bytes
    void* scales;                ///< of INT4: of the type; MXFP4: bytes; FP8: float32
    unsigned long long* changed; ///< or null
    long long groups;            ///< of INT4 and MXFP4: of all rows
    int pieces;                  ///< of INT4 and MXFP4: of 8 inputs, in a group
    int out, in;                 ///< of FP8, as what follows
    int group, rowGroup;
};

} // namespace vitrine::kernels::abi
