// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Questions about the memory of a run: which allocations match what somebody typed, and the budget at an instant. Pure
// functions over an immutable timeline; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

class RunTimeline;

/// What somebody looks for: text, a size (">64MiB", "<1GiB", "64MiB..1GiB") or an address ("0x7f..").
class AllocationQuery {
public:
    static AllocationQuery parse(std::string_view typed);
    bool empty() const { return kind_ == Kind::None; }
    /// Text matches in any case of ASCII letters, in the allocation's name and in that of its category.
    bool matches(const RunTimeline& timeline, const AllocationRow& row) const;

private:
    enum class Kind : std::uint8_t { None, Text, Size, Address };
    static std::optional<AllocationQuery> ofAddress(std::string_view typed);
    static std::optional<AllocationQuery> ofSize(std::string_view typed);

    Kind kind_ = Kind::None;
    std::string text_;
    std::uint64_t low_ = 0, high_ = UINT64_MAX;
};

struct FoundAllocations {
    std::vector<std::size_t> rows; ///< by birth, at most the limit
    std::size_t total = 0;
};
FoundAllocations findAllocations(const RunTimeline& timeline, const AllocationQuery& query,
                                 std::size_t limit = 100'000);

/// The budget at an instant: the counter's last value, or that of an out-of-memory event, or nothing.
std::optional<std::uint64_t> budgetAt(const RunTimeline& timeline, base::TimeNs time);

} // namespace vitrine::profiler
