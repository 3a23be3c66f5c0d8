// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The block mask of a mask whose rows see a few stretches of keys. It follows from what the rows of each block row see
// together. buildBlockMask() gives the same but asks the program for every block, which takes seconds where millions of
// tokens have many documents.

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/program/block_mask.h"

namespace vitrine::kernels {

/// Keys from begin to end - 1; none unless begin < end.
struct KeySpan {
    std::int64_t begin = 0, end = 0;
};

/// In any order; spans may touch and overlap.
using KeySpans = std::vector<KeySpan>;

/// What neighbouring queries see.
struct SeenKeys {
    KeySpans some; ///< keys that at least one of them sees
    KeySpans all;  ///< keys that each of them sees
};

/// The same spans in order, apart from each other and without empty ones.
KeySpans united(KeySpans spans);
/// The keys of both.
KeySpans intersection(const KeySpans& a, const KeySpans& b);

/// `seenBy` says what the queries from begin to end - 1 of `tokens` see; it is asked for each block row once, from the
/// first to the last. REQUIRES at least one token, and spans within 0 to `tokens`.
BlockMask spanBlockMask(std::int64_t tokens,
                        const std::function<SeenKeys(std::int64_t begin, std::int64_t end)>& seenBy);

} // namespace vitrine::kernels
