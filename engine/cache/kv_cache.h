// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The KV cache of a model. Block tables name the pages of a sequence, so that growing adds pages and never copies. The
// pages of a group lie in one range of addresses, which is reserved when the cache is made. Memory is mapped behind
// this range as pages are needed (kernels/memory/growing.h). Addresses never change, so captured graphs stay valid
// while the cache grows.
//
// Layers of one kind form a KV group ("full", "sliding"). A page holds `pageTokens` tokens of one sequence for every
// layer of its group, laid out (layers, keys then values, pageTokens, kvHeads, headDim). Full layers grow with the
// sequence. Sliding layers keep the last window - 1 tokens in a ring, which stops growing when it is full. With the
// step's own token these make the window. A sequence of T tokens takes 2 * kvHeads * rowBytes * (fullLayers * T +
// slidingLayers * min(T, window - 1)) bytes (transformers, cache_utils.py), without the free places in its last pages.
// rowBytes is headDim * sizeof(dtype). Latent attention has one row for a token that is key and value: without the 2.
//
// A cache in FP8 (E4M3) or INT8 holds a byte for each element and a float32 scale for each token, head and half
// (kernels/ops/attention/kv_view.h): rowBytes = headDim + 4. In a page all elements come first. The scales (layers,
// keys then values, kvHeads, pageTokens) follow at the next multiple of 16. When headDim is a multiple of 16 and
// pageTokens a multiple of 4, rows of elements and the scales of a head begin at multiples of 16, and the formula is
// exact.
//
// A paged cache has one pool of pages for each group. Pages pass from one sequence to another without an allocation;
// engine/cache/page_book.h says which sequence holds which page. A pool starts with the pages that are needed, grows a
// little ahead of need up to `poolPages`, and keeps its memory until giveBack() or its end. kvPoolBytes gives the most
// bytes that all pools together take. Other kinds of caches give back the memory after their last page when sequences
// end.
//
// Sizes and order of allocations depend only on numbers of tokens, never on computed values, and are the same on every
// backend.
//
// commit() writes counters to the trace; their names do not change. "kv_tokens" is the number of tokens of all live
// sequences. "kv_bytes.full" and "kv_bytes.sliding" are the bytes of each group's pages; for a paged cache, of the
// pages in use. A paged cache also writes "kv_pool_limit_bytes" once, and "kv_pool_bytes" whenever its pools have
// grown.
//
// Where a model is divided among ranks, each rank has pages of its own heads of keys and values; ModelConfig::kvHeads
// then counts those of one rank, and so do all bytes here. Pages have the same numbers on all ranks, and the context of
// the cache is that of the leading one.
//
// A cache belongs to the thread of its context and must not outlive the context.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/kv_range.h"
#include "engine/cache/page_book.h"
#include "engine/checkpoint/model_config.h"
#include "kernels/memory/resource.h"
#include "kernels/ops/attention/kv_view.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

enum class KvCacheKind : std::uint8_t {
    Dynamic, ///< pages come as tokens come
    Static,  ///< `maxTokens` of each sequence are reserved when it is added
    Paged,   ///< pages of a pool that grows up to a limit; any sequence takes them
};

/// Tokens of a page by default. An attention kernel reads as many keys at once.
inline constexpr std::int64_t kPageTokens = 64;

struct KvCacheOptions {
    KvCacheKind kind = KvCacheKind::Dynamic;
    kernels::DType dtype = kernels::DType::BF16;
    std::int64_t pageTokens = 0; ///< 0: kPageTokens, and up to 256 for rings of a dynamic cache
    bool slidingSaves = true;    ///< false: sliding layers keep every token, as full layers do
    /// Tokens that a ring keeps beyond its window, so that trim() can drop the newest ones. 0: nothing that a full ring
    /// has taken can be dropped.
    std::int64_t rollBackTokens = 0;
    std::int64_t maxTokens = 0; ///< the most tokens of one sequence; needed by Static; 0: unlimited
    // Paged:
    std::int64_t poolPages = 0;     ///< the most pages of each group that grows
    std::int64_t poolSequences = 0; ///< the number of sequences whose rings fit into the pool at the same time
    bool sharePrefixes = false;     ///< see PageBook
    /// A pool grows by so many bytes more than it needs, or by a sixteenth of the free memory when that is less. Each
    /// call of the driver takes time, however many bytes it maps.
    std::uint64_t aheadBytes = std::uint64_t{32} << 20;
    /// A block table has room for at least so many tokens of a sequence, so that its width does not change while the
    /// sequence grows.
    std::int64_t tableTokens = 0;
    /// The ranks of the context's group each have a part of every page. False: the context alone has whole pages.
    bool everyRank = true;
};

