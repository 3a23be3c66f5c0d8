// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The pages of a KV cache at one instant: the blocks that the cache held then. Pure functions; any thread.

#include "ui/models/kv_cache/kv_summary.h"

namespace vitrine::ui {

struct KvPage {
    std::size_t row = 0;        ///< of the timeline's allocations
    std::size_t group = 0;      ///< of KvPages::groups
    std::int64_t number = 0;    ///< in its group, by birth, from 0
    std::optional<double> used; ///< share of its tokens that are kept; nothing where sequences share the tokens
};

struct KvPages {
    std::vector<KvLayerGroup> groups; ///< those that hold pages; full first
    std::vector<KvPage> pages;        ///< group after group

    std::size_t count(std::size_t group) const;
};

/// Blocks of the cache's groups that lived when it had seen sample.tokens tokens. Empty when the run does not say how
/// its cache is laid out, and for caches that are one block a group.
KvPages kvPages(const KvSummary& facts, const profiler::RunTimeline& timeline, const KvSample& sample);

/// Page, Group, Size, Address, Made, In use: the table twin; at most `limit` rows.
FlatTreePtr kvPageTable(const KvPages& pages, const profiler::RunTimeline& timeline, std::size_t limit = 5000);

/// "Page 12, full: 256 tokens, 6.0 MiB, 57 % in use"
QString kvPageText(const KvPages& pages, const profiler::RunTimeline& timeline, std::size_t page);

} // namespace vitrine::ui
