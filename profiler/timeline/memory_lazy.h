// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What only the sources of the memory facet share: its row source and what it makes when it is first asked for.

#include <atomic>
#include <mutex>

#include "profiler/timeline/memory_facet.h"

namespace vitrine::profiler {

class MemoryFacet::AllocationSource final : public RowSource<AllocationRow> {
public:
    explicit AllocationSource(const MemoryFacet& memory) : memory_(memory) {}
    std::size_t rowCount() const override { return memory_.parts_.history.events.rows(); }
    AllocationRow rowAt(std::size_t index) const override { return memory_.allocation(index); }

private:
    const MemoryFacet& memory_;
};

struct MemoryFacet::Lazy {
    explicit Lazy(const MemoryFacet& memory) : allocations(memory) {}

    AllocationSource allocations;
    std::once_flag stackOnce, openOnce, openStackOnce;
    std::atomic<std::uint64_t> stackedEvents{0};
    StackLayout stack;
    ShapeList openShapes, openStackShapes;
};

} // namespace vitrine::profiler
