// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How far the KV cache of a run could grow: what memory is left for it, at how many tokens that ends, what another
// data type, page or window would change, and the two sentences that say what the windows save. Pure functions; any
// thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/workload/experiment/experiment.h"
#include "ui/models/kv_cache/kv_pool.h"
#include "ui/models/kv_cache/kv_summary.h"

namespace vitrine::ui {

/// What a run leaves for its cache.
struct KvRoom {
    std::uint64_t budget = 0; ///< bytes
    std::uint64_t other = 0;  ///< what everything else takes when the run is at its peak

    std::uint64_t free() const { return budget > other ? budget - other : 0; }
};
/// Nothing where the run has no budget or no peak.
std::optional<KvRoom> kvRoom(const sessions::RunInfo& run);

/// The same layers in another data type ("int8", "fp8", "bfloat16"): a byte or more for each element, and for one of
/// a byte a scale of 4 bytes for each row of a head. Nothing where the size of a head is not known.
std::optional<KvGeometry> kvInType(const KvGeometry& geometry, const QString& dtype);
/// The same layers with pages of so many tokens in full layers.
KvGeometry kvWithPages(KvGeometry geometry, std::int64_t pageTokens);
/// The same layers, each with this window; 0: none.
KvGeometry kvWithWindow(KvGeometry geometry, std::int64_t window);

/// Most tokens, of all sequences together, whose pages fit into `bytes`; at most 2^40.
std::int64_t kvTokensWithin(const KvGeometry& geometry, std::uint64_t bytes);

/// Another cache, and the option of the experiment that makes it.
struct KvChange {
    QString name, why;
    KvGeometry geometry;
    const char* key = nullptr; ///< "kv_dtype"; null: no option does it
    engine::OptionValue value{};
};
/// The cache as it is, then what could be changed: type, page, window. Empty where the layout is not known.
std::vector<KvChange> kvChanges(const KvSummary& facts);
/// Change, bytes at `tokens`, difference, tokens at which memory or the model ends: what another cache would buy.
FlatTreePtr kvChangeTable(const KvSummary& facts, const std::optional<KvRoom>& room, std::int64_t tokens);

struct KvSentences {
    QString first;  ///< what the windows save, and from where on
    QString second; ///< held instead of what, and what ends first
};
KvSentences kvSentences(const KvSummary& facts, const std::optional<KvRoom>& room);
/// The same of a batch, at its fullest moment.
KvSentences kvSentences(const KvSummary& facts, const KvPool& pool);

} // namespace vitrine::ui
