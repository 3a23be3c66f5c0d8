// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Streams of events that need nothing but a place: recorder, chunks and readers carry them by their type alone. A new
// kind of event is a struct in base/trace.h and a stream here; events<Event>() of profiler/timeline/run_events.h finds
// it then.
//
// A stream has the Event, its kName in the session, write() for the columns of a chunk and read(), which adds the rows
// of a chunk and throws BadInput for what write() would not write. docs/event-streams.md lists the columns.

#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/trace.h"

namespace vitrine::profiler {

class ColumnWriter;
class ChunkReader;

/// The steps of a batch that serves requests.
struct BatchStepStream {
    using Event = base::BatchStepEvent;
    static constexpr std::string_view kName = "batch.steps";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// What its slots did.
struct SlotSpanStream {
    using Event = base::SlotSpanEvent;
    static constexpr std::string_view kName = "batch.slots";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// Borders in the lives of its requests.
struct RequestStream {
    using Event = base::RequestEvent;
    static constexpr std::string_view kName = "batch.requests";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// Pages of the KV cache.
struct KvPageStream {
    using Event = base::KvPageEvent;
    static constexpr std::string_view kName = "kv.pages";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// The steps of a training run.
struct TrainingStepStream {
    using Event = base::TrainingStepEvent;
    static constexpr std::string_view kName = "training.steps";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// Its evaluations and checkpoints.
struct TrainingMarkStream {
    using Event = base::TrainingMarkEvent;
    static constexpr std::string_view kName = "training.marks";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// Answers that a policy was trained on.
struct RolloutStream {
    using Event = base::RolloutEvent;
    static constexpr std::string_view kName = "rl.rollouts";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// Their tokens.
struct RolloutTokenStream {
    using Event = base::RolloutTokenEvent;
    static constexpr std::string_view kName = "rl.tokens";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// All answers of its steps.
struct RolloutAnswerStream {
    using Event = base::RolloutAnswerEvent;
    static constexpr std::string_view kName = "rl.answers";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

/// Where records were lost.
struct GapStream {
    using Event = base::GapEvent;
    static constexpr std::string_view kName = "gaps";
    static void write(ColumnWriter& out, std::span<const Event> events);
    static void read(const ChunkReader& in, std::vector<Event>& events);
};

template <class... Streams> struct StreamList {
    /// The events of each stream.
    using Batch = std::tuple<std::vector<typename Streams::Event>...>;
    /// A Holder for the events of each stream.
    template <template <class> class Holder> using Each = std::tuple<Holder<typename Streams::Event>...>;
    /// Calls take.template operator()<Stream>() for each, in order.
    template <class Take> static void each(Take take) { (take.template operator()<Streams>(), ...); }
};

using EventStreams = StreamList<BatchStepStream, SlotSpanStream, RequestStream, KvPageStream, TrainingStepStream,
                                TrainingMarkStream, RolloutStream, RolloutTokenStream, RolloutAnswerStream, GapStream>;

} // namespace vitrine::profiler
