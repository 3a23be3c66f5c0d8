// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kElementwiseAbi = 1;

/// VT_KIND 0: out = a + b. 1: out = cap * tanh(a / cap). 2: out = a. 3: out = a * b, where b
/// holds a float for each row. Rows of `size` elements; strides in elements.
struct ElementwiseParams {
    const void* a;
    const void* b;
    void* out;
    long long aStride, bStride, outStride;
    long long rows, size;
    float cap;
};

} // namespace vitrine::kernels::abi
