// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/core/tracer.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/launch_scope.h"

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

/// FNV-1a over 64-bit words: the signature of a step's sequence of events.
class Signature {
public:
    void add(std::uint64_t word) {
        for (int shift = 0; shift < 64; shift += 8) {
            hash_ = (hash_ ^ ((word >> shift) & 0xFF)) * 0x100000001B3ULL;
        }
        ++words_;
    }
    std::uint64_t value() const { return hash_ ^ words_; }

private:
    std::uint64_t hash_ = 0xCBF29CE484222325ULL;
    std::uint64_t words_ = 0;
};

/// Splits a finished step into what its template holds (with relative ids and times) and what is written each time:
/// what outlives it, and spans, whose times are their own.
struct StepSplit {
    base::StepTemplate step;
    std::vector<TraceEvent> outliving;
    std::uint64_t signature = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> ids; ///< of the step as it ran, to relative ones
    std::vector<base::StepScope> scopes;                  ///< reported as they ran
};

} // namespace

struct Tracer::State {
    State(base::TraceSink& traceSink, const base::Clock& traceClock, ProfileLevel profileLevel, bool fold)
        : sink(&traceSink), clock(traceClock), level(profileLevel), foldSteps(fold) {}

    base::TraceSink* sink;
    const base::Clock& clock;
    ProfileLevel level;
    bool foldSteps; ///< in full mode
    std::uint64_t nextId = 1;
    struct Open {
        base::ScopeId id;
        TracePlace place;
    };
    std::vector<Open> scopes;
    std::set<std::string, std::less<>> placeNames; ///< what places view; never forgotten
    std::unordered_map<std::string, base::StringId, TextHash, std::equal_to<>> names;

    struct Template {
        std::uint64_t signature = 0;
        std::shared_ptr<const base::StepTemplate> step;
        std::string name; ///< of the step
    };
    std::vector<Template> templates;
    std::uint32_t firstTemplate = 0; ///< id of templates[0]: ids of forgotten ones do not come again
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
        const base::StringId id = sink->intern(text);
        names.emplace(std::string(text), id);
        return id;
    }

    void write(const TraceEvent& event, base::TimeNs time) {
        if (!holding) {
            sink->record(event);
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
            sink->record(event);
        }
        pending.clear();
    }

    TracePlace place() const { return scopes.empty() ? TracePlace{} : scopes.back().place; }

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

    void enter(base::ScopeId scope, const TracePlace& place) {
        scopes.push_back({scope, place});
        base::setLaunchScope(scope);
    }
    void leave() {
        if (!scopes.empty()) {
            scopes.pop_back();
        }
        base::setLaunchScope(scopes.empty() ? base::ScopeId{} : scopes.back().id);
    }

    const Template* find(std::optional<std::uint32_t> id) const {
        return id && *id >= firstTemplate && *id - firstTemplate < templates.size() ? &templates[*id - firstTemplate]
                                                                                    : nullptr;
    }

    void finishStep(base::TimeNs end);
    void reportOnce(StepSplit split, base::TimeNs end);
};

namespace {

class StepSplitter {
public:
    StepSplitter(base::ScopeId root, base::TimeNs begin) : begin_(begin) {
        ids_.emplace(root.value, 0);
        nextRelative_ = 1;
    }

    StepSplit split(const std::vector<TraceEvent>& events, base::TimeNs end) {
        born_.reserve(events.size());
        ids_.reserve(events.size());
        out_.step.events.reserve(events.size());
        for (const TraceEvent& event : events) {
            if (const auto* allocation = std::get_if<AllocationEvent>(&event)) {
                born_.emplace(allocation->id, false);
            } else if (const auto* freed = std::get_if<FreeEvent>(&event)) {
                const auto it = born_.find(freed->id);
                if (it != born_.end()) {
                    it->second = true;
                }
            }
        }
        for (const TraceEvent& event : events) {
            std::visit([&](const auto& value) { take(value); }, event);
        }
        out_.step.duration = end - begin_;
        out_.step.idCount = nextRelative_;
        out_.signature = signature_.value();
        out_.ids = std::move(ids_);
        return std::move(out_);
    }

private:
    base::TimeNs relative(base::TimeNs time) const { return time - begin_; }

    std::uint64_t relativeId(std::uint64_t id) {
        const auto [it, isNew] = ids_.emplace(id, nextRelative_);
        nextRelative_ += isNew ? 1 : 0;
        return it->second;
    }

