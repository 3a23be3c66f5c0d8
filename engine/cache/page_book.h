// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Says which sequence holds which page of a pool of KV pages. It is the bookkeeping of a paged cache and owns no memory
// of the device.
//
// Sequences hold pages of every group. A growing group takes one page for every `pageTokens` tokens; a ring takes pages
// until it is full. A page may be held by several sequences. A sequence that writes into such a page gets a copy first
// (takeCopies).
//
// With `sharePrefixes`, whole pages are known by their tokens and by the page before them, so a prompt that begins like
// an earlier one takes its pages. Known pages that no sequence holds stay cached until pages are short. Then the
// longest unused go first, and a chain goes from its end.
//
// A ring has lost most of the shared tokens. Beside one growing group, rings are shared where they were kept
// (keepRings) when a sequence was as long as whole known pages. The pages of a kept ring are never written: the next
// writer gets copies. The pool of the ring group bounds kept rings, and the longest unused are dropped when it is
// short. Without a growing group nothing is shared.
//
// A pool may be large and get its memory later. Pages are opened in the order of their numbers, when no opened page is
// free and before any cached page is dropped. The owner of the memory reads `opened` and says with `setBacked` for how
// many pages there is memory.
//
// A PageBook is a value without threads and clocks. The time of each call is proportional to the pages that it touches.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/trace.h"

namespace vitrine::engine {

struct PageGroup {
    std::int64_t pageTokens = 1;
    std::int64_t ringPages = 0; ///< pages of a full ring; 0: grows without end
    std::int64_t pages = 0;     ///< in the pool at most
};

/// Page contents that must be copied before the next step writes.
struct PageCopy {
    int group = 0;
    std::int32_t from = 0, to = 0;
};

/// Pages of a pool by state; used, cached and free ones are those with memory, and together with the others they are
/// the pool.
struct PageCounts {
    std::int64_t used = 0;
    std::int64_t shared = 0; ///< of the used ones: held by more than one sequence
    std::int64_t cached = 0;
    std::int64_t free = 0;
    std::int64_t unbacked = 0;
};

class PageBook {
public:
    explicit PageBook(std::vector<PageGroup> groups, bool sharePrefixes = false);

    const std::vector<PageGroup>& groups() const { return groups_; }
    bool sharesPrefixes() const { return chainGroup_ >= 0; }
    /// Whether sharing needs kept rings. Then it pays to cut prompts at whole pages.
    bool sharesRings() const { return sharesPrefixes() && groups_.size() > 1; }
    /// The KV group whose pages are found by their tokens; -1: prefixes are not shared.
    int growingGroup() const { return chainGroup_; }
    /// Pages of one group that `tokens` tokens of one sequence fill.
    std::int64_t pagesFor(int group, std::int64_t tokens) const;
    /// Whether the whole pool, without `others` pages of each group, could hold a sequence of so many tokens.
    bool couldHold(std::int64_t tokens, std::int64_t others = 0) const;

    /// A new sequence without tokens; numbers of removed ones are used again.
    int addSequence();
    /// Its pages return, or stay as cached ones.
    void removeSequence(int sequence);
    /// A new sequence with the same tokens in the same pages.
    int fork(int sequence);
    bool live(int sequence) const;
    int sequences() const { return static_cast<int>(sequences_.size()); } ///< numbers are below it
    std::int64_t length(int sequence) const;
    std::int64_t longest(int sequence) const; ///< the largest length that it ever had
    std::span<const std::int32_t> pages(int sequence, int group) const;

    /// Pages that could be taken now: free and cached ones, and those that were never opened.
    std::int64_t available(int group) const;
    /// Pages of which every one was taken at some time: memory is needed for so many.
    std::int64_t opened(int group) const;
    std::int64_t openedFree(int group) const; ///< of them: held by no sequence and not kept
    /// Says that there is memory for so many pages. Without this call there is memory for all.
    void setBacked(int group, std::int64_t pages);
    /// Closes free pages at the end, which then need no memory. Returns the new value of opened().
    std::int64_t closeFree(int group);
    /// Sets the number of pages of the pool, at least as many as are opened.
    void limit(int group, std::int64_t pages);
    /// Pages of one group to be taken before `tokens` more tokens have room, copies of shared pages included.
    std::int64_t missing(int sequence, int group, std::int64_t tokens) const;
    bool canGrow(int sequence, std::int64_t tokens) const;
    /// Makes room for `tokens` more tokens. Returns false and changes nothing when pages are short.
    bool grow(int sequence, std::int64_t tokens);
    /// `tokens` more tokens are in. REQUIRES room.
    void commit(int sequence, std::int64_t tokens);
    /// Drops the tokens from `length` on. REQUIRES that no ring has lost a token that is needed from then on.
    void trim(int sequence, std::int64_t length);
    /// Copies that `grow` found necessary since the last call, in order.
    std::vector<PageCopy> takeCopies();

