// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Arenas: one reservation upstream, pieces inside. See memory.h for what each is for.

#include <map>
#include <memory>
#include <string>

#include "kernels/memory/memory.h"

namespace vitrine::kernels {

/// Gives out one reservation from its beginning to its end. The memory is freed with the arena.
class BumpArena final : public Arena {
public:
    BumpArena(MemoryResource& upstream, std::uint64_t capacity, const Tag& tag);
    ~BumpArena() override;
    BumpArena(const BumpArena&) = delete; // owns its reservation
    BumpArena& operator=(const BumpArena&) = delete;

    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void*, std::uint64_t, StreamRef) noexcept override {}
    base::MemorySpace space() const override { return upstream_.space(); }
    std::uint64_t largestFree() const override { return capacity_ - used_; }
    std::uint64_t capacity() const override { return capacity_; }
    std::uint64_t used() const override { return used_; }

private:
    MemoryResource& upstream_;
    std::uint64_t capacity_;
    std::uint64_t used_ = 0;
    std::byte* address_ = nullptr;
};

/// Allocates at the lowest offset that fits, in one reservation. The reservation grows only between steps.
class FirstFitArena final : public StepArena {
public:
    explicit FirstFitArena(MemoryResource& upstream) : upstream_(upstream) {}
    ~FirstFitArena() override;
    FirstFitArena(const FirstFitArena&) = delete; // owns its reservation
    FirstFitArena& operator=(const FirstFitArena&) = delete;

    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override;
    base::MemorySpace space() const override { return upstream_.space(); }
    std::uint64_t largestFree() const override;
    void ensureCapacity(std::uint64_t bytes) override;
    std::uint64_t capacity() const override { return capacity_; }
    std::uint64_t highWater() const override { return highWater_; }
    std::uint64_t used() const; ///< bytes of the pieces that are out
    void beginStep() override;
    void giveBack() override;

private:
    MemoryResource& upstream_;
    std::uint64_t capacity_ = 0;
    std::uint64_t highWater_ = 0;
    std::byte* address_ = nullptr;
    std::map<std::uint64_t, std::uint64_t> used_; ///< offset -> bytes
};

} // namespace vitrine::kernels
