// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/causal_blocks.h"

#include <algorithm>

#include "kernels/program/block_mask_rows.h"

namespace vitrine::kernels {

BlockMask causalBlockMask(std::int64_t tokens, const std::function<std::int64_t(std::int64_t query)>& firstKey) {
    BlockMask out;
    out.shape.queries = out.shape.keys = tokens;
    const std::int64_t size = out.shape.queryBlock;
    out.rowOffsets = {0};
    const auto add = [&](std::int64_t begin, std::int64_t end, bool full) {
        if (begin < end) {
            out.rowRuns.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end - begin), full});
        }
    };
    for (std::int64_t query = 0; query < tokens; query += size) {
        const std::int64_t last = std::min(query + size, tokens) - 1;
        // Together the queries of a block row see all keys from the first one's to the last query. All of them see what
        // the last one sees up to the first query.
        const std::int64_t begin = firstKey(query) / size;
        const std::int64_t end = last / size + 1;
        const std::int64_t fullBegin = (firstKey(last) + size - 1) / size;
        const std::int64_t fullEnd = query + 1 == tokens ? end : (query + 1) / size;
        if (fullBegin < fullEnd) {
            add(begin, fullBegin, false);
            add(fullBegin, fullEnd, true);
            add(fullEnd, end, false);
        } else {
            add(begin, end, false);
        }
        out.rowOffsets.push_back(static_cast<std::int64_t>(out.rowRuns.size()));
    }
    base::ThreadPool pool(1); // one plane
    completeFromRows(out, pool, {});
    return out;
}

} // namespace vitrine::kernels
