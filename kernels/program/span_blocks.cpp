// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/span_blocks.h"

#include <algorithm>
#include <utility>

#include "kernels/program/block_mask_rows.h"

namespace vitrine::kernels {

namespace {

/// Adds the runs of one block row, from left to right. `touched` and `full` are spans of blocks, united.
void addRuns(const KeySpans& touched, const KeySpans& full, std::vector<BlockRun>& runs) {
    const auto add = [&](std::int64_t begin, std::int64_t end, bool isFull) {
        if (begin < end) {
            runs.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end - begin), isFull});
        }
    };
    std::size_t next = 0;
    for (const KeySpan& span : touched) {
        std::int64_t begin = span.begin;
        for (; next < full.size() && full[next].end <= span.end; ++next) { // full blocks are touched ones
            add(begin, full[next].begin, false);
            add(full[next].begin, full[next].end, true);
            begin = full[next].end;
        }
        add(begin, span.end, false);
    }
}

} // namespace

KeySpans united(KeySpans spans) {
    std::erase_if(spans, [](const KeySpan& span) { return span.begin >= span.end; });
    std::ranges::sort(spans, {}, &KeySpan::begin);
    KeySpans out;
    for (const KeySpan& span : spans) {
        if (!out.empty() && span.begin <= out.back().end) {
            out.back().end = std::max(out.back().end, span.end);
        } else {
            out.push_back(span);
        }
    }
    return out;
}

KeySpans intersection(const KeySpans& a, const KeySpans& b) {
    KeySpans out;
    for (const KeySpan& left : a) {
        for (const KeySpan& right : b) {
            const KeySpan both{std::max(left.begin, right.begin), std::min(left.end, right.end)};
            if (both.begin < both.end) {
                out.push_back(both);
            }
        }
    }
    return out;
}

BlockMask spanBlockMask(std::int64_t tokens,
                        const std::function<SeenKeys(std::int64_t begin, std::int64_t end)>& seenBy) {
    BlockMask out;
    out.shape.queries = out.shape.keys = tokens;
    const std::int64_t size = out.shape.queryBlock;
    out.rowOffsets = {0};
    for (std::int64_t query = 0; query < tokens; query += size) {
        SeenKeys seen = seenBy(query, std::min(query + size, tokens));
        KeySpans touched = united(std::move(seen.some));
        for (KeySpan& span : touched) {
            span = {span.begin / size, (span.end + size - 1) / size};
        }
        KeySpans full = united(std::move(seen.all));
        for (KeySpan& span : full) {
            span = {(span.begin + size - 1) / size, span.end == tokens ? out.shape.keyBlocks() : span.end / size};
        }
        addRuns(united(std::move(touched)), united(std::move(full)), out.rowRuns);
        out.rowOffsets.push_back(static_cast<std::int64_t>(out.rowRuns.size()));
    }
    base::ThreadPool pool(1); // one plane
    completeFromRows(out, pool, {});
    return out;
}

} // namespace vitrine::kernels
