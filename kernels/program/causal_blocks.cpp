// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/causal_blocks.h"

#include "kernels/program/span_blocks.h"

namespace vitrine::kernels {

BlockMask causalBlockMask(std::int64_t tokens, const std::function<std::int64_t(std::int64_t query)>& firstKey) {
    return spanBlockMask(tokens, [&](std::int64_t begin, std::int64_t end) {
        // Together the queries see all keys from the first one's to the last query. All of them see what the last one
        // sees up to the first query.
        return SeenKeys{{{firstKey(begin), end}}, {{firstKey(end - 1), begin + 1}}};
    });
}

} // namespace vitrine::kernels
