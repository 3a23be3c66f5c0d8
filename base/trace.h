// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a run reports: event values and the sink that takes them. This is the only channel from the engine to the
// profiler. Times are nanoseconds since the run's start (base/clock.h). All sizes are bytes.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"

namespace vitrine::base {

/// Categories in their stacking order, bottom to top, the same everywhere.
enum class MemoryCategory : std::uint8_t {
    Untracked,
    Weights,
    Optimizer,
    KvCache,
    Gradients,
    Activations,
    Logits,
    Workspace,
    BlockMask,
    Comm,
    Other,
};
inline constexpr int kCategoryCount = 11;
using CategoryBytes = std::array<std::uint64_t, kCategoryCount>;

/// "untracked", "weights", "kv_cache", ...: the names of files, options and JSON.
std::string_view categoryName(MemoryCategory category);

enum class MemorySpace : std::uint8_t { Device, PinnedHost, Host };

/// A text interned by a sink; 0 is the empty text. Ids of different sinks never mix.
struct StringId {
    std::uint32_t value = 0;
    friend bool operator==(StringId, StringId) = default;
};

/// A scope of one run: step, layer or op; 0 is the run itself.
struct ScopeId {
    std::uint64_t value = 0;
    friend bool operator==(ScopeId, ScopeId) = default;
};

inline constexpr int kMaxTraceDimensions = 5;

/// The rank of an event: the number of the device that it concerns, counted from 0 in its run. A run on one device has
/// rank 0 alone. Events without one (tokens, batch steps, slots, requests, templates) concern the run as a whole.
using DeviceRank = std::uint16_t;

/// Memory was allocated for a tensor. `id` is unique in the run.
struct AllocationEvent {
    TimeNs time = 0;
    std::uint64_t id = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    ScopeId scope;
    StringId name; ///< tensor, as in the checkpoint where it has a name there: "layers.3.mlp.experts.gate_up"
    MemoryCategory category = MemoryCategory::Other;
    MemorySpace space = MemorySpace::Device;
    std::uint8_t dtype = 0;      ///< kernels::DType
    std::uint8_t dimensions = 0; ///< of the tensor; entries of `shape`
    std::array<std::int64_t, kMaxTraceDimensions> shape{};
    DeviceRank device = 0;
    /// Of a tensor that belongs to a packed weight: how that weight is stored, "INT4, groups of 128". Empty: the dtype
    /// says it all.
    StringId format;
};

struct FreeEvent {
    TimeNs time = 0;
    std::uint64_t id = 0;
    DeviceRank device = 0; ///< that of the allocation
};

enum class ScopeKind : std::uint8_t { Run, Phase, Step, Layer, Op };

/// Scopes nest. `index` is the step or layer number (-1: none), `tokens` the tokens a step or phase works on.
struct ScopeBeginEvent {
    TimeNs time = 0;
    ScopeId id;
    ScopeId parent;
    ScopeKind kind = ScopeKind::Op;
    StringId name; ///< "load", "prefill", "decode", "ExpertMlp"
    std::int32_t index = -1;
    std::int64_t tokens = 0;
    DeviceRank device = 0;
    MemoryCategory category = MemoryCategory::Other; ///< of an op: what it mostly writes; Other: nobody said it
};

/// Ends a scope; an op adds what it moved and computed.
struct ScopeEndEvent {
    TimeNs time = 0;
    ScopeId id;
    std::uint64_t bytes = 0;
    std::uint64_t flops = 0;
    DeviceRank device = 0; ///< that of the scope's begin
};

/// A stretch of work on a lane outside the scope tree: load stages "Read", "Copy", "Expand"; kernels and copies of a
/// GPU.
struct SpanEvent {
    TimeNs begin = 0;
    TimeNs end = 0;
    StringId lane;
    StringId name;
    ScopeId scope;
    std::uint64_t bytes = 0;
    std::uint64_t flops = 0;
    DeviceRank device = 0;
    std::uint32_t stream = 0; ///< of a kernel or copy: the device's stream that ran it; 0: the default one, or none
};

/// A value that holds from `time` on: "reserved_bytes", "budget_bytes", "kv_tokens.full", "tokens_per_second".
struct CounterEvent {
    TimeNs time = 0;
    StringId name;
    double value = 0;
    DeviceRank device = 0;
};

/// One token of one request.
struct TokenEvent {
    TimeNs time = 0;
    std::int32_t request = 0;
    std::int32_t position = 0;
    std::int32_t token = 0;
    float logprob = 0;
};

/// An allocation that did not fit.
struct OutOfMemoryEvent {
    TimeNs time = 0;
    std::uint64_t requested = 0;
    std::uint64_t budget = 0;
    std::uint64_t reserved = 0; ///< of the budget: tensors, untracked bytes and slack inside arenas and pools
    std::uint64_t largestFree = 0;
    ScopeId scope;
    StringId name;
    MemoryCategory category = MemoryCategory::Other;
    DeviceRank device = 0;
    StringId arena;               ///< the arena that had the most idle bytes, "arena of the prefill step"; empty: none
    std::uint64_t arenaBytes = 0; ///< its size
    std::uint64_t arenaIdle = 0;  ///< what no tensor had of it
};

struct StepTemplate;

/// Defines a template before its first replay.
struct StepTemplateEvent {
    std::shared_ptr<const StepTemplate> step;
};

/// A step that did exactly what its template says, between `begin` and `end`. Times inside scale linearly.
/// Readers expand it: allocation ids, scope ids and parents of the template are relative to `firstId`;
/// the template's root scope (relative id 0) becomes a child of `parent`, with `index` as its step number.
struct StepReplayedEvent {
    TimeNs begin = 0;
    TimeNs end = 0;
    std::uint32_t stepTemplate = 0;
    std::uint64_t firstId = 0; ///< ids firstId .. firstId + template.idCount - 1 belong to this replay
    ScopeId parent;
    std::int32_t index = -1;
    DeviceRank device = 0; ///< of everything in the replay; those inside the template do not count
};

/// One step of a batch that serves requests.
struct BatchStepEvent {
    TimeNs begin = 0; ///< steps follow each other: a step begins no earlier than the one before it ended
    TimeNs end = 0;
    std::int64_t index = 0;      ///< from 0 without gaps
    std::int32_t decodeRows = 0; ///< rows of one token that a request still wants
    std::int32_t prefillRows = 0;
    /// Rows that only fill the batch up: finished requests that step on, rows of a bucket.
    std::int32_t paddingRows = 0;
    std::int64_t prefillTokens = 0; ///< of prompts, and of what a preempted request computes again
    std::int64_t paddingTokens = 0;
    std::int32_t sampled = 0;   ///< tokens that requests got
    std::int32_t queued = 0;    ///< requests that have arrived and wait for a slot, preempted ones included
    std::int32_t running = 0;   ///< requests in slots
    std::int32_t preempted = 0; ///< of the queued ones
    std::int64_t usedPages = 0; ///< of all groups, held by sequences
    std::int64_t sharedPages = 0;
    std::int64_t cachedPages = 0; ///< held for prefixes that may come again; given away when pages are short
    std::int64_t freePages = 0;
};

/// Preempted: the slot lost its request and has none yet.
enum class SlotState : std::uint8_t { Idle, Prefill, Decode, Padding, Preempted };
inline constexpr int kSlotStateCount = 5;

/// What one slot did in neighbouring steps; slots x steps pictures are made of these.
struct SlotSpanEvent {
    TimeNs begin = 0; ///< of the first step
    TimeNs end = 0;   ///< of the last step
    std::int64_t firstStep = 0;
    std::int64_t steps = 0;
    std::int32_t slot = 0;
    std::int32_t request = -1; ///< -1: none
    SlotState state = SlotState::Idle;
    std::int64_t tokens = 0;  ///< that the request needed
    std::int64_t padding = 0; ///< tokens computed for nothing
};

enum class RequestChange : std::uint8_t {
    Arrived,
    Admitted, ///< got a slot for the first time
    FirstToken,
    Preempted,
    Resumed,
    Finished,
    Cancelled,
    Refused,
};
inline constexpr int kRequestChangeCount = 8;

/// A change in the life of one request.
struct RequestEvent {
    TimeNs time = 0; ///< below 0: before this part of the run began
    std::int32_t request = 0;
    RequestChange phase = RequestChange::Arrived;
    std::int32_t slot = -1;
    std::int64_t step = -1;  ///< -1: between steps
    std::int64_t tokens = 0; ///< Arrived: of the prompt; Resumed: kept from before; else: generated so far
    /// A text that the sink interned. Finished: "length", "stop_token"; Preempted: "recompute", "swap"; Refused: why.
    StringId reason;
    /// Admitted and Resumed: its sequence in the cache, which owns its pages until the request ends or is preempted;
    /// -1: none.
    std::int32_t sequence = -1;
};

/// Free: no sequence holds it. Cached: no sequence holds it, but its tokens are known and may serve another prompt.
enum class PageState : std::uint8_t { Free, Used, Cached };
inline constexpr int kPageStateCount = 3;

/// From here on a page of the KV cache's pool is in this state.
struct KvPageEvent {
    TimeNs time = 0;
    std::int32_t group = 0;
    std::int32_t page = 0;
    PageState state = PageState::Free;
    std::int32_t owner = -1;    ///< sequence of the cache that took it first; -1: none
    std::int32_t sequences = 0; ///< that hold it; more than one: it is shared
    DeviceRank device = 0;
};

/// One step of a training run, with everything that was computed before the trained tensors changed.
struct TrainingStepEvent {
    TimeNs begin = 0;
    TimeNs end = 0;
    std::int64_t step = 0; ///< from 1; the first one of a resumed run is the one after its checkpoint
    std::int64_t tokens = 0;
    double loss = 0; ///< mean over the tokens that count, nats; not finite in the step that a run failed at
    double learningRate = 0;
    double gradientNorm = 0; ///< before clipping
};

enum class TrainingMark : std::uint8_t {
    Evaluated, ///< the value is the loss of the validation rows
    Saved,     ///< a checkpoint was written
    Dropped,   ///< the checkpoint of this step was deleted, because only the latest ones are kept
    Resumed,   ///< the run went on from the checkpoint of this step
    Answered,  ///< the model answered the fixed prompts; the value is their number
};
inline constexpr int kTrainingMarkCount = 5;

/// What happened to a training run after one of its steps.
struct TrainingMarkEvent {
    TimeNs begin = 0; ///< and end: what it took
    TimeNs end = 0;
    std::int64_t step = 0;
    TrainingMark kind = TrainingMark::Evaluated;
    double value = 0; ///< 0 where the kind has none
};

/// An answer that a policy is trained on, with its prompt. RolloutTokenEvents with its batch and row follow.
struct RolloutEvent {
    TimeNs time = 0;
    std::int64_t batch = 0; ///< of rollouts in the run, from 1: the step that trained on it first
    std::int64_t row = 0;   ///< in the batch
    std::int64_t promptTokens = 0;
    double advantage = 0;
};

/// A token of a rollout. Log-probabilities are NaN where they are not known, as those of the prompt.
struct RolloutTokenEvent {
    TimeNs time = 0;
    std::int64_t batch = 0, row = 0, position = 0; ///< position: in the rollout, the prompt first
    std::int32_t token = 0;
    double old = 0;       ///< of the policy before the first update
    double rollout = 0;   ///< as the sampler gave it
    double reference = 0; ///< of the reference model
    StringId text;        ///< that it stands for, a text that the sink interned; empty: not known
};

/// An answer of a training step, trained on or not.
struct RolloutAnswerEvent {
    TimeNs time = 0;
    std::int64_t batch = 0;  ///< the step
    std::int64_t group = 0;  ///< in the step
    std::int64_t place = 0;  ///< in the group
    std::int64_t row = -1;   ///< of the batch's RolloutEvents; -1: it was not trained on
    std::int64_t tokens = 0; ///< that the policy said
    double reward = 0;       ///< NaN: it has none
    double judgeSeconds = 0; ///< from when its judge got it until it had the reward; NaN: not known
    StringId finish;         ///< "stop_token", "length"
};

/// Records of the run that were lost between `begin` and `end`, because they came faster than they could be kept.
/// Recorders make these themselves; a producer that loses records before they come to its sink reports them too.
struct GapEvent {
    TimeNs begin = 0; ///< times of the first and the last lost record
    TimeNs end = 0;
    std::uint64_t records = 0; ///< all that were lost
    /// Allocations, frees and replayed steps among them: totals after `begin` may be wrong.
    std::uint64_t memoryRecords = 0;
};

using TraceEvent = std::variant<AllocationEvent, FreeEvent, ScopeBeginEvent, ScopeEndEvent, SpanEvent, CounterEvent,
                                TokenEvent, OutOfMemoryEvent, StepTemplateEvent, StepReplayedEvent, BatchStepEvent,
                                SlotSpanEvent, RequestEvent, KvPageEvent, TrainingStepEvent, TrainingMarkEvent,
                                RolloutEvent, RolloutTokenEvent, RolloutAnswerEvent, GapEvent>;

/// One step's events with times relative to the step's begin and ids relative to 0.
/// Every allocation inside is freed inside: what outlives a step (KV pages) is reported by events of its own.
struct StepTemplate {
    std::uint32_t id = 0;
    TimeNs duration = 0;
    std::uint64_t idCount = 0;
    std::vector<TraceEvent> events; ///< in time order; allocations, frees, scopes and spans only
};

/// One scope of a step that has ended.
struct StepScope {
    ScopeId ran;                ///< its id while the step ran: what launchScope() said
    ScopeId recorded;           ///< its id in the trace; another one where the step is reported as a replay
    std::uint64_t relative = 0; ///< its id inside the step's template
};

/// Takes the events of one run. Thread-safe; never throws; must not call back into its caller.
class TraceSink {
public:
    virtual ~TraceSink() = default;
    virtual StringId intern(std::string_view text) = 0;
    virtual void record(const TraceEvent& event) = 0;

    /// Called on the engine's thread when a step begins and when it ends. The events of the step may be recorded later.
    /// `step` is the scope of the step while it runs. `scopes` are its scopes, its own first, when the step was
    /// compared with the templates; empty when all its events are recorded as they happened.
    virtual void stepBegins(std::string_view /*name*/, ScopeId /*step*/) {}
    virtual void stepEnded(ScopeId /*step*/, std::span<const StepScope> /*scopes*/) {}
    /// Called before the launch of a step that will be reported as a replay. `step` and the ids of its scopes are
    /// already those of the trace. Earlier steps may still be running.
    virtual void replayBegins(std::string_view /*name*/, ScopeId /*step*/) {}
};

/// Drops everything (`--profile off`).
class NullTraceSink final : public TraceSink {
public:
    StringId intern(std::string_view) override { return {}; }
    void record(const TraceEvent&) override {}
};

} // namespace vitrine::base
