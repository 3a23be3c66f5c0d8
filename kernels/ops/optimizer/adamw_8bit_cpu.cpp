// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/adamw_8bit.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/row_loop.h"
#include "kernels/formats/dynamic_map.h"
#include "kernels/ops/optimizer/adamw_step.h"

namespace vitrine::kernels {

namespace {

void expandCodes(const CodeTable& table, const std::uint8_t* codes, float absmax, std::int64_t count, float* moments) {
    for (std::int64_t i = 0; i < count; ++i) {
        moments[i] = table.map[codes[i]] * absmax;
    }
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
