// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

/// A packed weight, or a stack of them: kernels/formats/packed_format.h says what the fields are. Matrices of a stack
/// lie one after the other in every field.
struct PackedWeight {
    const unsigned char* data;
    const void* scales;         ///< of scaleType, or null
    const unsigned char* zeros; ///< or null
    const float* scaleScales;   ///< or null
    const int* order;           ///< the group of each input, or null
    long long rowBytes;         ///< of data
    int out;                    ///< rows of a matrix
    int in;
    int groups; ///< scales of a row
    int group;
    int rowGroup;
    int scaleType; ///< a number of device/abi/dtype.h
    float scaleOffset;
    float scaleMap[256]; ///< of scales that are codes: what a code stands for, to the last bit of the CPU
};

} // namespace vitrine::kernels::abi
