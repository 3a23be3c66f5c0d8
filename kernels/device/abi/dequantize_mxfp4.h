// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kDequantizeMxfp4Abi = 1;

struct DequantizeMxfp4Params {
    const void* blocks; ///< (groups, 16) bytes
    const void* scales; ///< (groups)
    void* out;          ///< (groups, 32)
    long long groups;
};

} // namespace vitrine::kernels::abi
