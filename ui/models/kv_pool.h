// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The pool of pages of a paged KV cache over time: who holds which page, and what of the pages' bytes is kept for tokens.
// Built once from a run's events; answers for any instant without going through them. Immutable; any thread.

#include <memory>
#include <vector>

#include "ui/models/batch_map.h"
#include "ui/models/kv_facts.h"

namespace vitrine::ui {

struct KvPoolPage {
    base::PageState state = base::PageState::Free;
    std::int32_t owner = -1;    ///< sequence that took it first
    std::int32_t sequences = 0; ///< that hold it
    bool shared() const { return sequences > 1; }
};

struct KvPoolGroup {
    QString name; ///< "full", "sliding"
    bool sliding = false;
    std::int64_t pageTokens = 0;
    std::uint64_t pageBytes = 0;
    std::size_t pages = 0; ///< that were ever used
};

/// Bytes that pages hold and what the formula says the tokens of the running requests need, at one instant.
struct KvPoolBytes {
    std::uint64_t full = 0, sliding = 0;
    std::uint64_t keptFull = 0, keptSliding = 0;
    std::uint64_t noWindow = 0; ///< if every layer kept all tokens

    std::uint64_t measured() const { return full + sliding; }
    std::uint64_t predicted() const { return keptFull + keptSliding; }
    /// Share of the pages' bytes without a token that is needed.
    double waste() const;
};

class KvPool {
public:
    /// Null when the run told of no pages.
    static std::shared_ptr<const KvPool> make(const sessions::RunInfo& run, const profiler::MemoryTimeline& timeline);

    const std::vector<KvPoolGroup>& groups() const { return groups_; }
    /// Pages of each group at `time`.
    std::vector<std::vector<KvPoolPage>> at(base::TimeNs time) const;
    KvPoolBytes bytesAt(base::TimeNs time) const;
    std::int64_t poolPages() const { return poolPages_; } ///< 0: not known
    base::TimeNs begin() const { return begin_; }
    base::TimeNs end() const { return end_; }
    base::TimeNs fullest() const { return fullest_; } ///< first instant of most used pages
    /// The next change behind `time`, or the one before it; nothing beyond the ends.
    std::optional<base::TimeNs> change(base::TimeNs time, int direction) const;

    const BatchCurve& used() const { return used_; }
    const BatchCurve& shared() const { return shared_; }
    const BatchCurve& cached() const { return cached_; }
    const BatchCurve& waste() const { return waste_; } ///< 0 to 1

private:
    struct Check {
        std::size_t event = 0;
        std::vector<std::vector<KvPoolPage>> pages;
    };
    void takePages(const profiler::MemoryTimeline& timeline);
    void takeKept(const profiler::MemoryTimeline& timeline);
    void makeWaste();

    std::vector<KvPoolGroup> groups_;
    std::vector<base::KvPageEvent> events_;
    std::vector<Check> checks_;
    std::int64_t window_ = 0;
    std::uint64_t fullToken_ = 0, slidingToken_ = 0; ///< bytes
    std::int64_t poolPages_ = 0;
    base::TimeNs begin_ = 0, end_ = 0, fullest_ = 0;
    BatchCurve used_, shared_, cached_, waste_;
    BatchCurve fullPages_, slidingPages_;   ///< bytes
    BatchCurve fullTokens_, slidingTokens_; ///< tokens kept
};
using KvPoolPtr = std::shared_ptr<const KvPool>;

/// Group, page, state, sequence, held by: the twin of the map at an instant; at most `limit` rows.
FlatTreePtr kvPoolTable(const KvPool& pool, base::TimeNs time, std::size_t limit = 10'000);
/// Name, value: what the pool holds at an instant.
FlatTreePtr kvPoolValues(const KvPool& pool, base::TimeNs time);
/// Sequence, pages of each group, shared ones: who holds most comes first.
FlatTreePtr kvPoolOwners(const KvPool& pool, base::TimeNs time, std::size_t limit = 64);
/// "Page 12, full: sequence 3, held by 2 sequences"
QString kvPoolPageWords(const KvPoolGroup& group, std::size_t number, const KvPoolPage& page);

} // namespace vitrine::ui
