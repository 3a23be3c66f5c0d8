// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The pool of a paged cache: its memory and the copies between its pages and to the host.

#include <limits>

#include "base/error.h"
#include "engine/cache/kv_cache.h"

namespace vitrine::engine {

void KvCache::makePool() {
    std::vector<PageGroup> books;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const KvGroup& kind = groups_[group];
        const std::int64_t pages = kvPoolPages(kind, options_);
        if (pages < 1) {
            throw base::Internal("a paged KV cache needs pages");
        }
        if (static_cast<std::uint64_t>(pages) * pageStride(static_cast<int>(group)) / kernels::kMemoryAlignment >
            std::uint64_t{std::numeric_limits<std::int32_t>::max()}) {
            throw base::Unsupported("KV cache: the pool has more pages than block tables can name; take fewer");
        }
        const std::string name = "kv_cache." + kind.name;
        const kernels::Shape shape{pages, static_cast<std::int64_t>(kind.layers.size()), 2, kind.pageTokens,
                                   kvHeads_ * headDim_};
        pool_.emplace_back(context_.memory().general(),
                           static_cast<std::uint64_t>(pages) * pageStride(static_cast<int>(group)),
                           kernels::Tag{base::MemoryCategory::KvCache, name, options_.dtype, shape});
        lowestPage_[group] = static_cast<std::byte*>(pool_.back().data());
        books.push_back({kind.pageTokens, kind.ringPages, pages});
    }
    book_.emplace(std::move(books), options_.sharePrefixes);
    if (context_.tracer().level() != kernels::ProfileLevel::Off) {
        book_->takeChanges(); // from here on they are kept
    }
}

std::uint64_t KvCache::pageStride(int group) const {
    return kernels::alignedBytes(groups_[static_cast<std::size_t>(group)].pageBytes);
}

std::byte* KvCache::pageData(int group, std::int32_t page) {
    return pageAddress(group, page);
}

std::byte* KvCache::pageAddress(int group, std::int32_t page) const {
    return lowestPage_[static_cast<std::size_t>(group)] + static_cast<std::uint64_t>(page) * pageStride(group);
}

void KvCache::growPaged(const KvAppend& append) {
    if (book_->grow(append.sequence, append.tokens)) {
        return;
    }
    base::OutOfMemoryFacts facts;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const int index = static_cast<int>(group);
        if (book_->missing(append.sequence, index, append.tokens) > book_->available(index)) {
            facts.what = "kv_cache." + groups_[group].name;
            facts.requested =
                pageStride(index) * static_cast<std::uint64_t>(book_->missing(append.sequence, index, append.tokens));
            facts.budget = pool_[group].bytes();
            facts.held = pageStride(index) * static_cast<std::uint64_t>(book_->counts(index).used);
            facts.largestFree = pageStride(index) * static_cast<std::uint64_t>(book_->available(index));
            break;
        }
    }
    facts.category = base::categoryName(base::MemoryCategory::KvCache);
    throw base::OutOfMemory(facts);
}

void KvCache::copyShared() {
    if (!book_) {
        return;
    }
    for (const PageCopy& copy : book_->takeCopies()) {
        copyPage(copy);
    }
}

void KvCache::copyPage(const PageCopy& copy) {
    context_.copy(pageAddress(copy.group, copy.from), pageAddress(copy.group, copy.to),
                  groups_[static_cast<std::size_t>(copy.group)].pageBytes);
}

std::uint64_t KvCache::poolBytes() const {
    std::uint64_t total = 0;
    for (const kernels::Buffer& pool : pool_) {
        total += pool.bytes();
    }
    return total;
}

} // namespace vitrine::engine
