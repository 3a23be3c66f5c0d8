// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kPackExpertsAbi = 1;

struct PackExpertsParams {
    const int* ids; ///< (tokens, k)
    void* out;      ///< (tokens, rowIds)
    int count;      ///< tokens * k
    int k;
    int rowIds; ///< of all layers of one token
    int first;  ///< place of the layer's first id among them
};

} // namespace vitrine::kernels::abi
