// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The KV cache of a model. Block tables name the pages of a sequence, so that growing adds pages and never copies. The
// pages of a group lie in one range of addresses that is reserved when the cache is made and backed by memory as far as
// pages are needed (kernels/memory/growing.h): its addresses never change, so that captured graphs stay valid while it
// grows.
//
// Layers of one kind form a group ("full", "sliding"); a page holds `pageTokens` tokens of one sequence for every layer
// of its group, laid out (layers, keys then values, pageTokens, kvHeads, headDim). Full layers grow with the sequence.
// Sliding layers keep the last window - 1 tokens in a ring and then stop growing: the step's own token makes the
// window. Bytes of a sequence of T tokens, up to the rest of its last page: 2 * kvHeads * rowBytes * (fullLayers * T +
// slidingLayers * min(T, window - 1)) (transformers, cache_utils.py), with rowBytes = headDim * sizeof(dtype).
//
// A cache in FP8 (E4M3) or INT8 holds a byte for each element and a float32 scale for each token, head and half
// (kernels/ops/attention/kv_view.h): rowBytes = headDim + 4. In a page all bytes come first, then, from the next
// multiple of 16 on, (layers, keys then values, kvHeads, pageTokens) scales. Rows of bytes and a head's scales thus
// begin at multiples of 16 where headDim and pageTokens are multiples of 16 and 4, and there the formula leaves no byte
// out.
//
// A paged cache takes its pages from one pool for each group, whose pages change hands without an allocation
// (engine/cache/page_book.h says who holds which). A pool starts with what is needed, grows ahead of need up to
// `poolPages`, and keeps what it has until the cache is destroyed: groups * pages * pageBytes, rounded up to the
// alignment of each page; kvPoolBytes is what that comes to at most. Other caches give back the memory after their last
// page when sequences end.
//
// Sizes and order of allocations depend on token counts alone, never on computed values; they are equal on every
// backend. Trace counters, written by `commit` (names are stable): "kv_tokens" tokens seen by all live sequences,
// "kv_bytes.full" and "kv_bytes.sliding" bytes of each group's pages; of a paged cache those in use. A paged cache also
// writes "kv_pool_limit_bytes" once, and "kv_pool_bytes" whenever its pools grew. A cache belongs to the thread of its
// context and must not outlive it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/page_book.h"
#include "engine/checkpoint/model_config.h"
#include "kernels/context/context.h"
#include "kernels/ops/attention/kv_view.h"

namespace vitrine::engine {

enum class KvCacheKind : std::uint8_t {
    Dynamic, ///< pages come as tokens come
    Static,  ///< `maxTokens` of each sequence are reserved when it is added
    Paged,   ///< pages of a pool that grows up to a limit; any sequence takes them
};

/// What a block of the attention kernels takes at a time.
inline constexpr std::int64_t kPageTokens = 64;

struct KvCacheOptions {
    KvCacheKind kind = KvCacheKind::Dynamic;
    kernels::DType dtype = kernels::DType::BF16;
    std::int64_t pageTokens = 0; ///< 0: kPageTokens, and up to 256 for rings of a dynamic cache
    bool slidingSaves = true;    ///< false: sliding layers keep every token, as full layers do
    std::int64_t maxTokens = 0;  ///< of one sequence; needed by Static, 0: unlimited
    // Paged:
    std::int64_t poolPages = 0;     ///< of each group that grows, at most
    std::int64_t poolSequences = 0; ///< whose rings have room at the same time
    bool sharePrefixes = false;     ///< see PageBook
    /// How many bytes more than needed a pool grows by, or a sixteenth of what is free where that is less. The calls of
    /// the driver cost time, not their bytes.
    std::uint64_t aheadBytes = std::uint64_t{32} << 20;
    /// Block tables are made for at least so many tokens of a sequence, so that their width does not change as it
    /// grows.
    std::int64_t tableTokens = 0;
};

/// `tokens` new tokens of one sequence in the coming step.
struct KvAppend {
    int sequence = 0;
    std::int64_t tokens = 0;
    /// False for rows that only fill a batch up: the step writes their tokens into the sequence's room, but the tokens
    /// do not count. The same sequence may then be in several rows.
    bool keep = true;
};

/// Layers that share pages.
struct KvGroup {
    std::string name;        ///< "full" or "sliding"
    std::vector<int> layers; ///< layer numbers, ascending
    std::int64_t window = 0; ///< of a ring; 0: keeps everything
    std::int64_t pageTokens = 0;
    std::int64_t ringPages = 0;   ///< pages of a full ring; 0: grows without end
    std::uint64_t tokenBytes = 0; ///< of one token, all layers of the group
    std::uint64_t pageBytes = 0;
    std::uint64_t scalesAt = 0; ///< in a page: where the scales of a quantized cache begin

