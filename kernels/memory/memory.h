// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory of one context: its resources wired together, its budget and its statistics.
//
// What is asked of the device goes   request -> pool or arena -> budget -> physical resource   and counts as
// *reserved*. What tensors hold inside counts as *allocated*, by category, and is recorded in the trace. Categories
// always add up to the total, and the peak is the exact maximum over all events; untracked bytes (context, libraries)
// are in both.

#include <cstdint>
#include <memory>

#include "base/trace.h"
#include "kernels/core/tracer.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

class GrowingRange;
class KeptReservation;
struct MemoryOptions;

struct MemoryStatistics {
    std::uint64_t current = 0;
    std::uint64_t peak = 0; ///< largest total, untracked included
    std::uint64_t windowPeak = 0; ///< the same since Memory::restartWindow()
    base::CategoryBytes currentByCategory{};
    base::CategoryBytes peakByCategory{}; ///< the split at the first instant of `peak`; sums to it
    TracePlace peakPlace;                 ///< where the run was then; its name belongs to the tracer
    base::CategoryBytes maxByCategory{};  ///< each category's own maximum
    std::uint64_t reserved = 0;           ///< asked of the device, slack included
    std::uint64_t peakReserved = 0;
    std::uint64_t allocations = 0;
    std::uint64_t frees = 0;
};

/// What the tensors of a step added to what was allocated before it. All of them are freed inside the step.
struct StepMemory {
    std::uint64_t peak = 0;
    base::CategoryBytes peakByCategory{}; ///< the split at the first instant of `peak`
    base::CategoryBytes maxByCategory{};
    std::uint64_t allocations = 0;
};

/// A reservation that gives out pieces in order and takes them back together. Weights use it: its size follows from the
/// index of the checkpoint, and tensors are made in it as they arrive.
class Arena : public MemoryResource {
public:
    virtual std::uint64_t capacity() const = 0;
    virtual std::uint64_t used() const = 0;
};

/// The arena of steps. A dry run of a step gives the size that it needs, and every step that fits uses the same arena.
/// ensureCapacity() makes it large enough, so a step runs out of memory before its first kernel. An allocation takes
/// the lowest offset that fits, so the same sequence of requests gives the same addresses.
class StepArena : public MemoryResource {
public:
    virtual void ensureCapacity(std::uint64_t bytes) = 0;
    virtual std::uint64_t capacity() const = 0;
    virtual std::uint64_t highWater() const = 0; ///< of the current or last step
    virtual void beginStep() = 0;                ///< resets the high-water mark; throws Internal if pieces are out
    /// Gives the reservation back; ensureCapacity() makes another one. Graphs that were captured in it must not run
    /// again. Throws Internal if pieces are out.
    virtual void giveBack() = 0;
};

class Memory {
public:
    /// Takes the physical resources; `tracer` must outlive it.
    Memory(std::unique_ptr<MemoryResource> device, std::unique_ptr<MemoryResource> host, const MemoryOptions& options,
           Tracer& tracer);
    ~Memory();
    Memory(const Memory&) = delete; // buffers hold its resources' addresses
    Memory& operator=(const Memory&) = delete;

    /// Long-lived tensors, and everything of eager training: a caching allocator on the device.
    MemoryResource& general();
    /// Tensors of the current step.
    StepArena& step();
    /// Host memory under the host budget, recorded as MemorySpace::Host; not part of the device statistics.
    MemoryResource& host();
    /// Makes an arena of `bytes` bytes on the device. Throws OutOfMemory.
    std::unique_ptr<Arena> reserveArena(std::uint64_t bytes, std::string_view name);
    /// Makes an empty arena in a reservation that another Memory gave up. The budget and the statistics count it like a
    /// new reservation. Takes `block`; where the budget refuses it, throws OutOfMemory and leaves `block` as it was.
    std::unique_ptr<Arena> adoptArena(KeptReservation& block, std::string_view name);
    /// Gives an arena up without freeing it. Its pieces must be gone.
    KeptReservation detachArena(std::unique_ptr<Arena> arena) noexcept;

    /// Reserves addresses on the device for up to `capacity` bytes that grow in place. No memory is taken yet. Throws
    /// OutOfMemory.
    std::unique_ptr<GrowingRange> reserveRange(std::uint64_t capacity, const Tag& tag);

    /// Gives the unused segments that general() keeps for later tensors back to the device.
    void trim() noexcept;
    /// The same for host(). Work that reads or writes them must be done.
    void trimHost() noexcept;

    const MemoryStatistics& statistics() const;
    const MemoryStatistics& hostStatistics() const;
    const StepMemory& stepMemory() const; ///< of the current or last step in step()
    /// windowPeak counts from what is allocated now: for the peak of a part of a run.
    void restartWindow();
    /// Counts a step that ran without allocating its tensors, because a captured graph ran at their addresses. `step`
    /// is what the captured step allocated.
    void repeatStep(const StepMemory& step);
    std::uint64_t budget() const;
    /// How many pieces had a write outside of their bounds; 0 without guard bytes.
    std::uint64_t guardViolations() const;
    bool guarded() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
