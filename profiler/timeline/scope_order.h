// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Scopes in order of their begins, which may be added in any order. Neighbouring scopes of one replay stand as a run of
// 12 bytes that reads the template; other scopes are kept one by one. ScopeRefs is immutable and may be read by any
// thread; ScopeOrder is not thread-safe.

#include <cstdint>
#include <functional>
#include <vector>

#include "profiler/record/segmented_vector.h"
#include "profiler/timeline/replayed_steps.h"
#include "profiler/timeline/run_index.h"

namespace vitrine::profiler {

struct ScopeRef {
    std::uint32_t item = 0; ///< ScopeDef, or scope of the replay's template
    std::uint32_t replay = kNoReplay;
};

/// Neighbouring scopes of one replay in the template's order, or single ones.
struct ScopeRun {
    std::uint32_t firstRef = 0;
    std::uint32_t first = 0;          ///< its first scope in the template, or among the single ones
    std::uint32_t replay = kNoReplay; ///< of single ones: none
};

/// `Column` and `Index` as in MemoryEventColumns.
template <template <class, std::size_t> class Column, class Index> class ScopeColumns {
public:
    std::size_t size() const { return refs_.size(); }
    ScopeRef operator[](std::size_t index) const { return at(runs_[runOf(index)], index); }

protected:
    std::size_t runOf(std::size_t index) const {
        return refs_.runOf(index, runs_.size(), [this](std::size_t run) { return runs_[run].firstRef; });
    }
    ScopeRef at(const ScopeRun& run, std::size_t index) const {
        const std::size_t place = index - run.firstRef + run.first;
        return run.replay == kNoReplay ? single_[place] : ScopeRef{static_cast<std::uint32_t>(place), run.replay};
    }

    Index refs_;
    Column<ScopeRun, 256> runs_;
    Column<ScopeRef, 1024> single_;
};

class ScopeRefs : public ScopeColumns<BlockView, RunIndex> {
    friend class ScopeOrder;
};

class ScopeOrder : public ScopeColumns<SegmentedVector, RunIndexBuilder> {
public:
    using BeginOf = std::function<base::TimeNs(const ScopeRef&)>;

    void add(const ScopeRef& ref) { waiting_.push_back({ref, 1, false}); }
    /// The scopes of a replay, whose begins rise.
    void addReplay(std::uint32_t replay, std::size_t scopes) {
        waiting_.push_back({{0, replay}, static_cast<std::uint32_t>(scopes), true});
    }
    /// What was added, in order. `beginOf` answers for everything that was.
    ScopeRefs view(const BeginOf& beginOf);

private:
    struct Part {
        ScopeRef ref;
        std::uint32_t count = 1;
        bool inPlace = false; ///< the scopes from `ref` on of its replay's template
        base::TimeNs begin = 0;
        std::int64_t turn = 0; ///< among those of one begin

        friend bool operator<(const Part& a, const Part& b) {
            return a.begin != b.begin ? a.begin < b.begin : a.turn < b.turn;
        }
    };

    void takeBackAfter(base::TimeNs begin, const BeginOf& beginOf, std::vector<Part>& parts);
    void merge(std::vector<Part> parts, const BeginOf& beginOf);
    void push(const Part& part);

    std::vector<Part> waiting_;
};

} // namespace vitrine::profiler
