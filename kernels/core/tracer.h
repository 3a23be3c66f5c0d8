// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The engine's side of the trace: scopes, ids and names over the trace of a run. One tracer per context (the rank of a
// run), used by its thread. All that it records carries its rank.
//
// Levels: off records nothing; light records allocations and steps, and folds a step that repeats an earlier one into a
// StepReplayedEvent; full also records layer and op scopes of every step.
// The thread's launch scope (base/launch_scope.h) follows the innermost scope.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/trace.h"
#include "kernels/core/run_trace.h"
#include "kernels/core/tensor.h"

namespace vitrine::kernels {

enum class ProfileLevel : std::uint8_t { Off, Light, Full };

/// A step that repeats a template while its ops do not run on the host: a captured graph was launched.
struct StepReplay {
    std::uint32_t stepTemplate = 0;
    base::ScopeId scope; ///< of the step; its other scopes have the ids after it, as in the template
    base::ScopeId parent;
    std::int32_t index = -1;
    base::TimeNs begin = 0;
};

/// Where a run is: its innermost scope that is not an op.
struct TracePlace {
    std::string_view name;   ///< belongs to the tracer; empty: outside of all scopes
    std::int32_t index = -1; ///< -1: the scope has no number

    std::string text() const; ///< "backward layer 11"
};

class Tracer {
public:
    /// `foldSteps`: full mode folds repeated steps as light mode does, as is right where steps become captured graphs:
    /// ops do not run on the host then, and the device reports when they ran.
    Tracer(RunTrace& run, const base::Clock& clock, ProfileLevel level, base::DeviceRank rank = 0,
           bool foldSteps = false);
    ~Tracer();
    Tracer(const Tracer&) = delete; // scopes hold its address
    Tracer& operator=(const Tracer&) = delete;

    ProfileLevel level() const;
    bool foldsSteps() const; ///< or, when off, records none
    base::TimeNs now() const;
    base::ScopeId currentScope() const;
    /// Known at every level, also when off.
    TracePlace place() const;

    /// Says that what happens now fails: its step, layer and op are kept for failedAt(). A scope that ends by an
    /// exception does it by itself.
    void noteFailure();
    /// "decode step 12, layer 3, AllReduce": where the last failure was; empty: there was none since the last scope
    /// began. Known at every level.
    const std::string& failedAt() const;

    /// Scopes nest strictly. The name of an op must live as long as the tracer. Op scopes are skipped below Full,
    /// unless a step's first execution is being recorded. `category` is that of an op.
    base::ScopeId beginScope(base::ScopeKind kind, std::string_view name, std::int32_t index = -1,
                             std::int64_t tokens = 0, base::MemoryCategory category = base::MemoryCategory::Other);
    void endScope(base::ScopeId scope, std::uint64_t bytes = 0, std::uint64_t flops = 0);

    /// Allocation ids are unique in the run. `format` is that of base::AllocationEvent.
    std::uint64_t allocated(std::uint64_t address, std::uint64_t bytes, base::MemorySpace space,
                            base::MemoryCategory category, std::string_view name, DType dtype, const Shape& shape,
                            std::string_view format = {});
    void freed(std::uint64_t allocationId);

    void counter(std::string_view name, double value);
    void span(std::string_view lane, std::string_view name, base::TimeNs begin, base::TimeNs end, std::uint64_t bytes,
              std::uint64_t flops = 0);
    /// An event as it is, but for its device, which becomes the tracer's rank. Times and scopes are the caller's. Never
    /// folded.
    void record(base::TraceEvent event);
    /// A text for an event's field; the empty one when off.
    base::StringId intern(std::string_view text);
    /// `arena` may be empty.
    void outOfMemory(const base::OutOfMemoryEvent& event, std::string_view name, std::string_view arena);
    /// Of the step that goes on; empty: none. Belongs to the tracer, until the next step.
    std::string_view stepName() const;

    /// A step. Where steps are folded its events are held back until endStep: if the same sequence of allocations,
    /// frees and scopes (names, sizes, categories; not times) was recorded as a template, one StepReplayedEvent is
    /// written; else the step is written as it is and, when every allocation made inside was freed inside or is
    /// reported as outliving, kept as a new template. Allocations that outlive the step and spans are always written as
    /// they are, in the scopes of the replay. `repeats` false: hardly any other step will be like it (prompts of all
    /// lengths), so it becomes no template. Light mode then reports it as its scope and what it held at its peak, one
    /// block for each category, from its begin to its end.
    void beginStep(std::string_view name, std::int32_t index, std::int64_t tokens, bool repeats = true);
    void endStep();
    /// The template that the last step made or repeated; none when it was written as it is.
    std::optional<std::uint32_t> lastTemplate() const;

    /// Whether a step with this template can be reported as a replay. Always when off: it is not reported at all then.
    bool canReplay(std::optional<std::uint32_t> stepTemplate) const;
    /// Takes the ids of a replay, which are those of the trace from the start: what is launched inside a ReplayScope is
    /// known under them at once. Several replays may be under way; each is written, as one StepReplayedEvent, when it
    /// ends. It then begins no earlier than the one before it ended: the device does one after the other.
    StepReplay beginReplay(std::optional<std::uint32_t> stepTemplate, std::int32_t index);
    void endReplay(const StepReplay& replay);

    /// From here on another run is traced (RunTrace::restart), at another level: names and templates are forgotten.
    /// Outside of all scopes. Allocations that are alive were reported to the run before.
    void restart(ProfileLevel level);

private:
    friend class ReplayScope;
    struct State;
    std::unique_ptr<State> state_;
};

/// What the thread launches and waits for while it lives belongs to the replay.
class ReplayScope {
public:
    ReplayScope(Tracer& tracer, const StepReplay& replay);
    ~ReplayScope();
    ReplayScope(const ReplayScope&) = delete; // one begin, one end
    ReplayScope& operator=(const ReplayScope&) = delete;

private:
    Tracer& tracer_;
};

/// Ends its scope when it leaves, also by an exception.
class TraceScope {
public:
    TraceScope(Tracer& tracer, base::ScopeKind kind, std::string_view name, std::int32_t index = -1,
               std::int64_t tokens = 0)
        : tracer_(tracer), id_(tracer.beginScope(kind, name, index, tokens)) {}
    ~TraceScope() { tracer_.endScope(id_); }
    TraceScope(const TraceScope&) = delete; // one begin, one end
    TraceScope& operator=(const TraceScope&) = delete;

private:
    Tracer& tracer_;
    base::ScopeId id_;
};

} // namespace vitrine::kernels
