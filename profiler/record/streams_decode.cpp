// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "profiler/record/column_io.h"
#include "profiler/record/stream_writer.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

using base::ColumnChunk;

namespace {

/// Reads the columns of describeAllocation.
class AllocationColumns {
public:
    explicit AllocationColumns(const ChunkReader& in)
        : id_(in.unsignedColumn("id")), address_(in.unsignedColumn("address")),
          bytes_(in.unsignedColumn("bytes", kMaxBlockBytes)), scope_(in.unsignedColumn("scope")),
          name_(in.unsignedColumn("name", std::numeric_limits<std::uint32_t>::max())),
          category_(in.unsignedColumn("category", base::kCategoryCount - 1)),
          space_(in.unsignedColumn("space", static_cast<std::uint64_t>(base::MemorySpace::Host))),
          dtype_(in.unsignedColumn("dtype", 255)), dimensions_(in.unsignedColumn("rank", base::kMaxTraceDimensions)),
          format_(in.optionalColumn(kFormatColumn, kMaxName)) {
        const auto highest = dimensions_.empty() ? dimensions_.end() : std::ranges::max_element(dimensions_);
        const std::uint64_t most = highest == dimensions_.end() ? 0 : *highest;
        for (std::size_t axis = 0; axis < most; ++axis) {
            shape_[axis] = in.signedColumn(kShapeColumns[axis]);
        }
        for (std::size_t row = 0; row < bytes_.size(); ++row) {
            if (address_[row] > std::numeric_limits<std::uint64_t>::max() - bytes_[row]) {
                throw in.damaged("address", "a block reaches beyond the end of the address space");
            }
        }
    }

    base::AllocationEvent at(std::size_t row, base::TimeNs time) const {
        base::AllocationEvent event;
        event.time = time;
        event.id = id_[row];
        event.address = address_[row];
        event.bytes = bytes_[row];
        event.scope.value = scope_[row];
        event.name.value = static_cast<std::uint32_t>(name_[row]);
        event.category = static_cast<base::MemoryCategory>(category_[row]);
        event.space = static_cast<base::MemorySpace>(space_[row]);
        event.dtype = static_cast<std::uint8_t>(dtype_[row]);
        event.dimensions = static_cast<std::uint8_t>(dimensions_[row]);
        for (std::size_t axis = 0; axis < event.dimensions; ++axis) {
            event.shape[axis] = shape_[axis][row];
        }
        event.format.value = static_cast<std::uint32_t>(format_[row]);
        return event;
    }

private:
    std::vector<std::uint64_t> id_, address_, bytes_, scope_, name_, category_, space_, dtype_, dimensions_, format_;
    std::array<std::vector<std::int64_t>, base::kMaxTraceDimensions> shape_;
};

constexpr std::uint64_t kMaxOrder = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMinInt32 = std::numeric_limits<std::int32_t>::min();

void decodeAllocations(const ChunkReader& in, EventBatch& batch) {
    const auto order = in.unsignedColumn("order", kMaxOrder);
    const auto time = in.timeColumn("time");
    const AllocationColumns columns(in);
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    batch.allocations.reserve(batch.allocations.size() + in.rows());
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.allocations.push_back({order[row], columns.at(row, time[row])});
        batch.allocations.back().event.device = static_cast<base::DeviceRank>(device[row]);
    }
}

void decodeFrees(const ChunkReader& in, EventBatch& batch) {
    const auto order = in.unsignedColumn("order", kMaxOrder);
    const auto time = in.timeColumn("time");
    const auto id = in.unsignedColumn("id");
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    batch.frees.reserve(batch.frees.size() + in.rows());
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.frees.push_back({order[row], {time[row], id[row], static_cast<base::DeviceRank>(device[row])}});
    }
}

void decodeReplays(const ChunkReader& in, EventBatch& batch) {
    const auto order = in.unsignedColumn("order", kMaxOrder);
    const auto begin = in.timeColumn("begin");
    const auto end = in.timeColumn("end");
    const auto step = in.unsignedColumn("template", kMaxName);
    const auto firstId = in.unsignedColumn("first_id");
    const auto parent = in.unsignedColumn("parent");
    const auto index = in.signedColumn("index", kMinInt32, kMaxInt32);
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        if (end[row] < begin[row]) {
            throw in.damaged("end", "a step ends before it begins");
        }
        batch.replays.push_back(
            {order[row],
             {begin[row], end[row], static_cast<std::uint32_t>(step[row]), firstId[row], base::ScopeId{parent[row]},
              static_cast<std::int32_t>(index[row]), static_cast<base::DeviceRank>(device[row])}});
    }
}

