// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Memory that grows in place. A range of addresses is reserved once, and its beginning is backed by memory as far as it
// is needed. Addresses never change, so block tables, tensor views and captured graphs stay valid while it grows.
//
// What is backed counts as reserved memory of the context, against its budget, in whole units (MemoryOptions::mapUnit:
// what a GPU maps at a time). What its owner says to be in use (`enter`) counts as allocated, as tensors do. Every
// backend grows and shrinks by the same rules, so that Meta takes as many bytes as the device does.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "base/error.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

/// The physical side: addresses and the memory behind them. Belongs to its context's thread.
class AddressSpace {
public:
    virtual ~AddressSpace() = default;
    /// Reserves addresses that must not be accessed yet. Null where not enough addresses are left.
    virtual std::byte* reserve(std::uint64_t bytes) = 0;
    /// Backs a piece of a reserved range with memory, in whole units. The contents are undefined. False when there is
    /// no memory.
    virtual bool map(std::byte* address, std::uint64_t bytes) = 0;
    /// Takes back what one `map` gave, once all work under way is done.
    virtual void unmap(std::byte* address, std::uint64_t bytes) noexcept = 0;
    /// Gives up a range of which nothing is mapped.
    virtual void release(std::byte* address, std::uint64_t bytes) noexcept = 0;
};

class BudgetResource;
class CachingAllocator;
class FailingResource;
class Ledger;

/// What the ranges of one Memory share; it outlives them.
struct RangeServices {
    AddressSpace* space = nullptr;
    FailingResource& failing;
    BudgetResource& budget;
    CachingAllocator& cache; ///< gives back its unused segments before growth is refused
    Ledger& ledger;
    std::uint64_t unit = 0;
    std::function<void(void* address, std::uint64_t bytes)> mapped; ///< called for each mapped piece; may be empty
};

/// An owned range. Must not outlive the Memory that made it, and belongs to the thread of its context.
class GrowingRange {
public:
    /// `capacity`: addresses, rounded up to whole units. Throws OutOfMemory where there are not so many addresses.
    GrowingRange(const RangeServices& parts, std::uint64_t capacity, const Tag& tag);
    ~GrowingRange();
    GrowingRange(const GrowingRange&) = delete; // owns a range
    GrowingRange& operator=(const GrowingRange&) = delete;

    std::byte* data() const { return data_; }
    std::uint64_t capacity() const { return capacity_; }
    std::uint64_t backed() const { return backed_; } ///< bytes from the beginning on

    /// Backs at least the first `bytes`. Throws OutOfMemory that names `tag`; the range is then as before.
    void grow(std::uint64_t bytes, const Tag& tag);
    /// The same, but returns false instead of throwing, and reports nothing.
    bool tryGrow(std::uint64_t bytes);
    /// Gives back the memory after the first `bytes`. Only whole pieces that `grow` took are given back.
    void shrink(std::uint64_t bytes) noexcept;

    /// `bytes` at `offset`, which must be backed, are in use from here on, until leave(offset) or the end of the range.
    void enter(std::uint64_t offset, std::uint64_t bytes, const Tag& tag);
    void leave(std::uint64_t offset) noexcept;

private:
    bool mapTo(std::uint64_t bytes);
    /// `addresses`: addresses ended, not memory.
    base::OutOfMemory failure(std::uint64_t bytes, const Tag& tag, bool addresses) const;

    const RangeServices& parts_;
    std::byte* data_ = nullptr;
    std::uint64_t capacity_ = 0;
    bool limited_ = false; ///< to fewer addresses than were asked for
    std::uint64_t backed_ = 0;
    std::vector<std::uint64_t> pieces_; ///< where each ends; ascending
    std::set<std::uint64_t> entered_;   ///< offsets
};

} // namespace vitrine::kernels