/// `tokens` new tokens of one sequence in the coming step.
struct KvAppend {
    int sequence = 0;
    std::int64_t tokens = 0;
    /// False for rows that only fill up a batch. The step writes their keys and values into the room of the sequence,
    /// but the sequence does not get longer. The same sequence may be in several such rows.
    bool keep = true;
};

/// Layers that share pages.
struct KvGroup {
    std::string name;            ///< "full" or "sliding"
    std::vector<int> layers;     ///< layer numbers, ascending
    std::int64_t window = 0;     ///< tokens of a sliding window; 0: the layers keep all tokens
    std::int64_t ringTokens = 0; ///< tokens that a full ring keeps: window - 1, and those that can be rolled back
    std::int64_t pageTokens = 0;
    std::int64_t ringPages = 0;   ///< pages of a ring that is full; 0: the group grows without end
    std::uint64_t tokenBytes = 0; ///< of one token, all layers of the group
    std::uint64_t pageBytes = 0;
    std::uint64_t scalesAt = 0; ///< offset in a page at which the scales of a quantized cache begin

    bool ring() const { return window > 0; }
};

/// The groups of a model's layers with their pages, in the order of their first layers.
std::vector<KvGroup> kvGroups(const ModelConfig& config, const KvCacheOptions& options);
/// The most pages of a group in the pool of a paged cache.
std::int64_t kvPoolPages(const KvGroup& group, const KvCacheOptions& options);
/// The most pages that a block table can number.
std::int64_t kvMostPages(const KvGroup& group);
/// The most bytes that a paged cache allocates.
std::uint64_t kvPoolBytes(std::span<const KvGroup> groups, const KvCacheOptions& options);

/// The arrays of one group that a step needs, in host memory. They have one row for each append, in the order of the
/// appends.
struct KvTables {
    std::int64_t columns = 0;        ///< of the block table; rounded up so that it changes rarely
    std::vector<std::int32_t> pages; ///< (sequences, columns); -1: no page
    std::vector<std::int32_t> first; ///< (sequences): position of the first token that attention reads
    /// (sequences): tokens that attention reads; with the new ones, but for a ring without them.
    std::vector<std::int32_t> lengths;
    /// For a ring: the same with the new tokens, for the op that writes them.
    std::vector<std::int32_t> firstAfter, lengthsAfter;
    std::int64_t totalTokens = 0; ///< sum of lengths
};

class KvCache {
public:
    KvCache(kernels::Context& context, const ModelConfig& config, const KvCacheOptions& options);
    ~KvCache();
    KvCache(const KvCache&) = delete; // views of steps hold its pages
    KvCache& operator=(const KvCache&) = delete;

    const KvCacheOptions& options() const { return options_; }
    const std::vector<KvGroup>& groups() const { return groups_; }
    int groupOf(int layer) const { return layerGroup_[static_cast<std::size_t>(layer)]; }

    /// Adds an empty sequence and returns its number. Numbers of removed sequences are used again. Throws OutOfMemory
    /// (Static).
    int addSequence();
    void removeSequence(int sequence);
    std::int64_t length(int sequence) const; ///< tokens of the sequence so far

    /// Makes room for the coming tokens. Throws OutOfMemory, or BadInput when a sequence would exceed maxTokens. The
    /// cache is then as before, except that pages already added stay.
    void reserve(std::span<const KvAppend> appends);
    /// The tables of a step whose room was reserved.
    KvTables tables(int group, std::span<const KvAppend> appends) const;
    /// KvTables::totalTokens.
    std::int64_t tokensToRead(int group, std::span<const KvAppend> appends) const;
    /// Block table columns that `tables` will have: part of a step's signature.
    std::int64_t tableColumns(int group, std::span<const KvAppend> appends) const;
    /// A view of the keys and values of one layer. The caller fills in the tensors of the block table.
    kernels::KvView layerView(int layer, int rank = 0) const;
    /// Says that the step has written its tokens. The sequences get longer, and the counters are written.
    void commit(std::span<const KvAppend> appends);

