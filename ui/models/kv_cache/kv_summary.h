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
    /// Bytes of the tokens that one sequence of `tokens` tokens keeps; a sliding group keeps min(tokens, window - 1).
    std::uint64_t bytes(double tokens) const;
    /// Bytes of the whole pages that hold them; the same as bytes() where the size of a page is not known.
    std::uint64_t pageBytes(double tokens) const;
};

struct KvGeometry {
    std::vector<KvLayerGroup> groups; ///< full first
    QString dtype;
    std::int64_t sequences = 1;    ///< that share the tokens evenly
    std::int64_t headDim = 0;      ///< elements of a head's row; 0: not known
    std::int64_t contextLimit = 0; ///< tokens that the model can take in a sequence; 0: not known

    /// Of all sequences together; 0: not known.
    std::int64_t contextTokens() const { return contextLimit * sequences; }

    std::uint64_t full(double tokens) const; ///< of all sequences together, `tokens` in all
    std::uint64_t sliding(double tokens) const;
    /// Of the tokens that are kept.
    std::uint64_t kept(double tokens) const { return full(tokens) + sliding(tokens); }
    std::uint64_t pages(double tokens) const;    ///< of the whole pages that hold them
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

/// A prompt and its answer.
struct KvTurn {
    std::int64_t promptTokens = 0, answerTokens = 0;
    base::TimeNs begin = 0, promptEnd = 0, end = 0; ///< all 0 where the run did not record its phases
};

struct KvSummary {
    std::optional<KvGeometry> geometry;
    std::vector<KvSample> samples; ///< by tokens, each number once: the last time it was seen
    std::optional<KvTurn> turn;    ///< of a run of one prompt and one sequence
    QString ending;                ///< why the run's answers ended, "ended at a stop token"; empty: not known
    bool planned = false;          ///< on Meta: the samples are a plan, nothing was measured

    bool empty() const { return samples.empty(); }
    std::int64_t maxTokens() const { return samples.empty() ? 0 : samples.back().tokens; }
    /// The sample with at most that many tokens, the first one when there is none.
    const KvSample& at(std::int64_t tokens) const;
    /// Held bytes that neither the kept tokens nor the rest of their pages explain; not 0 is an error of the cache or
    /// of this formula. Nothing where the layout is not known, several sequences share the tokens, or it is a plan.
    std::optional<std::int64_t> unexplained(const KvSample& sample) const;
};

std::optional<KvGeometry> kvGeometry(const sessions::RunInfo& run);
KvSummary kvSummary(const sessions::RunInfo& run, const profiler::RunTimeline* timeline);

/// At most `count` samples, evenly over the tokens, with the first and the last.
std::vector<KvSample> thinned(const std::vector<KvSample>& samples, std::size_t count);

/// Tokens, Full, Sliding, Held, Kept, Page rounding, Without windows: the table twin of the curve; at most `limit`
/// rows.
FlatTreePtr kvSampleTable(const KvSummary& facts, std::size_t limit = 2000);

/// What the layers of a group hold at one moment.
struct KvGroupBytes {
    std::uint64_t held = 0, kept = 0;
    std::uint64_t all = 0; ///< if they kept every token
    /// False: an even part of what all layers of its kind hold, which is all that the run reports.
    bool ownHeld = true, ownKept = true;
};
/// Of each group of the geometry; empty without one.
std::vector<KvGroupBytes> kvGroupBytes(const KvSummary& facts, std::int64_t tokens);
/// Group, Layers, Window, Bytes per token, Held, Kept, Without windows, Kept share.
FlatTreePtr kvLayerTable(const KvSummary& facts, const std::vector<KvGroupBytes>& held);
/// Layers of the groups that slide, or of those that do not.
std::size_t kvLayers(const KvGeometry& geometry, bool sliding);
/// Text, sort key and exact number of so many bytes.
FlatCell kvBytesCell(std::uint64_t bytes);

/// "0, 2, 4 to 10": layer numbers with runs of equal steps folded.
QString layerListText(const std::vector<int>& layers);
/// What the bytes that a cache holds are called: "held", in a plan "planned pages".
QString kvHeldWord(bool planned);

} // namespace vitrine::ui
