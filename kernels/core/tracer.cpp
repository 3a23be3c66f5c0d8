// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/core/tracer.h"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/launch_scope.h"
#include "kernels/core/step_folding.h"

namespace vitrine::kernels {

namespace {

using base::AllocationEvent;
using base::FreeEvent;
using base::ScopeBeginEvent;
using base::ScopeEndEvent;
using base::TraceEvent;

/// A step longer than this writes its events as they come: a run that is killed loses at most a moment.
constexpr base::TimeNs kLongStepNs = 200'000'000;

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

} // namespace

struct Tracer::State {
    State(RunTrace& runTrace, const base::Clock& traceClock, ProfileLevel profileLevel, base::DeviceRank deviceRank,
          bool fold)
        : run(runTrace), clock(traceClock), level(profileLevel), rank(deviceRank), foldSteps(fold) {}

    RunTrace& run;
    const base::Clock& clock;
    ProfileLevel level;
    base::DeviceRank rank;
    bool foldSteps; ///< in full mode
    struct Open {
        base::ScopeId id;
        TracePlace place;
        std::string_view op; ///< empty: it is no op
    };
    std::vector<Open> scopes;
    std::string failedAt;                          ///< empty: nothing has failed since the last scope began
    std::set<std::string, std::less<>> placeNames; ///< what places view; never forgotten
    std::unordered_map<std::string, base::StringId, TextHash, std::equal_to<>> names;

    StepTemplates templates;
    std::optional<std::uint32_t> lastTemplate;
    base::TimeNs replayedUntil = 0; ///< end of the last replay

    // The current step.
    bool inStep = false;
    bool holding = false; ///< events wait in `pending` for the end of the step
    base::ScopeId stepScope;
    base::ScopeId stepParent;
    std::int32_t stepIndex = -1;
    std::string stepName;
    bool stepRepeats = true;
    base::TimeNs stepBegin = 0;
    std::vector<TraceEvent> pending;

    base::StringId intern(std::string_view text) {
        const auto it = names.find(text);
        if (it != names.end()) {
            return it->second;
        }
        const base::StringId id = run.sink().intern(text);
        names.emplace(std::string(text), id);
        return id;
    }

    void write(const TraceEvent& event, base::TimeNs time) {
        if (!holding) {
            run.sink().record(event);
            return;
        }
        pending.push_back(event);
        if (time - stepBegin > kLongStepNs) {
            flush();
        }
    }

    void flush() {
        holding = false;
        for (const TraceEvent& event : pending) {
            run.sink().record(event);
        }
        pending.clear();
    }

    TracePlace place() const { return scopes.empty() ? TracePlace{} : scopes.back().place; }

    void noteFailure() {
        if (!failedAt.empty() || scopes.empty()) {
            return;
        }
        const Open& innermost = scopes.back();
        failedAt = innermost.place.text();
        if (inStep) {
            const std::string step = fmt::format("{} step {}", stepName, stepIndex);
            const bool inside = innermost.place.name != stepName;
            failedAt = inside ? fmt::format("{}, {}", step, failedAt) : step;
        }
        if (!innermost.op.empty()) {
            failedAt += failedAt.empty() ? std::string(innermost.op) : fmt::format(", {}", innermost.op);
        }
    }

    TracePlace placeOf(base::ScopeKind kind, std::string_view name, std::int32_t index) {
        if (kind == base::ScopeKind::Op) {
            return place();
        }
        auto known = placeNames.find(name);
        if (known == placeNames.end()) {
            known = placeNames.emplace(name).first;
        }
        return {*known, index};
    }

    void enter(base::ScopeId scope, const TracePlace& place, std::string_view op = {}) {
        scopes.push_back({scope, place, op});
        failedAt.clear();
        base::setLaunchScope(scope);
    }
    void leave() {
        if (std::uncaught_exceptions() > 0) {
            noteFailure();
        }
        if (!scopes.empty()) {
            scopes.pop_back();
        }
        base::setLaunchScope(scopes.empty() ? base::ScopeId{} : scopes.back().id);
    }