    bool ring() const { return window > 0; }
};

/// The groups of a model's layers with their pages, in the order of their first layers.
std::vector<KvGroup> kvGroups(const ModelConfig& config, const KvCacheOptions& options);
/// Pages of a group in the pool of a paged cache at most.
std::int64_t kvPoolPages(const KvGroup& group, const KvCacheOptions& options);
/// The most pages that a block table can number.
std::int64_t kvMostPages(const KvGroup& group);
/// What a paged cache allocates at most.
std::uint64_t kvPoolBytes(std::span<const KvGroup> groups, const KvCacheOptions& options);

/// What a step needs of one group, as host arrays: one row for each append, in their order.
struct KvTables {
    std::int64_t columns = 0;          ///< of the block table; rounded up so that it changes rarely
    std::vector<std::int32_t> pages;   ///< (sequences, columns); -1: no page
    std::vector<std::int32_t> first;   ///< (sequences): what attention reads
    std::vector<std::int32_t> lengths; ///< (sequences): with the new tokens, or for a ring without them
    std::vector<std::int32_t> firstAfter, lengthsAfter; ///< for a ring: with the new tokens, what the write needs
    std::int64_t totalTokens = 0;                       ///< sum of lengths
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

    /// A new empty sequence; numbers of removed ones are used again. Throws OutOfMemory (Static).
    int addSequence();
    void removeSequence(int sequence);
    std::int64_t length(int sequence) const; ///< tokens seen so far

    /// Makes room for the coming tokens. Throws OutOfMemory, or BadInput when a sequence would exceed maxTokens. The
    /// cache is then as before, except that pages already added stay.
    void reserve(std::span<const KvAppend> appends);
    /// The tables of a step whose room was reserved.
    KvTables tables(int group, std::span<const KvAppend> appends) const;
    /// Block table columns that `tables` will have: part of a step's signature.
    std::int64_t tableColumns(int group, std::span<const KvAppend> appends) const;
    /// Keys and values of one layer; the table tensors are filled in by the caller.
    kernels::KvView layerView(int layer) const;
    /// The step's tokens are in: lengths advance, counters are written.
    void commit(std::span<const KvAppend> appends);

    /// Gives the sequence `tokens` more tokens with random keys and values (normal, deviation 1). Measurements get
    /// their contexts this way, without a prefill. REQUIRES a sequence without tokens. Throws as reserve does.
    void fillRandom(int sequence, std::int64_t tokens, std::uint64_t seed);

    /// Tokens that each of `sequences` can take before a page is added; the largest number when none ever is.
    std::int64_t roomBeforeGrowth(std::span<const int> sequences) const;

    /// Drops the tokens from `length` on. Throws Unsupported when a ring has already lost older tokens.
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
    /// The same, but throws OutOfMemory and reports it to the trace.
    void requireBacked(int group, std::int64_t pages);
    /// Kind Paged: pages of the group that have memory.
    std::int64_t backedPages(int group) const { return backed_[static_cast<std::size_t>(group)]; }
    /// Where a page's pageBytes lie.
    std::byte* pageData(int group, std::int32_t page) const;
    void copyPage(const PageCopy& copy);
    std::uint64_t poolBytes() const; ///< allocated for the pool so far; 0 but for a paged cache

    std::uint64_t bytes() const;          ///< of all pages; of a paged cache those that sequences hold
    std::uint64_t bytes(int group) const; ///< of one group's pages
    std::uint64_t usedBytes() const;      ///< of the tokens kept: the formula above
    std::int64_t tokens() const;          ///< seen by live sequences

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
    std::vector<KvGroup> groups_;
    std::vector<int> layerGroup_;
    std::vector<int> layerPlace_;         ///< place of a layer inside its group's page
    std::vector<std::string> names_;      ///< by group: what its memory is called
    std::vector<std::uint64_t> reported_; ///< by group: the last value of its counter
    PageBook book_{{}};
    std::vector<std::unique_ptr<kernels::GrowingRange>> ranges_; ///< by group
    std::vector<std::int64_t> backed_;                           ///< by group, of a paged cache: pages with memory
};

} // namespace vitrine::engine
