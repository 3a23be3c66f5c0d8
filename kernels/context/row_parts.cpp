// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/row_parts.h"

#include <algorithm>

#include "kernels/context/context.h"
#include "kernels/context/equal_work.h"

namespace vitrine::kernels {

namespace {

/// Parts that run before the first one that is jumped over: an allocator then hands out what it has got back.
constexpr std::int64_t kFirstParts = 3;

} // namespace

void forRowParts(Context& context, std::int64_t rows, std::int64_t part,
                 const std::function<void(std::int64_t begin, std::int64_t end)>& visit) {
    const std::int64_t step = part > 0 ? part : rows;
    MetaContext* const meta = context.meta();
    const bool jumps = jumpsEqualWork(context);
    for (std::int64_t begin = 0, index = 0; begin < rows; begin += step, ++index) {
        const bool lastOfFirst = jumps && index == kFirstParts - 1;
        const auto before = lastOfFirst ? meta->times() : MetaContext::Times{};
        visit(begin, std::min(begin + step, rows));
        if (lastOfFirst) {
            // All but the last one, which may be smaller.
            const std::int64_t equal = std::max<std::int64_t>((rows - begin - 1) / step - 1, 0);
            meta->passAgain(before, equal);
            begin += equal * step;
        }
    }
}

} // namespace vitrine::kernels
