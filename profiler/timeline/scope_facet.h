// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The scopes of a run: phases, steps, layers and ops, those of replayed steps expanded. Immutable; any thread may ask.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/timeline/history.h"
#include "profiler/timeline/lazy_rows.h"
#include "profiler/timeline/name_table.h"
#include "profiler/timeline/scope_store.h"
#include "profiler/timeline/timeline_rows.h"

namespace vitrine::profiler {

struct ScopeParts {
    ScopeViews scopes;
    BlockView<ReplayInfo, 256> replays;
    TemplateInfos templates;
    NameTable names;
};

class ScopeFacet {
public:
    explicit ScopeFacet(ScopeParts parts);
    ~ScopeFacet();
    ScopeFacet(const ScopeFacet&) = delete; // row views hold its address
    ScopeFacet& operator=(const ScopeFacet&) = delete;

    LazyRows<ScopeRow> all() const;    ///< by begin; steps, layers, ops, phases
    LazyRows<ScopeRow> steps() const;  ///< of them the steps alone
    LazyRows<ScopeRow> phases() const; ///< and the phases
    /// Null when there is none. The row lives as long as the timeline.
    const ScopeRow* find(std::uint64_t id) const;
    /// The same by value, of which the timeline keeps nothing: for callers that ask about many.
    std::optional<ScopeRow> row(std::uint64_t id) const;
    /// What the ops of this name mostly write, as they said; nothing in runs recorded before ops said it.
    std::optional<base::MemoryCategory> categoryOfOp(std::uint32_t name) const;
    /// "step 3 / layer 11 / ExpertMlp"
    std::string path(std::uint64_t id) const;
    /// How many scopes were looked up by id so far, however. Whoever walks the rows of a long run should need almost
    /// none.
    std::uint64_t lookups() const;

private:
    class Source;
    struct Lazy;

    ScopeRow rowOf(const ScopeRef& ref) const;
    std::optional<ScopeRef> refOf(std::uint64_t id) const;
    std::optional<std::uint32_t> replayOf(std::uint64_t id) const;

    ScopeParts parts_;
    std::unique_ptr<Lazy> lazy_;
};

} // namespace vitrine::profiler
