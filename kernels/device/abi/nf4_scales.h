// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

/// The scales of an NF4 matrix: floats, or codes with what unpacks them.
struct Nf4Scales {
    const float* floats;        ///< (groups), or null
    const unsigned char* codes; ///< (groups), when floats is null
    const float* codeScales;    ///< (groups / 256, rounded up)
    float offset;
    float map[256]; ///< what a code stands for: the values of the CPU, to the last bit
};

} // namespace vitrine::kernels::abi