    /// For an empty sequence: takes the pages of the longest known beginning of `prompt` (never its last token) and
    /// returns how many tokens are in with them. Where there are rings, it is the longest beginning for which rings
    /// were kept. 0 where prefixes are not shared.
    std::int64_t adoptPrefix(int sequence, std::span<const std::int32_t> prompt);
    /// Tokens of the whole pages at the beginning of `prompt` that are known, whether rings were kept for them or not.
    std::int64_t knownPrefix(std::span<const std::int32_t> prompt) const;
    /// Whole pages of the sequence become known by their tokens; `history` holds every token that is in. Pages whose
    /// tokens are known under another page are left alone.
    void publish(int sequence, std::span<const std::int32_t> history);
    /// Forgets what all pages hold, because the model's weights have changed: no later prompt takes them over. Cached
    /// pages and kept rings become free. Live sequences stay, but their tokens never become known.
    void forgetPrefixes();
    /// Keeps the rings of a sequence as they are now. Does nothing unless rings are shared and all tokens of the
    /// sequence fill known pages.
    void keepRings(int sequence);

    PageCounts counts(int group) const;
    PageCounts counts() const; ///< of all groups
    std::uint64_t evictions() const { return evictions_; }
    std::uint64_t sharedTokens() const { return sharedTokens_; } ///< taken over by adoptPrefix so far
    /// The number of prefixes whose rings are saved now.
    std::int64_t keptRings() const { return static_cast<std::int64_t>(rings_.size()); }
    /// The share of token places in used pages that hold no token, from 0 to 1. It is the waste of last pages.
    double fragmentation() const;

    /// Pages whose state or holders changed since the last call, each once, as they are; times are 0. Kept only after
    /// the first call.
    std::vector<base::KvPageEvent> takeChanges();

private:
    struct Page {
        std::int32_t holders = 0; ///< sequences
        std::int32_t keeps = 0;   ///< kept rings that it stands in
        std::int32_t owner = -1;
        std::uint64_t chain = 0; ///< of a known page: its number in the chain; 0: not known
        std::uint64_t lastUse = 0;
    };
    struct Group {
        std::vector<Page> pages;     ///< the opened ones
        std::set<std::int32_t> free; ///< of them; the lowest is taken first
        std::int64_t backed = 0;
        std::int64_t used = 0, shared = 0;
        std::int64_t keptOnly = 0; ///< in kept rings and in no sequence
    };
    struct Sequence {
        bool live = false;
        bool outdated = false; ///< some of its tokens are from before forgetPrefixes
        std::int64_t length = 0;
        std::int64_t longest = 0;          ///< that length ever was
        std::vector<std::uint64_t> chains; ///< of its first pages: those that are known
        std::vector<std::vector<std::int32_t>> pages;
    };
    /// The tokens of a page and the number of the page before it.
    struct ChainKey {
        std::uint64_t before = 0;
        std::vector<std::int32_t> tokens;
        friend bool operator==(const ChainKey&, const ChainKey&) = default;
    };
    struct ChainHash {
        std::size_t operator()(const ChainKey& key) const;
    };
    struct Known {
        std::int32_t page = 0;
        std::uint64_t chain = 0;
    };
    struct SavedRings {
        std::vector<std::vector<std::int32_t>> pages; ///< by group, those of rings
        std::uint64_t lastUse = 0;
    };

    const Sequence& at(int sequence) const;
    Sequence& at(int sequence);
    std::int32_t take(int group, int owner);
    void hold(int group, std::int32_t page, int owner);
    void release(int group, std::int32_t page);
    void forget(std::int32_t page);
    std::vector<Known> knownPages(std::span<const std::int32_t> prompt) const;
    std::size_t longestKept(const std::vector<Known>& known, std::size_t promptTokens) const;
    void dropRings(std::uint64_t chain);
    bool dropOldestRings();
    bool ringIsShort(int sequence, std::int64_t tokens) const;
    void noteChange(int group, std::int32_t page);
    template <class Visit>
    void eachSharedWrite(const Sequence& sequence, int group, std::int64_t tokens, Visit visit) const;

    std::vector<PageGroup> groups_;
    int chainGroup_ = -1; ///< the growing group where prefixes are shared
    std::vector<Group> pools_;
    std::vector<Sequence> sequences_;
    std::set<int> freeSequences_;
    std::vector<PageCopy> copies_;
    // Of the growing group, where prefixes are shared:
    std::unordered_map<ChainKey, Known, ChainHash> known_;
    std::unordered_map<std::uint64_t, ChainKey> keys_;        ///< by chain number
    std::set<std::pair<std::uint64_t, std::int32_t>> cached_; ///< (last use, page): the first goes first
    std::map<std::uint64_t, SavedRings> rings_;               ///< by the chain number of the last page before them
    std::uint64_t nextChain_ = 1;
    std::uint64_t clock_ = 0;
    std::uint64_t evictions_ = 0;
    std::uint64_t sharedTokens_ = 0;
    bool tracks_ = false;
    std::set<std::pair<int, std::int32_t>> changed_;
};

} // namespace vitrine::engine