void decodeScopeBegins(const ChunkReader& in, EventBatch& batch) {
    const auto time = in.timeColumn("time");
    const auto id = in.unsignedColumn("id");
    const auto parent = in.unsignedColumn("parent");
    const auto kind = in.unsignedColumn("kind", static_cast<std::uint64_t>(base::ScopeKind::Op));
    const auto name = in.unsignedColumn("name", kMaxName);
    const auto index = in.signedColumn("index", kMinInt32, kMaxInt32);
    const auto tokens = in.signedColumn("tokens");
    const auto category = in.optionalColumn(kOpCategoryColumn, base::kCategoryCount);
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.scopeBegins.push_back(
            {time[row], base::ScopeId{id[row]}, base::ScopeId{parent[row]}, static_cast<base::ScopeKind>(kind[row]),
             base::StringId{static_cast<std::uint32_t>(name[row])}, static_cast<std::int32_t>(index[row]), tokens[row],
             static_cast<base::DeviceRank>(device[row]),
             category[row] == 0 ? base::MemoryCategory::Other : static_cast<base::MemoryCategory>(category[row] - 1)});
    }
}

void decodeScopeEnds(const ChunkReader& in, EventBatch& batch) {
    const auto time = in.timeColumn("time");
    const auto id = in.unsignedColumn("id");
    const auto bytes = in.unsignedColumn("bytes");
    const auto flops = in.unsignedColumn("flops");
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.scopeEnds.push_back(
            {time[row], base::ScopeId{id[row]}, bytes[row], flops[row], static_cast<base::DeviceRank>(device[row])});
    }
}

void decodeSpans(const ChunkReader& in, EventBatch& batch) {
    const auto begin = in.timeColumn("begin");
    const auto end = in.timeColumn("end");
    const auto lane = in.unsignedColumn("lane", kMaxName);
    const auto name = in.unsignedColumn("name", kMaxName);
    const auto scope = in.unsignedColumn("scope");
    const auto bytes = in.unsignedColumn("bytes");
    const auto flops = in.unsignedColumn("flops");
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    const auto stream = in.optionalColumn("stream", kMaxName);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.spans.push_back({begin[row], end[row], base::StringId{static_cast<std::uint32_t>(lane[row])},
                               base::StringId{static_cast<std::uint32_t>(name[row])}, base::ScopeId{scope[row]},
                               bytes[row], flops[row], static_cast<base::DeviceRank>(device[row]),
                               static_cast<std::uint32_t>(stream[row])});
    }
}

void decodeCounters(const ChunkReader& in, EventBatch& batch) {
    const auto time = in.timeColumn("time");
    const auto name = in.unsignedColumn("name", kMaxName);
    const auto value = in.realColumn("value");
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.counters.push_back({time[row], base::StringId{static_cast<std::uint32_t>(name[row])}, value[row],
                                  static_cast<base::DeviceRank>(device[row])});
    }
}

void decodeTokens(const ChunkReader& in, EventBatch& batch) {
    const auto time = in.timeColumn("time");
    const auto request = in.signedColumn("request", kMinInt32, kMaxInt32);
    const auto position = in.signedColumn("position", kMinInt32, kMaxInt32);
    const auto token = in.signedColumn("token", kMinInt32, kMaxInt32);
    const auto logprob = in.realColumn("logprob");
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.tokens.push_back({time[row], static_cast<std::int32_t>(request[row]),
                                static_cast<std::int32_t>(position[row]), static_cast<std::int32_t>(token[row]),
                                static_cast<float>(logprob[row])});
    }
}

