// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw_8bit.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/optimizer/adamw_step.h"

namespace vitrine::kernels {

namespace {

/// A table of values and the borders between neighbours: a number at a border gets the lower code.
struct CodeTable {
    const float* map;
    float borders[255];

    explicit CodeTable(const float* values) : map(values), borders() {
        for (int i = 0; i < 255; ++i) {
            borders[i] = 0.5F * (values[i] + values[i + 1]);
        }
    }
    std::uint8_t nearest(float x) const {
        return static_cast<std::uint8_t>(std::lower_bound(borders, borders + 255, x) - borders);
    }
};

void expandCodes(const CodeTable& table, const std::uint8_t* codes, float absmax, std::int64_t count, float* moments) {
    for (std::int64_t i = 0; i < count; ++i) {
        moments[i] = table.map[codes[i]] * absmax;
    }
}

/// Gives the scale.
float packCodes(const CodeTable& table, const float* moments, std::int64_t count, std::uint8_t* codes) {
    float absmax = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        absmax = std::max(absmax, std::fabs(moments[i]));
    }
    for (std::int64_t i = 0; i < count; ++i) {
        codes[i] = table.nearest(absmax > 0 ? moments[i] / absmax : 0.0F);
    }
    return absmax;
}

} // namespace

void execute(CpuContext& context, const AdamW8Bit& op) {
    static_assert(kAdamW8BitBlock <= kRowPiece, "a block is a piece");
    const auto step = adamWStep<float>(op);
    const CodeTable first(op.maps.as<const float>());
    const CodeTable second(op.maps.as<const float>() + 256);
    const std::int64_t total = op.parameter.shape.count();
    forRows(context, adamW8BitBlocks(total), 32 * kAdamW8BitBlock, [&](std::int64_t block) {
        const std::int64_t begin = block * kAdamW8BitBlock;
        const std::int64_t count = std::min(kAdamW8BitBlock, total - begin);
        std::uint8_t* codes1 = op.code1.as<std::uint8_t>() + begin;
        std::uint8_t* codes2 = op.code2.as<std::uint8_t>() + begin;
        float& absmax1 = op.absmax1.as<float>()[block];
        float& absmax2 = op.absmax2.as<float>()[block];
        float moment1[kAdamW8BitBlock];
        float moment2[kAdamW8BitBlock];
        expandCodes(first, codes1, absmax1, count, moment1);
        expandCodes(second, codes2, absmax2, count, moment2);
        adamWPiece(step, op, begin, count, moment1, moment2);
        absmax1 = packCodes(first, moment1, count, codes1);
        absmax2 = packCodes(second, moment2, count, codes2);
    });
}

} // namespace vitrine::kernels