    void finishStep(base::TimeNs end);
    void reportOnce(StepSplit split, base::TimeNs end);
};

/// The step as its scope and its peak.
void Tracer::State::reportOnce(StepSplit split, base::TimeNs end) {
    holding = false;
    const auto isRoot = [this](const TraceEvent& event) {
        const auto* begin = std::get_if<ScopeBeginEvent>(&event);
        return begin != nullptr && begin->id == stepScope;
    };
    const auto begin = std::find_if(pending.begin(), pending.end(), isRoot);
    if (begin != pending.end()) {
        run.sink().record(*begin);
    }
    const base::CategoryBytes peak = peakInside(split.step);
    std::uint64_t address = lowestAddress(split.step);
    std::vector<std::uint64_t> ids;
    for (std::size_t category = 0; category < peak.size(); ++category) {
        if (peak[category] == 0) {
            continue;
        }
        AllocationEvent block;
        block.time = stepBegin;
        block.id = run.takeIds();
        block.address = address;
        block.bytes = peak[category];
        block.scope = stepScope;
        block.category = static_cast<base::MemoryCategory>(category);
        block.device = rank;
        block.name = intern(fmt::format("step.{}", base::categoryName(block.category)));
        address += block.bytes;
        ids.push_back(block.id);
        run.sink().record(block);
    }
    for (TraceEvent& event : split.outliving) {
        if (auto* const allocation = std::get_if<AllocationEvent>(&event)) {
            allocation->scope = stepScope;
        } else if (auto* const span = std::get_if<base::SpanEvent>(&event)) {
            span->scope = stepScope;
        }
        run.sink().record(event);
    }
    for (const std::uint64_t id : ids) {
        run.sink().record(FreeEvent{end, id, rank});
    }
    run.sink().record(ScopeEndEvent{end, stepScope, 0, 0, rank});
    pending.clear();
    std::erase_if(split.scopes, [](const base::StepScope& scope) { return scope.relative != 0; });
    run.sink().stepEnded(stepScope, split.scopes);
}

void Tracer::State::finishStep(base::TimeNs end) {
    StepSplit split = splitStep(stepScope, stepBegin, end, pending);
    if (!stepRepeats && level == ProfileLevel::Light) {
        reportOnce(std::move(split), end);
        return;
    }
    if (!stepRepeats) {
        flush();
        run.sink().stepEnded(stepScope, split.scopes);
        return;
    }
    const StepTemplates::Entry* known = templates.bySignature(split.signature);
    if (known == nullptr) {
        split.step.id = run.takeTemplate();
        lastTemplate = split.step.id;
        const StepTemplates::Entry& made = templates.add(split.signature, std::move(split.step), stepName);
        flush();
        run.sink().record(base::StepTemplateEvent{made.step});
        run.sink().stepEnded(stepScope, split.scopes);
        return;
    }
    lastTemplate = known->step->id;
    holding = false;
    pending.clear();
    const std::uint64_t firstId = run.takeIds(known->step->idCount);
    // Scopes inside the step are reported by the replay, under the replay's ids.
    const auto retell = [&](base::ScopeId& scope) {
        const auto relative = split.ids.find(scope.value);
        scope.value = relative != split.ids.end() ? firstId + relative->second : scope.value;
    };
    for (TraceEvent& event : split.outliving) {
        if (auto* const allocation = std::get_if<AllocationEvent>(&event)) {
            retell(allocation->scope);
        } else if (auto* const span = std::get_if<base::SpanEvent>(&event)) {
            retell(span->scope);
        }
        run.sink().record(event);
    }
    run.sink().record(base::StepReplayedEvent{stepBegin, end, known->step->id, firstId, stepParent, stepIndex, rank});
    for (base::StepScope& scope : split.scopes) {
        scope.recorded.value = firstId + scope.relative;
    }
    run.sink().stepEnded(stepScope, split.scopes);
}

Tracer::Tracer(RunTrace& run, const base::Clock& clock, ProfileLevel level, base::DeviceRank rank, bool foldSteps)
    : state_(std::make_unique<State>(run, clock, level, rank, foldSteps)) {}

Tracer::~Tracer() {
    if (state_->holding) {
        state_->flush();
    }
}

ProfileLevel Tracer::level() const {
    return state_->level;
}

bool Tracer::foldsSteps() const {
    return state_->level != ProfileLevel::Full || state_->foldSteps;
}

base::TimeNs Tracer::now() const {
    return state_->clock.now();
}

base::ScopeId Tracer::currentScope() const {
    return state_->scopes.empty() ? base::ScopeId{} : state_->scopes.back().id;
}

TracePlace Tracer::place() const {
    return state_->place();
}

void Tracer::noteFailure() {
    state_->noteFailure();
}

const std::string& Tracer::failedAt() const {
    return state_->failedAt;
}

std::string TracePlace::text() const {
    return index < 0 ? std::string(name) : fmt::format("{} {}", name, index);
}

base::ScopeId Tracer::beginScope(base::ScopeKind kind, std::string_view name, std::int32_t index, std::int64_t tokens,
                                 base::MemoryCategory category) {
    State& state = *state_;
    const TracePlace place = state.placeOf(kind, name, index);
    const std::string_view op = kind == base::ScopeKind::Op ? name : std::string_view();
    const bool skipped = state.level == ProfileLevel::Off ||
                         (state.level == ProfileLevel::Light && kind == base::ScopeKind::Op && !state.inStep);
    if (skipped) {
        state.enter(currentScope(), place, op);
        return {};
    }
    const base::ScopeId id{state.run.takeIds()};
    const base::TimeNs time = now();
    state.write(
        base::ScopeBeginEvent{time, id, currentScope(), kind, state.intern(name), index, tokens, state.rank, category},
        time);
    state.enter(id, place, op);
    return id;
}

void Tracer::endScope(base::ScopeId scope, std::uint64_t bytes, std::uint64_t flops) {
    State& state = *state_;
    state.leave();
    if (scope.value != 0) {
        const base::TimeNs time = now();
        state.write(base::ScopeEndEvent{time, scope, bytes, flops, state.rank}, time);
    }
}

std::uint64_t Tracer::allocated(std::uint64_t address, std::uint64_t bytes, base::MemorySpace space,
                                base::MemoryCategory category, std::string_view name, DType dtype, const Shape& shape,
                                std::string_view format) {
    State& state = *state_;
    const std::uint64_t id = state.run.takeIds();
    if (state.level == ProfileLevel::Off) {
        return id;
    }
    AllocationEvent event;
    event.time = now();
    event.id = id;
    event.address = address;
    event.bytes = bytes;
    event.scope = currentScope();
    event.name = state.intern(name);
    event.category = category;
    event.space = space;
    event.dtype = static_cast<std::uint8_t>(dtype);
    event.dimensions = static_cast<std::uint8_t>(shape.rank());
    std::copy(shape.dims().begin(), shape.dims().end(), event.shape.begin());
    event.device = state.rank;
    event.format = intern(format);
    state.write(event, event.time);
    return id;
}

void Tracer::freed(std::uint64_t allocationId) {
    if (state_->level != ProfileLevel::Off) {
        const base::TimeNs time = now();
        state_->write(FreeEvent{time, allocationId, state_->rank}, time);
    }
}

void Tracer::counter(std::string_view name, double value) {
    if (state_->level != ProfileLevel::Off) {
        state_->run.sink().record(base::CounterEvent{now(), state_->intern(name), value, state_->rank});
    }
}

void Tracer::span(std::string_view lane, std::string_view name, base::TimeNs begin, base::TimeNs end,
                  std::uint64_t bytes, std::uint64_t flops) {
    if (state_->level != ProfileLevel::Off) {
        state_->write(base::SpanEvent{begin, end, state_->intern(lane), state_->intern(name), currentScope(), bytes,
                                      flops, state_->rank},
                      end);
    }
}

void Tracer::record(base::TraceEvent event) {
    if (state_->level == ProfileLevel::Off) {
        return;
    }
    std::visit(
        [this](auto& value) {
            if constexpr (requires { value.device; }) {
                value.device = state_->rank;
            }
        },
        event);
    state_->run.sink().record(event);
}

base::StringId Tracer::intern(std::string_view text) {
    return text.empty() || state_->level == ProfileLevel::Off ? base::StringId{} : state_->intern(text);
}

std::string_view Tracer::stepName() const {
    return state_->inStep ? std::string_view(state_->stepName) : std::string_view{};
}

void Tracer::outOfMemory(const base::OutOfMemoryEvent& event, std::string_view name, std::string_view arena) {
    if (state_->level == ProfileLevel::Off) {
        return;
    }
    if (state_->holding) {
        state_->flush();
    }
    base::OutOfMemoryEvent full = event;
    full.time = now();
    full.scope = currentScope();
    full.name = intern(name);
    full.arena = intern(arena);
    record(full);
}

void Tracer::beginStep(std::string_view name, std::int32_t index, std::int64_t tokens, bool repeats) {
    State& state = *state_;
    if (state.inStep) {
        throw base::Internal("a step began inside a step");
    }
    state.inStep = true;
    state.stepParent = currentScope();
    state.stepIndex = index;
    state.stepName = name;
    state.stepRepeats = repeats;
    state.stepBegin = now();
    state.holding = state.level != ProfileLevel::Off && foldsSteps();
    state.stepScope = beginScope(base::ScopeKind::Step, name, index, tokens);
    state.lastTemplate.reset();
    if (state.level != ProfileLevel::Off) {
        state.run.sink().stepBegins(name, state.stepScope);
    }
}

void Tracer::endStep() {
    State& state = *state_;
    if (!state.inStep) {
        return;
    }
    endScope(state.stepScope);
    state.inStep = false;
    if (state.holding) {
        state.finishStep(now());
    } else if (state.level != ProfileLevel::Off) {
        state.run.sink().stepEnded(state.stepScope, {});
    }
}

std::optional<std::uint32_t> Tracer::lastTemplate() const {
    return state_->lastTemplate;
}

bool Tracer::canReplay(std::optional<std::uint32_t> stepTemplate) const {
    return state_->level == ProfileLevel::Off || state_->templates.byId(stepTemplate) != nullptr;
}

StepReplay Tracer::beginReplay(std::optional<std::uint32_t> stepTemplate, std::int32_t index) {
    State& state = *state_;
    if (state.inStep) {
        throw base::Internal("a step began inside a step");
    }
    StepReplay replay;
    replay.scope = replay.parent = currentScope();
    if (state.level == ProfileLevel::Off) {
        return replay;
    }
    const StepTemplates::Entry* known = state.templates.byId(stepTemplate);
    if (known == nullptr) {
        throw base::Internal("a replay of a step that was not recorded");
    }
    replay.stepTemplate = *stepTemplate;
    replay.scope.value = state.run.takeIds(known->step->idCount);
    replay.index = index;
    replay.begin = now();
    state.run.sink().replayBegins(known->name, replay.scope);
    return replay;
}

void Tracer::endReplay(const StepReplay& replay) {
    State& state = *state_;
    if (state.level == ProfileLevel::Off) {
        return;
    }
    const base::TimeNs end = now();
    state.run.sink().record(base::StepReplayedEvent{std::min(std::max(replay.begin, state.replayedUntil), end), end,
                                                    replay.stepTemplate, replay.scope.value, replay.parent,
                                                    replay.index, state.rank});
    state.replayedUntil = end;
}

void Tracer::restart(ProfileLevel level) {
    State& state = *state_;
    if (state.inStep || !state.scopes.empty()) {
        throw base::Internal("another run begins inside of a scope");
    }
    state.level = level;
    state.names.clear();
    state.templates.clear();
    state.lastTemplate.reset();
}

ReplayScope::ReplayScope(Tracer& tracer, const StepReplay& replay) : tracer_(tracer) {
    tracer_.state_->enter(replay.scope, tracer_.state_->place());
}

ReplayScope::~ReplayScope() {
    tracer_.state_->leave();
}

} // namespace vitrine::kernels
