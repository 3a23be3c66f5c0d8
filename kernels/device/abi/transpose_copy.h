// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kTransposeCopyAbi = 1;

struct TransposeCopyParams {
    const void* x; ///< (matrices, rows, columns)
    void* out;     ///< (matrices, columns, rows)
    long long rows, columns;
};

} // namespace vitrine::kernels::abi
