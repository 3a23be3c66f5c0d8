// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/memory.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/memory/arenas.h"
#include "kernels/memory/caching_allocator.h"
#include "kernels/memory/growing.h"
#include "kernels/memory/handover.h"
#include "kernels/memory/ledger.h"
#include "kernels/memory/policies.h"

namespace vitrine::kernels {

namespace {

/// An arena whose pieces are recorded, and whose reservation fails with the full error.
class RecordedArena final : public Arena {
public:
    RecordedArena(BudgetResource& budget, Ledger& ledger, std::uint64_t bytes, const Tag& tag)
        : ledger_(ledger), arena_(budget, bytes, tag), recording_(arena_, ledger, budget) {
        ledger_.addArena(this, [this, name = "arena of " + std::string(tag.name)] {
            return ArenaUse{name, arena_.capacity(), arena_.used()};
        });
    }
    ~RecordedArena() override { ledger_.removeArena(this); }
    RecordedArena(const RecordedArena&) = delete; // the ledger has its address
    RecordedArena& operator=(const RecordedArena&) = delete;
    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override {
        return recording_.allocate(bytes, stream, tag);
    }
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override {
        recording_.deallocate(address, bytes, stream);
    }
    base::MemorySpace space() const override { return arena_.space(); }
    std::uint64_t largestFree() const override { return arena_.largestFree(); }
    std::uint64_t capacity() const override { return arena_.capacity(); }
    std::uint64_t used() const override { return arena_.used(); }

private:
    Ledger& ledger_;
    BumpArena arena_;
    RecordingResource recording_;
};

class RecordedStepArena final : public StepArena {
public:
    RecordedStepArena(BudgetResource& budget, CachingAllocator& cache, Ledger& ledger, const MemoryOptions& options)
        : budget_(budget), cache_(cache), ledger_(ledger), arena_(budget), guard_(arena_, options.guardAccess),
          recording_(options.guardBytes ? static_cast<MemoryResource&>(guard_) : arena_, ledger, budget) {
        ledger_.addArena(this, [this] { return ArenaUse{name_, arena_.capacity(), arena_.used()}; });
    }
    ~RecordedStepArena() override { ledger_.removeArena(this); }
    RecordedStepArena(const RecordedStepArena&) = delete; // the ledger has its address
    RecordedStepArena& operator=(const RecordedStepArena&) = delete;
    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override {
        return recording_.allocate(bytes, stream, tag);
    }
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override {
        recording_.deallocate(address, bytes, stream);
    }
    base::MemorySpace space() const override { return arena_.space(); }
    std::uint64_t largestFree() const override { return arena_.largestFree(); }
    std::uint64_t capacity() const override { return arena_.capacity(); }
    std::uint64_t highWater() const override { return arena_.highWater(); }
    void beginStep() override {
        arena_.beginStep();
        ledger_.beginStep();
    }
    void giveBack() override { arena_.giveBack(); }
    void ensureCapacity(std::uint64_t bytes) override;
    std::uint64_t violations() const { return guard_.violations(); }

private:
    bool grows(std::uint64_t bytes);

    BudgetResource& budget_;
    CachingAllocator& cache_;
    Ledger& ledger_;
    FirstFitArena arena_;
    GuardResource guard_;
    RecordingResource recording_;
    std::string name_; ///< who made it as large as it is
};

void RecordedStepArena::ensureCapacity(std::uint64_t bytes) {
    const std::uint64_t before = arena_.capacity();
    if (grows(bytes)) {
        name_ = arena_.capacity() > before ? ledger_.stepArenaName() : name_;
        return;
    }
    cache_.trim();
    if (grows(bytes)) {
        name_ = ledger_.stepArenaName();
        return;
    }
    const std::string asked = ledger_.stepArenaName();
    const Tag tag{base::MemoryCategory::Activations, asked, DType::U8, {}};
    const base::OutOfMemory failure = ledger_.failure(bytes, tag, budget_.limit(), budget_.largestFree());
    // Put the old reservation back, so that smaller steps can go on. If something else has taken the memory meanwhile,
    // the next step asks again.
    static_cast<void>(grows(before));
    throw failure; // NOLINT(cert-err60-cpp,misc-throw-*): copied before it is thrown, where memory is there for it
}

bool RecordedStepArena::grows(std::uint64_t bytes) {
    try {
        arena_.ensureCapacity(bytes);
        return true;
    } catch (const base::OutOfMemory&) {
        return false;
    }
}

} // namespace

struct Memory::State {
    State(std::unique_ptr<MemoryResource> deviceResource, std::unique_ptr<MemoryResource> hostResource,
          const MemoryOptions& options, Tracer& tracer)
        : handover(std::move(deviceResource)), hostUpstream(std::move(hostResource)),
          ledger(tracer, base::MemorySpace::Device), hostLedger(tracer, base::MemorySpace::Host),
          failing(handover, options.failFrom), budget(failing, options.deviceBudget, options.untracked, ledger),
          hostBudget(*hostUpstream, options.hostBudget, 0, hostLedger), cache(budget), hostCache(hostBudget),
          guard(cache, options.guardAccess),
          general(options.guardBytes ? static_cast<MemoryResource&>(guard) : cache, ledger, budget),
          hostRecording(hostCache, hostLedger, hostBudget),
          ranges{handover.addressSpace(), failing, budget, cache, ledger, options.mapUnit, onMapped(options)} {}

