// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/mxfp4_format.h"

namespace vitrine::kernels {

float mxfp4Scale(std::uint8_t scale) {
    return std::bit_cast<float>(e8m0Bits(scale));
}

void expandMxfp4(const std::uint8_t* blocks, const std::uint8_t* scales, std::int64_t begin, std::int64_t count,
                 float* out) {
    for (std::int64_t group = begin / kMxfp4Group; group < (begin + count) / kMxfp4Group; ++group) {
        const float scale = mxfp4Scale(scales[group]);
        float table[16];
        for (int i = 0; i < 16; ++i) {
            table[i] = kE2M1[i] * scale;
        }
        const std::uint8_t* block = blocks + group * (kMxfp4Group / 2);
        float* values = out + (group * kMxfp4Group - begin);
        for (std::int64_t b = 0; b < kMxfp4Group / 2; ++b) {
            values[2 * b] = table[block[b] & 15U];
            values[2 * b + 1] = table[block[b] >> 4];
        }
    }
}

} // namespace vitrine::kernels
