// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The pool of pages of a paged KV cache over time: who holds which page, and what of the pages' bytes is kept for
// tokens. Built once from a run's events; answers for any instant without going through them. Immutable; any thread.

#include <memory>
#include <unordered_map>
#include <vector>

#include "ui/models/batching/batch_map.h"
#include "ui/models/kv_cache/kv_summary.h"

namespace vitrine::profiler {
class KvPoolSteps;
}

namespace vitrine::ui {

struct KvPoolPanel {
    base::PageState state = base::PageState::Free;
    std::int32_t owner = -1;    ///< sequence of the cache that took it first
    std::int32_t sequences = 0; ///< that hold it
    std::int32_t request = -1;  ///< whom the owner works for; -1: not known
    bool shared() const { return sequences > 1; }
};

struct KvPoolGroup {
    QString name; ///< "full", "sliding"
    bool sliding = false;
    std::int64_t pageTokens = 0;
    std::uint64_t pageBytes = 0;
    std::size_t layers = 0; ///< 0: not known
    std::size_t pages = 0;  ///< that were ever used
};

/// What a request had brought and got at one instant.
struct KvPoolRequest {
    std::int64_t prompt = 0, generated = 0; ///< tokens
};

/// Bytes that pages hold and what the formula says the tokens of the running requests need, at one instant.
struct KvPoolBytes {
    std::uint64_t full = 0, sliding = 0;
    std::uint64_t keptFull = 0, keptSliding = 0;
    std::uint64_t noWindow = 0; ///< if every layer kept all tokens

    std::uint64_t held() const { return full + sliding; }
    std::uint64_t kept() const { return keptFull + keptSliding; }
    /// Share of the pages' bytes without a token that is needed.
    double waste() const;
};

class KvPool {
public:
    /// Null when the run reported no pages.
    static std::shared_ptr<const KvPool> make(const sessions::RunInfo& run, const profiler::RunTimeline& timeline);

    const std::vector<KvPoolGroup>& groups() const { return groups_; }
    /// Pages of each group at `time`.
    std::vector<std::vector<KvPoolPanel>> at(base::TimeNs time) const;
    KvPoolBytes bytesAt(base::TimeNs time) const;
    /// Nothing for one that the run reported nothing about.
    std::optional<KvPoolRequest> requestAt(std::int32_t request, base::TimeNs time) const;
    /// The run says whose sequences are whose: what belongs to no request is padding.
    bool namesRequests() const { return namesRequests_; }
    std::int64_t poolPages() const { return poolPages_; }   ///< most that had memory; 0: not known
    std::int64_t limitPages() const { return limitPages_; } ///< that it could have come to; 0: not known
    base::TimeNs begin() const { return begin_; }
    base::TimeNs end() const { return end_; }
    base::TimeNs fullest() const { return fullest_; } ///< first instant of most used pages
    /// Instants between which a curve over the whole time is a stair: every change or, where those are many, the first,
    /// least and most of each of a few hundred equal stretches. Ascending.
    const std::vector<base::TimeNs>& moments() const { return moments_; }
    /// The next change after `time`, or the one before it; nothing beyond the ends.
    std::optional<base::TimeNs> change(base::TimeNs time, int direction) const;

    const BatchCurve& used() const { return used_; }
    const BatchCurve& shared() const { return shared_; }
    const BatchCurve& cached() const { return cached_; }
    const BatchCurve& backed() const { return backed_; } ///< pages with memory, in any state
    const BatchCurve& waste() const { return waste_; }   ///< 0 to 1

private:
    struct Check {
        std::size_t event = 0;
        std::vector<std::vector<KvPoolPanel>> pages;
    };
    struct Life {
        std::int64_t prompt = 0;
        std::vector<base::TimeNs> tokens; ///< when each came
    };
    void takePages(const profiler::RunTimeline& timeline, const profiler::KvPoolSteps& steps);
    void takeKept(const profiler::RunTimeline& timeline, const profiler::KvPoolSteps& steps);
    void makeWaste();
    void makeMoments();
    std::vector<base::TimeNs> changes() const; ///< of pages or of tokens

    std::vector<KvPoolGroup> groups_;
    std::vector<base::KvPageEvent> events_;
    std::vector<std::int32_t> requests_; ///< whom the owner of each event works for, -1: not known
    bool namesRequests_ = false;
    std::size_t checkEvery_ = 1; ///< events between two whole states
    std::vector<Check> checks_;
    std::unordered_map<std::int32_t, Life> lives_;
    std::int64_t window_ = 0;
    std::uint64_t fullToken_ = 0, slidingToken_ = 0; ///< bytes
    std::int64_t poolPages_ = 0, limitPages_ = 0;
    base::TimeNs begin_ = 0, end_ = 0, fullest_ = 0;
    std::vector<base::TimeNs> moments_;
    BatchCurve used_, shared_, cached_, backed_, waste_;
    BatchCurve fullPages_, slidingPages_;   ///< bytes
    BatchCurve fullTokens_, slidingTokens_; ///< tokens kept
};
using KvPoolPtr = std::shared_ptr<const KvPool>;

/// Group, page, state, who holds it, how many hold it, bytes: the twin of the map at an instant; at most `limit` rows.
FlatTreePtr kvPoolTable(const KvPool& pool, base::TimeNs time, std::size_t limit = 10'000);
/// Name, value: what the pool holds at an instant.
FlatTreePtr kvPoolValues(const KvPool& pool, base::TimeNs time);
/// Who, pages, shared ones, bytes: who holds most comes first. Keys are requests + 1, 0 where none is known.
FlatTreePtr kvPoolOwners(const KvPool& pool, base::TimeNs time, std::size_t limit = 64);
/// Name, value: what a request has and holds at an instant; null for one that the run reported nothing about.
FlatTreePtr kvPoolRequestTable(const KvPool& pool, std::int32_t request, base::TimeNs time);
/// "request 3", "padding"; "sequence 5" where the run does not name requests; `–` for nobody.
QString kvPoolWho(const KvPool& pool, const KvPoolPanel& page);
/// "Page 12 of the 12 full layers: request 3 (prompt 139, 40 tokens generated), room for 64 tokens, 1.5 MiB"
QString kvPoolPageText(const KvPool& pool, std::size_t group, std::size_t number, const KvPoolPanel& page,
                       base::TimeNs time);

} // namespace vitrine::ui
