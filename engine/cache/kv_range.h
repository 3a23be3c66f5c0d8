// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The addresses of one group's pages, on every rank that has a part of the cache. Pages have the same numbers on all of
// them, so that one page book serves them all; what a page holds is each rank's heads of keys and values.
//
// Belongs to the thread of the leading context. Where there is one rank it is that rank's GrowingRange.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/memory/growing.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

class KvRange {
public:
    /// Ranges of `bytes` addresses. `everyRank`: on all devices of the context's group. Throws OutOfMemory.
    KvRange(kernels::Context& context, bool everyRank, std::uint64_t bytes, const kernels::Tag& tag);
    ~KvRange();
    KvRange(const KvRange&) = delete; // owns ranges
    KvRange& operator=(const KvRange&) = delete;

    int ranks() const { return static_cast<int>(ranges_.size()); }
    std::byte* data(int rank = 0) const { return ranges_[static_cast<std::size_t>(rank)]->data(); }
    std::uint64_t capacity() const { return ranges_.front()->capacity(); }
    /// Bytes from the beginning on that have memory on every rank.
    std::uint64_t backed() const;

    // As those of GrowingRange, on every rank. When one rank has no memory, the others go back to what they had.
    void grow(std::uint64_t bytes, const kernels::Tag& tag);
    bool tryGrow(std::uint64_t bytes);
    void shrink(std::uint64_t bytes);
    void enter(std::uint64_t offset, std::uint64_t bytes, const kernels::Tag& tag);
    void leave(std::uint64_t offset);

    /// Calls work(context, rank) on the thread of every rank.
    void onEveryRank(const std::function<void(kernels::Context& context, int rank)>& work) const;

private:
    kernels::Context& context_;
    std::vector<std::unique_ptr<kernels::GrowingRange>> ranges_; ///< by rank
};

} // namespace vitrine::engine