    void take(const AllocationEvent& event) {
        if (!born_.at(event.id)) {
            out_.outliving.emplace_back(event);
            return;
        }
        AllocationEvent inside = event;
        inside.time = relative(event.time);
        inside.id = relativeId(event.id);
        inside.scope.value = relativeId(event.scope.value);
        for (const std::uint64_t word : {std::uint64_t{1}, inside.id, inside.bytes, inside.scope.value, inside.address,
                                         std::uint64_t{event.name.value}, static_cast<std::uint64_t>(event.category)}) {
            signature_.add(word);
        }
        for (const std::int64_t dim : event.shape) {
            signature_.add(static_cast<std::uint64_t>(dim));
        }
        out_.step.events.emplace_back(inside);
    }
    void take(const FreeEvent& event) {
        const auto it = born_.find(event.id);
        if (it == born_.end()) {
            out_.outliving.emplace_back(event);
            return;
        }
        const FreeEvent inside{relative(event.time), relativeId(event.id)};
        signature_.add(2);
        signature_.add(inside.id);
        out_.step.events.emplace_back(inside);
    }
    void take(const ScopeBeginEvent& event) {
        ScopeBeginEvent inside = event;
        inside.time = relative(event.time);
        inside.id.value = relativeId(event.id.value);
        const bool isRoot = inside.id.value == 0;
        inside.parent.value = isRoot ? 0 : relativeId(event.parent.value);
        inside.index = isRoot ? -1 : event.index;
        out_.scopes.push_back({event.id, event.id, inside.id.value});
        for (const std::uint64_t word :
             {std::uint64_t{3}, inside.id.value, inside.parent.value, std::uint64_t{event.name.value},
              static_cast<std::uint64_t>(event.kind), static_cast<std::uint64_t>(inside.index),
              static_cast<std::uint64_t>(event.tokens)}) {
            signature_.add(word);
        }
        out_.step.events.emplace_back(inside);
    }
    void take(const ScopeEndEvent& event) {
        // Costs may grow from step to step (attention over a longer cache); they are not part of the signature.
        ScopeEndEvent inside = event;
        inside.time = relative(event.time);
        inside.id.value = relativeId(event.id.value);
        signature_.add(4);
        signature_.add(inside.id.value);
        out_.step.events.emplace_back(inside);
    }
    template <class Other> void take(const Other& event) { out_.outliving.emplace_back(event); }

    base::TimeNs begin_;
    StepSplit out_;
    Signature signature_;
    std::uint64_t nextRelative_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> ids_;
    std::unordered_map<std::uint64_t, bool> born_; ///< allocations of the step: freed inside?
};

} // namespace

namespace {

/// What a step's own device memory came to at its peak, by category.
base::CategoryBytes peakInside(const base::StepTemplate& step) {
    std::unordered_map<std::uint64_t, const AllocationEvent*> alive;
    base::CategoryBytes now{};
    base::CategoryBytes peak{};
    std::uint64_t total = 0;
    std::uint64_t most = 0;
    for (const TraceEvent& event : step.events) {
        if (const auto* birth = std::get_if<AllocationEvent>(&event);
            birth != nullptr && birth->space == base::MemorySpace::Device) {
            alive.emplace(birth->id, birth);
            now[static_cast<std::size_t>(birth->category)] += birth->bytes;
            total += birth->bytes;
            if (total > most) {
                most = total;
                peak = now;
            }
        } else if (const auto* death = std::get_if<FreeEvent>(&event); death != nullptr && alive.contains(death->id)) {
            const AllocationEvent& gone = *alive.at(death->id);
            now[static_cast<std::size_t>(gone.category)] -= gone.bytes;
            total -= gone.bytes;
            alive.erase(death->id);
        }
    }
    return peak;
}

/// Where the step's own tensors begin.
std::uint64_t lowestAddress(const base::StepTemplate& step) {
    std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
    for (const TraceEvent& event : step.events) {
        if (const auto* birth = std::get_if<AllocationEvent>(&event)) {
            lowest = std::min(lowest, birth->address);
        }
    }
    return lowest;
}

} // namespace