void decodeOutOfMemory(const ChunkReader& in, EventBatch& batch) {
    const auto order = in.unsignedColumn("order", kMaxOrder);
    const auto time = in.timeColumn("time");
    const auto requested = in.unsignedColumn("requested");
    const auto budget = in.unsignedColumn("budget");
    const auto held = in.unsignedColumn("held");
    const auto largest = in.unsignedColumn("largest_free");
    const auto scope = in.unsignedColumn("scope");
    const auto name = in.unsignedColumn("name", kMaxName);
    const auto category = in.unsignedColumn("category", base::kCategoryCount - 1);
    const auto device = in.optionalColumn(kDeviceColumn, kMaxDevice);
    const auto arena = in.optionalColumn("arena", kMaxName);
    const auto arenaBytes = in.optionalColumn("arena_bytes", kMaxBlockBytes);
    const auto arenaIdle = in.optionalColumn("arena_idle", kMaxBlockBytes);
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.outOfMemory.push_back(
            {order[row],
             {time[row], requested[row], budget[row], held[row], largest[row], base::ScopeId{scope[row]},
              base::StringId{static_cast<std::uint32_t>(name[row])}, static_cast<base::MemoryCategory>(category[row]),
              static_cast<base::DeviceRank>(device[row]), base::StringId{static_cast<std::uint32_t>(arena[row])},
              arenaBytes[row], arenaIdle[row]}});
    }
}

void decodeStrings(const ChunkReader& in, EventBatch& batch) {
    const auto id = in.unsignedColumn("id", kMaxName);
    const auto text = in.textColumn("text");
    for (std::size_t row = 0; row < in.rows(); ++row) {
        batch.strings.push_back({static_cast<std::uint32_t>(id[row]), text[row]});
    }
}

class TemplateColumns {
public:
    explicit TemplateColumns(const ChunkReader& in)
        : in_(in), step_(in.unsignedColumn("template", kMaxName)), duration_(in.signedColumn("duration", 0, kMaxTime)),
          idCount_(in.unsignedColumn("id_count")), kind_(in.unsignedColumn("kind", kTemplateRowKinds - 1)),
          time_(in.signedColumn("time", 0, kMaxTime)), end_(in.signedColumn("end", 0, kMaxTime)),
          parent_(in.unsignedColumn("parent")), flops_(in.unsignedColumn("flops")),
          lane_(in.unsignedColumn("lane", kMaxName)),
          scopeKind_(in.unsignedColumn("scope_kind", static_cast<std::uint64_t>(base::ScopeKind::Op))),
          index_(in.signedColumn("index", kMinInt32, kMaxInt32)), tokens_(in.signedColumn("tokens")), blocks_(in) {}

    void read(EventBatch& batch) const {
        std::shared_ptr<base::StepTemplate> current;
        for (std::size_t row = 0; row < in_.rows(); ++row) {
            if (static_cast<TemplateRow>(kind_[row]) == TemplateRow::Header) {
                current = std::make_shared<base::StepTemplate>();
                current->id = static_cast<std::uint32_t>(step_[row]);
                current->duration = duration_[row];
                current->idCount = idCount_[row];
                batch.templates.push_back(current);
                continue;
            }
            if (!current || current->id != step_[row]) {
                throw in_.damaged("kind", "a template does not start with its header");
            }
            addEvent(*current, row);
        }
    }

private:
    void addEvent(base::StepTemplate& step, std::size_t row) const {
        const base::AllocationEvent block = blocks_.at(row, time_[row]);
        if (time_[row] > step.duration) {
            throw in_.damaged("time", "an event of a template lies outside of it");
        }
        switch (static_cast<TemplateRow>(kind_[row])) {
        case TemplateRow::Allocation:
            step.events.emplace_back(block);
            break;
        case TemplateRow::Free:
            step.events.emplace_back(base::FreeEvent{time_[row], block.id});
            break;
        case TemplateRow::ScopeBegin:
            step.events.emplace_back(
                base::ScopeBeginEvent{time_[row], base::ScopeId{block.id}, base::ScopeId{parent_[row]},
                                      static_cast<base::ScopeKind>(scopeKind_[row]), block.name,
                                      static_cast<std::int32_t>(index_[row]), tokens_[row], 0, block.category});
            break;
        case TemplateRow::ScopeEnd:
            step.events.emplace_back(
                base::ScopeEndEvent{time_[row], base::ScopeId{block.id}, block.bytes, flops_[row]});
            break;
        default:
            step.events.emplace_back(base::SpanEvent{time_[row], end_[row],
                                                     base::StringId{static_cast<std::uint32_t>(lane_[row])}, block.name,
                                                     block.scope, block.bytes, flops_[row]});
            break;
        }
    }

