// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

/// A tensor map (cuTensorMapEncodeTiled), whose tiles have 64 columns with the 128-byte swizzle.
struct alignas(64) TensorMap {
    unsigned char bytes[128];
};

} // namespace vitrine::kernels::abi