/// The step as its scope and its peak.
void Tracer::State::reportOnce(StepSplit split, base::TimeNs end) {
    holding = false;
    const auto isRoot = [this](const TraceEvent& event) {
        const auto* begin = std::get_if<ScopeBeginEvent>(&event);
        return begin != nullptr && begin->id == stepScope;
    };
    const auto begin = std::find_if(pending.begin(), pending.end(), isRoot);
    if (begin != pending.end()) {
        sink->record(*begin);
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
        block.id = nextId++;
        block.address = address;
        block.bytes = peak[category];
        block.scope = stepScope;
        block.category = static_cast<base::MemoryCategory>(category);
        block.name = intern(fmt::format("step.{}", base::categoryName(block.category)));
        address += block.bytes;
        ids.push_back(block.id);
        sink->record(block);
    }
    for (TraceEvent& event : split.outliving) {
        if (auto* const allocation = std::get_if<AllocationEvent>(&event)) {
            allocation->scope = stepScope;
        } else if (auto* const span = std::get_if<base::SpanEvent>(&event)) {
            span->scope = stepScope;
        }
        sink->record(event);
    }
    for (const std::uint64_t id : ids) {
        sink->record(FreeEvent{end, id});
    }
    sink->record(ScopeEndEvent{end, stepScope, 0, 0});
    pending.clear();
    std::erase_if(split.scopes, [](const base::StepScope& scope) { return scope.relative != 0; });
    sink->stepEnded(stepScope, split.scopes);
}

void Tracer::State::finishStep(base::TimeNs end) {
    StepSplit split = StepSplitter(stepScope, stepBegin).split(pending, end);
    if (!stepRepeats && level == ProfileLevel::Light) {
        reportOnce(std::move(split), end);
        return;
    }
    if (!stepRepeats) {
        flush();
        sink->stepEnded(stepScope, split.scopes);
        return;
    }
    const auto known = std::find_if(templates.begin(), templates.end(),
                                    [&](const Template& item) { return item.signature == split.signature; });
    if (known == templates.end()) {
        const auto id = firstTemplate + static_cast<std::uint32_t>(templates.size());
        split.step.id = id;
        auto step = std::make_shared<const base::StepTemplate>(std::move(split.step));
        templates.push_back({split.signature, step, stepName});
        lastTemplate = id;
        flush();
        sink->record(base::StepTemplateEvent{std::move(step)});
        sink->stepEnded(stepScope, split.scopes);
        return;
    }
    lastTemplate = known->step->id;
    holding = false;
    pending.clear();
    const std::uint64_t firstId = nextId;
    nextId += known->step->idCount;
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
        sink->record(event);
    }
    sink->record(base::StepReplayedEvent{stepBegin, end, known->step->id, firstId, stepParent, stepIndex});
    for (base::StepScope& scope : split.scopes) {
        scope.recorded.value = firstId + scope.relative;
    }
    sink->stepEnded(stepScope, split.scopes);
}

Tracer::Tracer(base::TraceSink& sink, const base::Clock& clock, ProfileLevel level, bool foldSteps)
    : state_(std::make_unique<State>(sink, clock, level, foldSteps)) {}

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

std::string TracePlace::text() const {
    return index < 0 ? std::string(name) : fmt::format("{} {}", name, index);
}

base::ScopeId Tracer::beginScope(base::ScopeKind kind, std::string_view name, std::int32_t index, std::int64_t tokens,
                                 base::MemoryCategory category) {
    State& state = *state_;
    const TracePlace place = state.placeOf(kind, name, index);
    const bool skipped = state.level == ProfileLevel::Off ||
                         (state.level == ProfileLevel::Light && kind == base::ScopeKind::Op && !state.inStep);
    if (skipped) {
        state.enter(currentScope(), place);
        return {};
    }
    const base::ScopeId id{state.nextId++};
    const base::TimeNs time = now();
    state.write(base::ScopeBeginEvent{time, id, currentScope(), kind, state.intern(name), index, tokens, 0, category},
                time);
    state.enter(id, place);
    return id;
}

void Tracer::endScope(base::ScopeId scope, std::uint64_t bytes, std::uint64_t flops) {
    State& state = *state_;
    state.leave();
    if (scope.value != 0) {
        const base::TimeNs time = now();
        state.write(base::ScopeEndEvent{time, scope, bytes, flops}, time);
    }
}