    /// Gives the sequence `tokens` more tokens with random keys and values (normal, deviation 1). Measurements get
    /// their contexts this way, without a prefill. REQUIRES a sequence without tokens. Throws as reserve does.
    void fillRandom(int sequence, std::int64_t tokens, std::uint64_t seed);

    /// Tokens that each of `sequences` can take before a page is added; the largest number when none ever is.
    std::int64_t roomBeforeGrowth(std::span<const int> sequences) const;

    /// Drops the tokens from `length` on. A full ring can go back by `rollBackTokens` from the longest length that the
    /// sequence ever had. Throws Unsupported when a ring has lost tokens that are needed from then on.
    void trim(int sequence, std::int64_t length);

    /// The page book of a paged cache; null for others. A scheduler that plans ahead takes pages in it and calls
    /// backPages() before anything is written to them. reserve() then finds them taken.
    PageBook* book() { return isPaged() ? &book_ : nullptr; }
    const PageBook* book() const { return isPaged() ? &book_ : nullptr; }
    /// Makes sure that every page that the book has opened has memory. Throws OutOfMemory.
    void backPages();
    /// Paged: gets memory for so many pages of a group before the book opens them. False where there is not enough;
    /// some of the pages may have memory then.
    bool backAhead(int group, std::int64_t pages);
    /// As backAhead(), but throws OutOfMemory and reports it to the trace when there is not enough memory.
    void requireBacked(int group, std::int64_t pages);
    /// Kind Paged: pages of the group that have memory.
    std::int64_t backedPages(int group) const { return backed_[static_cast<std::size_t>(group)]; }
    /// Ranks that have a part of the pages.
    int ranks() const { return ranges_.front()->ranks(); }
    /// Calls work(context, rank) on the thread of each of them.
    void onEveryRank(const std::function<void(kernels::Context& context, int rank)>& work) const {
        ranges_.front()->onEveryRank(work);
    }
    /// Address of a page's bytes on a rank.
    std::byte* pageData(int group, std::int32_t page, int rank = 0) const;
    void copyPage(const PageCopy& copy);
    /// The model's weights have changed: no later prompt takes over what pages hold. See PageBook::forgetPrefixes.
    void forgetPrefixes() { book_.forgetPrefixes(); }
    /// Paged: forgets prefixes and gives back the memory after the last page that a sequence holds, in the pieces that
    /// it came in; all of it where there is no sequence. The pools grow again as pages are needed. Other caches hold
    /// nothing that is not in use.
    void giveBack();
    std::uint64_t poolBytes() const; ///< allocated for the pools so far; 0 when the cache is not paged

    std::uint64_t bytes() const;          ///< of all pages; of a paged cache those that sequences hold
    std::uint64_t bytes(int group) const; ///< of one group's pages
    std::uint64_t usedBytes() const;      ///< of the tokens in the cache, by the formula above
    std::int64_t tokens() const;          ///< of all live sequences

private:
    bool isPaged() const { return options_.kind == KvCacheKind::Paged; }
    bool isStatic() const { return options_.kind == KvCacheKind::Static; }
    template <class Visit> void eachLength(Visit visit) const;
    void reserveRanges();
    void growSequence(int sequence, std::int64_t tokens);
    [[noreturn]] void throwShort(int sequence, std::int64_t tokens);
    void dropPages(int sequence, std::int64_t length);
    void reportPool();
    void copyShared();
    kernels::Tag tagOf(int group, std::int64_t pages) const;
    std::vector<std::byte> randomPage(int group, std::uint64_t seed) const;
    std::uint64_t pageStride(int group) const;
    void report();

    kernels::Context& context_;
    KvCacheOptions options_;
    std::int64_t kvHeads_ = 0;
    std::int64_t headDim_ = 0;
    std::int64_t halves_ = 2; ///< ModelConfig::kvHalves
    std::vector<KvGroup> groups_;
    std::vector<int> layerGroup_;
    std::vector<int> layerPlace_;         ///< place of a layer inside its group's page
    std::vector<std::string> names_;      ///< by group: what its memory is called
    std::vector<std::uint64_t> reported_; ///< by group: the last value of its counter
    PageBook book_{{}};
    std::vector<std::unique_ptr<KvRange>> ranges_;   ///< by group
    std::vector<std::int64_t> backed_;               ///< by group, of a paged cache: pages with memory
    std::vector<std::vector<std::int64_t>> entered_; ///< by group, the same: first page of each piece that was counted
};

} // namespace vitrine::engine
