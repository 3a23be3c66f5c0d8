// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The KV cache of a run in tables: those of the inspector, name and value a row, and those of a pool that many
// sequences share, over time. Pure functions; any thread.

#include "ui/models/kv_cache/kv_pool.h"

namespace vitrine::ui {

/// Full, sliding, held, kept, page rounding, without windows: at a number of tokens. Empty for empty facts.
FlatTreePtr kvValuesTable(const KvSummary& facts, std::int64_t tokens);

/// Which layers, bytes of a token, pages, window, dtype. Empty when the run does not say how its cache is laid out.
FlatTreePtr kvLayoutTable(const KvSummary& facts);

/// What the groups of the geometry hold of a pool at an instant; empty without a geometry.
std::vector<KvGroupBytes> kvGroupBytes(const KvSummary& facts, const KvPool& pool, base::TimeNs time);

/// Time, Full, Sliding, Held, Kept, Page rounding, Without windows: the table twin of a pool's curve, `rows`
/// instants from its begin to its end.
FlatTreePtr kvPoolSampleTable(const KvPool& pool, std::size_t rows = 500);

} // namespace vitrine::ui