    const ChunkReader& in_;
    std::vector<std::uint64_t> step_;
    std::vector<std::int64_t> duration_;
    std::vector<std::uint64_t> idCount_, kind_;
    std::vector<std::int64_t> time_, end_;
    std::vector<std::uint64_t> parent_, flops_, lane_, scopeKind_;
    std::vector<std::int64_t> index_, tokens_;
    AllocationColumns blocks_;
};

void decodeTemplates(const ChunkReader& in, EventBatch& batch) {
    TemplateColumns(in).read(batch);
}

using Decode = void (*)(const ChunkReader&, EventBatch&);
constexpr std::pair<std::string_view, Decode> kDecoders[] = {
    {kStringsStream, decodeStrings},
    {kAllocationsStream, decodeAllocations},
    {kFreesStream, decodeFrees},
    {kScopeBeginsStream, decodeScopeBegins},
    {kScopeEndsStream, decodeScopeEnds},
    {kSpansStream, decodeSpans},
    {kCountersStream, decodeCounters},
    {kTokensStream, decodeTokens},
    {kOutOfMemoryStream, decodeOutOfMemory},
    {kTemplatesStream, decodeTemplates},
    {kReplaysStream, decodeReplays},
};

} // namespace

bool decodeInto(const ColumnChunk& chunk, EventBatch& batch) {
    const auto* const decoder = std::ranges::find(kDecoders, chunk.stream, &std::pair<std::string_view, Decode>::first);
    if (decoder == std::end(kDecoders)) {
        return decodeEvents<EventStreams>(chunk, batch.events);
    }
    decoder->second(ChunkReader(chunk), batch);
    return true;
}

int pyramidLevel(std::string_view stream, base::DeviceRank device) {
    const std::string end = device == 0 ? std::string() : std::string(kPyramidDevice) + std::to_string(device);
    if (!stream.starts_with(kPyramidPrefix) || !stream.ends_with(end)) {
        return -1;
    }
    stream.remove_prefix(kPyramidPrefix.size());
    stream.remove_suffix(std::min(stream.size(), end.size()));
    int level = -1;
    const auto [last, error] = std::from_chars(stream.data(), stream.data() + stream.size(), level);
    return error == std::errc() && last == stream.data() + stream.size() && level >= 0 && level < kMaxPyramidLevels
               ? level
               : -1;
}

std::vector<PyramidNode> decodePyramid(const ColumnChunk& chunk) {
    const ChunkReader in(chunk);
    const auto first = in.unsignedColumn("first_event", kMaxOrder * 64);
    const auto count = in.unsignedColumn("events", kMaxOrder * 64);
    const auto begin = in.timeColumn("begin");
    const auto end = in.timeColumn("end");
    const auto low = in.unsignedColumn("min_total");
    const auto high = in.unsignedColumn("max_total");
    const auto time = in.timeColumn("max_time");
    std::array<std::vector<std::uint64_t>, base::kCategoryCount> bytes;
    std::array<std::vector<std::uint64_t>, base::kCategoryCount> endBytes;
    for (std::size_t category = 0; category < bytes.size(); ++category) {
        const std::string name(base::categoryName(static_cast<base::MemoryCategory>(category)));
        bytes[category] = in.unsignedColumn(name);
        endBytes[category] = in.unsignedColumn("end_" + name);
    }
    std::vector<PyramidNode> nodes(in.rows());
    for (std::size_t row = 0; row < nodes.size(); ++row) {
        PyramidNode& node = nodes[row];
        node = {first[row], count[row], begin[row], end[row], low[row], high[row], time[row], {}, {}};
        std::uint64_t sum = 0;
        for (std::size_t category = 0; category < bytes.size(); ++category) {
            node.atMax[category] = bytes[category][row];
            node.atEnd[category] = endBytes[category][row];
            sum += node.atMax[category];
        }
        if (sum != node.maxTotal || node.minTotal > node.maxTotal || node.timeBegin > node.timeEnd || node.count == 0) {
            throw in.damaged("max_total", "a node of the memory pyramid contradicts itself");
        }
    }
    return nodes;
}

} // namespace vitrine::profiler
