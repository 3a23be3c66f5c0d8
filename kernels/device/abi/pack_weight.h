// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kPackWeightAbi = 2;
/// Weights of one launch.
constexpr int kPackWeightParts = 32;

/// One weight, a matrix or a stack of them.
struct PackWeightPart {
    const void* x;       ///< (experts, rows, in), floats or codes
    const void* xScales; ///< of codes
    const void* a;       ///< (experts, rank, in), or null
    const void* b;       ///< (experts, rows, rank), or null
    void* data;          ///< codes of as many weights: two in a byte, or bytes
    void* scales;        ///< of INT4: of the type; MXFP4: bytes; FP8: float32
    void* values;        ///< (experts, rows, in), or null
    long long first;     ///< the first work item of this weight: items count on from weight to weight
    long long count;     ///< what the kernel counts: pieces of eight values, threads, groups or blocks
    int rows, in;        ///< of a matrix
    int group, rowGroup;
    int xGroup, xRowGroup;
    int rank;
    float scale; ///< of B A
};

struct PackWeightParams {
    PackWeightPart parts[kPackWeightParts];
    unsigned long long* changed; ///< or null
    long long items;             ///< of all parts
    int count;                   ///< of parts
};

} // namespace vitrine::kernels::abi
