// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Answers about a timeline that several widgets need: search, the budget, what encloses an instant.
// Pure functions over an immutable timeline; any thread.

#include <QString>
#include <optional>
#include <vector>

#include "profiler/timeline/run_timeline.h"

namespace vitrine::ui {

std::uint64_t totalBytes(const base::CategoryBytes& bytes);

/// What was typed into the search field: text, a size (">64MiB", "<1GiB", "64MiB..1GiB") or an address ("0x7f..").
class AllocationQuery {
public:
    static AllocationQuery parse(const QString& typed);
    bool empty() const { return kind_ == Kind::None; }
    bool matches(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row) const;

private:
    enum class Kind : std::uint8_t { None, Text, Size, Address };
    Kind kind_ = Kind::None;
    std::string text_;
    std::uint64_t low_ = 0, high_ = UINT64_MAX;
};

struct FoundAllocations {
    std::vector<std::size_t> rows; ///< by birth, at most the limit
    std::size_t total = 0;
};
FoundAllocations findAllocations(const profiler::RunTimeline& timeline, const AllocationQuery& query,
                                 std::size_t limit = 100'000);

/// The budget at an instant: the counter's last value, or that of an out-of-memory event, or nothing.
std::optional<std::uint64_t> budgetAt(const profiler::RunTimeline& timeline, base::TimeNs time);

/// The step that encloses an instant, and its phase; null: none.
const profiler::ScopeRow* scopeAt(const profiler::RunTimeline& timeline, base::TimeNs time, base::ScopeKind kind);

/// "step 3", "step 3, 98,304 tokens", "prefill", "layer 11"
QString scopeTitle(const profiler::RunTimeline& timeline, const profiler::ScopeRow& scope, bool withTokens);

} // namespace vitrine::ui
