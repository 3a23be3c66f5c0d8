// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The streams of a run and how events become their chunks and come back. docs/event-streams.md lists every column.
//
// Encoders take records in the order of recording and never keep them. Decoders throw BadInput for anything that is not
// exactly what an encoder writes: a missing column, a value out of range, a template that is cut.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/column_chunk.h"
#include "base/trace.h"
#include "profiler/record/event_streams.h"

namespace vitrine::profiler {

inline constexpr std::string_view kStringsStream = "strings";
inline constexpr std::string_view kAllocationsStream = "allocations";
inline constexpr std::string_view kFreesStream = "frees";
inline constexpr std::string_view kScopeBeginsStream = "scopes.begin";
inline constexpr std::string_view kScopeEndsStream = "scopes.end";
inline constexpr std::string_view kSpansStream = "spans";
inline constexpr std::string_view kCountersStream = "counters";
inline constexpr std::string_view kTokensStream = "tokens";
inline constexpr std::string_view kOutOfMemoryStream = "oom";
inline constexpr std::string_view kTemplatesStream = "templates";
inline constexpr std::string_view kReplaysStream = "replays";
inline constexpr std::string_view kPyramidPrefix = "memory.pyramid."; ///< then the level, 0 = leaves
inline constexpr std::string_view kPyramidDevice = ".device";         ///< after the level, then the rank if it is not 0

inline constexpr int kMaxPyramidLevels = 16;

/// Rows that a chunk gets at most, except that a template is never cut.
inline constexpr std::size_t kRowsPerChunk = 32768;

/// A block has at most this many bytes, so that a step of the totals fits one word.
inline constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 56;

/// An event with its place among the memory records (allocations, frees, replays) of its run.
template <class Event> struct Ordered {
    std::uint64_t order = 0;
    Event event;
};

/// What a recorder gathered, by stream.
struct EventBatch {
    struct Text {
        std::uint32_t id = 0;
        std::string text;
    };
    std::vector<Text> strings;
    std::vector<Ordered<base::AllocationEvent>> allocations;
    std::vector<Ordered<base::FreeEvent>> frees;
    std::vector<base::ScopeBeginEvent> scopeBegins;
    std::vector<base::ScopeEndEvent> scopeEnds;
    std::vector<base::SpanEvent> spans;
    std::vector<base::CounterEvent> counters;
    std::vector<base::TokenEvent> tokens;
    std::vector<Ordered<base::OutOfMemoryEvent>> outOfMemory; ///< order: of the next memory record
    std::vector<std::shared_ptr<const base::StepTemplate>> templates;
    std::vector<Ordered<base::StepReplayedEvent>> replays;
    EventStreams::Batch events; ///< those that need nothing but a place

    template <class Event> std::vector<Event>& of() { return std::get<std::vector<Event>>(events); }
    template <class Event> const std::vector<Event>& of() const { return std::get<std::vector<Event>>(events); }

    bool empty() const;
    void clear(); ///< keeps the capacity
};

/// A node of the memory pyramid: `count` events from number `firstEvent` on.
struct PyramidNode {
    std::uint64_t firstEvent = 0;
    std::uint64_t count = 0;
    base::TimeNs timeBegin = 0; ///< of its first and last event
    base::TimeNs timeEnd = 0;
    std::uint64_t minTotal = 0; ///< over the states that its events leave
    std::uint64_t maxTotal = 0;
    base::TimeNs maxTime = 0; ///< first instant of maxTotal
    base::CategoryBytes atMax{};
    base::CategoryBytes atEnd{}; ///< after its last event
};

/// The next chunk number of each stream.
class ChunkNumbers {
public:
    std::uint64_t take(const std::string& stream);

private:
    std::vector<std::pair<std::string, std::uint64_t>> next_;
};

/// Chunks of everything in the batch; `numbers` is advanced.
std::vector<base::ColumnChunk> encodeBatch(const EventBatch& batch, ChunkNumbers& numbers);
void encodePyramid(std::span<const PyramidNode> nodes, int level, base::DeviceRank device, ChunkNumbers& numbers,
                   std::vector<base::ColumnChunk>& out);

/// Adds the rows of one chunk to `batch`. False for a stream that is none of the batch's.
bool decodeInto(const base::ColumnChunk& chunk, EventBatch& batch);

/// Whether the stream's records change the totals of memory: allocations, frees, replayed steps.
bool isMemoryStream(std::string_view stream);

/// The level of a pyramid stream of a device, -1 for other streams.
int pyramidLevel(std::string_view stream, base::DeviceRank device = 0);
/// "memory.pyramid.3", of the second device "memory.pyramid.3.device1"
std::string pyramidStream(int level, base::DeviceRank device);
std::vector<PyramidNode> decodePyramid(const base::ColumnChunk& chunk);

/// The order in which a reader should add the streams of a saved run: names, gaps and coarse pyramid levels first, so
/// that the first picture needs no events and says at once what it lacks.
std::vector<std::string> inLoadOrder(std::vector<std::string> streams);

} // namespace vitrine::profiler
