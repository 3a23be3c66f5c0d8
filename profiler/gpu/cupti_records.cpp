// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/cupti_records.h"

namespace vitrine::profiler {

namespace {

const char* copyName(std::uint8_t kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return "host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return "device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "host to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "device to another device";
    default:
        return "device to device";
    }
}

const char* syncName(CUpti_ActivitySynchronizationType type) {
    switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
        return "wait for an event";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT:
        return "stream waits for an event";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
        return "wait for a stream";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
        return "wait for the device";
    default:
        return "wait";
    }
}

const char* overheadName(CUpti_ActivityOverheadKind kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
        return "driver compiles";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
        return "CUPTI flushes";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
        return "CUPTI instruments";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
        return "CUPTI sets up";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
        return "code is loaded";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
        return "launch queue is full";
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
        return "CUPTI asks for a buffer";
    default:
        return "overhead";
    }
}

template <class Record> const Record& as(const CUpti_Activity& record) {
    return reinterpret_cast<const Record&>(record);
}

template <class Record> DeviceWork timed(WorkKind kind, const Record& record, const char* name) {
    DeviceWork work;
    work.kind = kind;
    work.begin = static_cast<base::TimeNs>(record.start);
    work.end = static_cast<base::TimeNs>(record.end);
    work.correlation = record.correlationId;
    work.name = name;
    return work;
}

std::uint32_t count(std::int32_t value) {
    return value < 0 ? 0 : static_cast<std::uint32_t>(value);
}

DeviceWork kernelWork(const CUpti_ActivityKernel10& kernel) {
    DeviceWork work = timed(WorkKind::Kernel, kernel, kernel.name == nullptr ? "kernel" : kernel.name);
    work.stream = kernel.streamId;
    work.node = kernel.graphNodeId;
    KernelShape& shape = work.shape;
    shape.grid = {count(kernel.gridX), count(kernel.gridY), count(kernel.gridZ)};
    shape.block = {count(kernel.blockX), count(kernel.blockY), count(kernel.blockZ)};
    shape.cluster = {kernel.clusterX, kernel.clusterY, kernel.clusterZ};
    shape.registers = kernel.registersPerThread;
    shape.sharedBytes = count(kernel.staticSharedMemory) + count(kernel.dynamicSharedMemory);
    shape.localBytes = kernel.localMemoryPerThread;
    shape.maxActiveClusters = kernel.maxActiveClusters;
    return work;
}

std::optional<DeviceWork> anyWork(const CUpti_Activity& record) {
    switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        return kernelWork(as<CUpti_ActivityKernel10>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = as<CUpti_ActivityMemcpy6>(record);
        DeviceWork work = timed(WorkKind::Copy, copy, copyName(copy.copyKind));
        work.stream = copy.streamId;
        work.node = copy.graphNodeId;
        work.bytes = copy.bytes;
        return work;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& set = as<CUpti_ActivityMemset4>(record);
        DeviceWork work = timed(WorkKind::Memset, set, "fill");
        work.stream = set.streamId;
        work.node = set.graphNodeId;
        work.bytes = set.bytes;
        return work;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const auto& wait = as<CUpti_ActivitySynchronization2>(record);
        return timed(WorkKind::Sync, wait, syncName(wait.type));
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
        const auto& overhead = as<CUpti_ActivityOverhead3>(record);
        return timed(WorkKind::Overhead, overhead, overheadName(overhead.overheadKind));
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return timed(WorkKind::Graph, as<CUpti_ActivityGraphTrace2>(record), "graph");
    default:
        return std::nullopt;
    }
}

} // namespace

std::optional<DeviceWork> workOf(const CUpti_Activity& record, bool& lostTimes) {
    std::optional<DeviceWork> work = anyWork(record);
    const bool timed = work && work->begin > 0 && work->end >= work->begin;
    // What was in flight when tracing went on or off lies at the border of its window. A graph then has no time, and a
    // node that is launched again at once has the end of one launch and the begin of the next.
    const bool ofBorder = record.kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE ||
                          (work && work->node != 0 && work->end > 0 && work->begin > work->end);
    lostTimes = work && !timed && !ofBorder;
    return timed ? work : std::nullopt;
}

} // namespace vitrine::profiler