    /// With guard bytes what a range grows by is poisoned, so that a read before the first write shows.
    std::function<void(void*, std::uint64_t)> onMapped(const MemoryOptions& options) {
        if (!options.guardBytes && !options.onMapped) {
            return {};
        }
        return [this, poison = options.guardBytes, report = options.onMapped](void* address, std::uint64_t bytes) {
            if (poison) {
                guard.poison(address, bytes);
            }
            if (report) {
                report(bytes);
            }
        };
    }

    HandoverResource handover;
    std::unique_ptr<MemoryResource> hostUpstream;
    Ledger ledger;
    Ledger hostLedger;
    FailingResource failing;
    BudgetResource budget;
    BudgetResource hostBudget;
    CachingAllocator cache;
    CachingAllocator hostCache;
    GuardResource guard;
    RecordingResource general;
    RecordingResource hostRecording;
    RangeServices ranges;
    std::unique_ptr<RecordedStepArena> step;
    bool guarded = false;
};

Memory::Memory(std::unique_ptr<MemoryResource> device, std::unique_ptr<MemoryResource> host,
               const MemoryOptions& options, Tracer& tracer)
    : state_(std::make_unique<State>(std::move(device), std::move(host), options, tracer)) {
    state_->step = std::make_unique<RecordedStepArena>(state_->budget, state_->cache, state_->ledger, options);
    state_->guarded = options.guardBytes;
    if (options.deviceBudget != 0) {
        tracer.counter("budget_bytes", static_cast<double>(options.deviceBudget));
    }
    state_->ledger.addUntracked(options.untracked);
}

Memory::~Memory() = default;

MemoryResource& Memory::general() {
    return state_->general;
}

StepArena& Memory::step() {
    return *state_->step;
}

MemoryResource& Memory::host() {
    return state_->hostRecording;
}

std::unique_ptr<Arena> Memory::reserveArena(std::uint64_t bytes, std::string_view name) {
    const Tag tag{base::MemoryCategory::Weights, name, DType::U8, {}};
    for (const bool last : {false, true}) {
        try {
            return std::make_unique<RecordedArena>(state_->budget, state_->ledger, bytes, tag);
        } catch (const base::OutOfMemory&) {
            if (!last) {
                state_->cache.trim();
            }
        }
    }
    throw state_->ledger.failure(bytes, tag, state_->budget.limit(), state_->budget.largestFree());
}

std::unique_ptr<Arena> Memory::adoptArena(KeptReservation& block, std::string_view name) {
    const std::uint64_t bytes = block.bytes();
    const Tag tag{base::MemoryCategory::Weights, name, DType::U8, {}};
    state_->handover.offer(std::move(block));
    try {
        return std::make_unique<RecordedArena>(state_->budget, state_->ledger, bytes, tag);
    } catch (const base::OutOfMemory&) {
        block = state_->handover.withdraw();
    }
    throw state_->ledger.failure(bytes, tag, state_->budget.limit(), state_->budget.largestFree());
}

KeptReservation Memory::detachArena(std::unique_ptr<Arena> arena) noexcept {
    state_->handover.keepNext();
    arena.reset();
    return state_->handover.takeKept();
}

std::unique_ptr<GrowingRange> Memory::reserveRange(std::uint64_t capacity, const Tag& tag) {
    return std::make_unique<GrowingRange>(state_->ranges, capacity, tag);
}

void Memory::trim() noexcept {
    state_->cache.trim();
}

void Memory::trimHost() noexcept {
    state_->hostCache.trim();
}

void Memory::restartWindow() {
    state_->ledger.restartWindow();
}

const MemoryStatistics& Memory::statistics() const {
    return state_->ledger.statistics();
}

const MemoryStatistics& Memory::hostStatistics() const {
    return state_->hostLedger.statistics();
}

const StepMemory& Memory::stepMemory() const {
    return state_->ledger.stepMemory();
}

void Memory::repeatStep(const StepMemory& step) {
    state_->ledger.repeatStep(step);
}

std::uint64_t Memory::guardViolations() const {
    return state_->guard.violations() + state_->step->violations();
}

bool Memory::guarded() const {
    return state_->guarded;
}

std::uint64_t Memory::budget() const {
    return state_->budget.limit();
}

} // namespace vitrine::kernels