std::uint64_t Tracer::allocated(std::uint64_t address, std::uint64_t bytes, base::MemorySpace space,
                                base::MemoryCategory category, std::string_view name, DType dtype, const Shape& shape,
                                std::string_view format) {
    State& state = *state_;
    const std::uint64_t id = state.nextId++;
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
    event.format = format.empty() ? base::StringId{} : state.intern(format);
    state.write(event, event.time);
    return id;
}

void Tracer::freed(std::uint64_t allocationId) {
    if (state_->level != ProfileLevel::Off) {
        const base::TimeNs time = now();
        state_->write(FreeEvent{time, allocationId}, time);
    }
}

void Tracer::counter(std::string_view name, double value) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(base::CounterEvent{now(), state_->intern(name), value});
    }
}

void Tracer::span(std::string_view lane, std::string_view name, base::TimeNs begin, base::TimeNs end,
                  std::uint64_t bytes, std::uint64_t flops) {
    if (state_->level != ProfileLevel::Off) {
        state_->write(
            base::SpanEvent{begin, end, state_->intern(lane), state_->intern(name), currentScope(), bytes, flops}, end);
    }
}

void Tracer::token(std::int32_t request, std::int32_t position, std::int32_t token, float logprob) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(base::TokenEvent{now(), request, position, token, logprob});
    }
}

void Tracer::batchStep(const base::BatchStepEvent& event) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(event);
    }
}

void Tracer::slotSpan(const base::SlotSpanEvent& event) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(event);
    }
}

void Tracer::request(base::RequestEvent event, std::string_view reason) {
    if (state_->level != ProfileLevel::Off) {
        event.reason = reason.empty() ? base::StringId{} : state_->intern(reason);
        state_->sink->record(event);
    }
}

void Tracer::kvPage(const base::KvPageEvent& event) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(event);
    }
}

void Tracer::trainingStep(const base::TrainingStepEvent& event) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(event);
    }
}

void Tracer::trainingMark(const base::TrainingMarkEvent& event) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(event);
    }
}

void Tracer::rollout(const base::RolloutEvent& event) {
    if (state_->level != ProfileLevel::Off) {
        state_->sink->record(event);
    }
}

void Tracer::rolloutToken(base::RolloutTokenEvent event, std::string_view text) {
    if (state_->level != ProfileLevel::Off) {
        event.text = text.empty() ? base::StringId{} : state_->intern(text);
        state_->sink->record(event);
    }
}

void Tracer::rolloutAnswer(base::RolloutAnswerEvent event, std::string_view finish) {
    if (state_->level != ProfileLevel::Off) {
        event.finish = finish.empty() ? base::StringId{} : state_->intern(finish);
        state_->sink->record(event);
    }
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
    full.name = state_->intern(name);
    full.arena = arena.empty() ? base::StringId{} : state_->intern(arena);
    state_->sink->record(full);
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
        state.sink->stepBegins(name, state.stepScope);
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
        state.sink->stepEnded(state.stepScope, {});
    }
}

std::optional<std::uint32_t> Tracer::lastTemplate() const {
    return state_->lastTemplate;
}

bool Tracer::canReplay(std::optional<std::uint32_t> stepTemplate) const {
    return state_->level == ProfileLevel::Off || state_->find(stepTemplate) != nullptr;
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
    const State::Template* known = state.find(stepTemplate);
    if (known == nullptr) {
        throw base::Internal("a replay of a step that was not recorded");
    }
    replay.stepTemplate = *stepTemplate;
    replay.scope.value = state.nextId;
    state.nextId += known->step->idCount;
    replay.index = index;
    replay.begin = now();
    state.sink->replayBegins(known->name, replay.scope);
    return replay;
}

void Tracer::endReplay(const StepReplay& replay) {
    State& state = *state_;
    if (state.level == ProfileLevel::Off) {
        return;
    }
    const base::TimeNs end = now();
    state.sink->record(base::StepReplayedEvent{std::min(std::max(replay.begin, state.replayedUntil), end), end,
                                               replay.stepTemplate, replay.scope.value, replay.parent, replay.index});
    state.replayedUntil = end;
}

void Tracer::restart(base::TraceSink& sink, ProfileLevel level) {
    State& state = *state_;
    if (state.inStep || !state.scopes.empty()) {
        throw base::Internal("another run begins inside of a scope");
    }
    state.sink = &sink;
    state.level = level;
    state.names.clear();
    state.firstTemplate += static_cast<std::uint32_t>(state.templates.size());
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
