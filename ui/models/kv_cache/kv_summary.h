// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The KV cache of a run: how it is laid out (from the run's metrics), what it held (from the counters of its events),
// and what the formula of engine/cache/kv_cache.h says it should hold. Pure functions; any thread.

#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// Layers that keep the same tokens.
struct KvLayerGroup {
    QString name; ///< "full" or "sliding"
    std::vector<int> layers;
    std::int64_t window = 0; ///< tokens; 0: keeps everything
    std::uint64_t bytesPerToken = 0;
    std::int64_t pageTokens = 0; ///< 0: not known

    bool sliding() const { return window > 0; }
    /// Bytes of one sequence of `tokens` tokens; a sliding group keeps min(tokens, window - 1).
    std::uint64_t bytes(double tokens) const;
};

struct KvGeometry {
    std::vector<KvLayerGroup> groups; ///< full first
    QString dtype;
    std::int64_t sequences = 1; ///< that share the tokens evenly

    std::uint64_t full(double tokens) const; ///< of all sequences together, `tokens` in all
    std::uint64_t sliding(double tokens) const;
    std::uint64_t predicted(double tokens) const { return full(tokens) + sliding(tokens); }
    std::uint64_t noWindow(double tokens) const; ///< if every layer kept everything
    std::int64_t window() const;                 ///< largest; 0: no group slides
    double knee() const { return static_cast<double>(window() > 0 ? (window() - 1) * sequences : 0); }
};

/// What the cache held when it had seen `tokens` tokens.
struct KvSample {
    base::TimeNs time = 0;
    std::int64_t tokens = 0;
    std::uint64_t full = 0, sliding = 0;

    std::uint64_t total() const { return full + sliding; }
};

struct KvSummary {
    std::optional<KvGeometry> geometry;
    std::vector<KvSample> samples; ///< by tokens, each number once: the last time it was seen

    bool empty() const { return samples.empty(); }
    std::int64_t maxTokens() const { return samples.empty() ? 0 : samples.back().tokens; }
    /// The sample with at most that many tokens, the first one when there is none.
    const KvSample& at(std::int64_t tokens) const;
    /// (measured - predicted) / predicted at the largest number of tokens.
    std::optional<double> error() const;
};

std::optional<KvGeometry> kvGeometry(const sessions::RunInfo& run);
KvSummary kvSummary(const sessions::RunInfo& run, const profiler::RunTimeline* timeline);

/// At most `count` samples, evenly over the tokens, with the first and the last.
std::vector<KvSample> thinned(const std::vector<KvSample>& samples, std::size_t count);

/// Tokens, Full, Sliding, Measured, Predicted, Error: the table twin of the curve; at most `limit` rows.
FlatTreePtr kvSampleTable(const KvSummary& facts, std::size_t limit = 2000);

/// What the layers of a group hold at one moment.
struct KvGroupBytes {
    std::uint64_t measured = 0, predicted = 0;
    std::uint64_t all = 0; ///< if they kept every token
    /// False: an even part of what all layers of its kind hold, which is all that the run reports.
    bool ownMeasured = true, ownPredicted = true;
};
/// Of each group of the geometry; empty without one.
std::vector<KvGroupBytes> kvGroupBytes(const KvSummary& facts, std::int64_t tokens);
/// Group, Layers, Window, Bytes per token, Measured, Predicted, Without window, Kept share.
FlatTreePtr kvLayerTable(const KvSummary& facts, const std::vector<KvGroupBytes>& held);
/// Layers of the groups that slide, or of those that do not.
std::size_t kvLayers(const KvGeometry& geometry, bool sliding);
/// Text, sort key and exact number of so many bytes.
FlatCell kvBytesCell(std::uint64_t bytes);

/// "0, 2, 4 to 10": layer numbers with runs of equal steps folded.
QString layerListText(const std::vector<int>& layers);
/// "+0.10 %", "0.00 %"; `–` for nothing.
QString errorText(std::optional<double> error);

} // namespace vitrine::ui
