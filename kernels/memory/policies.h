// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Policies: small adaptors over an upstream resource.

#include <cstdint>
#include <memory>

#include "kernels/memory/ledger.h"
#include "kernels/memory/memory_options.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

/// Refuses what would exceed `limit` bytes (0: no limit); counts reservations in the ledger.
class BudgetResource final : public MemoryResource {
public:
    BudgetResource(MemoryResource& upstream, std::uint64_t limit, std::uint64_t untracked, Ledger& ledger)
        : upstream_(upstream), limit_(limit), used_(untracked), ledger_(ledger) {}
    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override;
    base::MemorySpace space() const override { return upstream_.space(); }
    std::uint64_t largestFree() const override;
    std::uint64_t limit() const { return limit_; }

    /// For memory that does not come from upstream and still counts against this budget: whether `bytes` more fit, and
    /// how much was taken or given back.
    bool fits(std::uint64_t bytes) const { return limit_ == 0 || (bytes <= limit_ && used_ <= limit_ - bytes); }
    void taken(std::uint64_t bytes);
    void given(std::uint64_t bytes);

private:
    MemoryResource& upstream_;
    std::uint64_t limit_;
    std::uint64_t used_;
    Ledger& ledger_;
};

/// Refuses every reservation from number `from` on (1 is the first; 0: none). Tests use it to see what a run does when
/// memory ends there.
class FailingResource final : public MemoryResource {
public:
    FailingResource(MemoryResource& upstream, std::uint64_t from) : upstream_(upstream), from_(from) {}
    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override {
        upstream_.deallocate(address, bytes, stream);
    }
    base::MemorySpace space() const override { return upstream_.space(); }
    std::uint64_t largestFree() const override { return upstream_.largestFree(); }
    /// Counts a request and says whether it must be refused.
    bool refuses() { return from_ != 0 && ++asked_ >= from_; }

private:
    MemoryResource& upstream_;
    std::uint64_t from_;
    std::uint64_t asked_ = 0;
};

/// Writes a pattern before and after every piece and checks it on free.
class GuardResource final : public MemoryResource {
public:
    GuardResource(MemoryResource& upstream, ByteAccess access) : upstream_(upstream), access_(std::move(access)) {}
    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override;
    base::MemorySpace space() const override { return upstream_.space(); }
    std::uint64_t largestFree() const override { return upstream_.largestFree(); }
    /// Writes the pattern over memory that has no guards.
    void poison(void* address, std::uint64_t bytes);
    /// Pieces whose pattern was found damaged; each is logged with its name.
    std::uint64_t violations() const { return violations_; }

private:
    bool intact(const std::byte* guard) const;

    MemoryResource& upstream_;
    ByteAccess access_;
    std::uint64_t violations_ = 0;
};

/// Enters every piece into the ledger; turns a refusal into the full out-of-memory error.
class RecordingResource final : public MemoryResource {
public:
    RecordingResource(MemoryResource& upstream, Ledger& ledger, const BudgetResource& budget)
        : upstream_(upstream), ledger_(ledger), budget_(budget) {}
    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override;
    base::MemorySpace space() const override { return upstream_.space(); }
    std::uint64_t largestFree() const override { return upstream_.largestFree(); }

private:
    MemoryResource& upstream_;
    Ledger& ledger_;
    const BudgetResource& budget_;
};

} // namespace vitrine::kernels
