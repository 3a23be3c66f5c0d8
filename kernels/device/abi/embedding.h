// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kEmbeddingAbi = 1;

/// out[t] = scale * table[ids[t]]. `dim` elements a row; strides in elements.
struct EmbeddingParams {
    const int* ids;
    const void* table;
    void* out;
    long long tableStride, outStride;
    long long tokens, dim;
    int vocab;
    float scale;
};

} // namespace vitrine::kernels::abi
