// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Records as CUPTI lays them out; no device and no CUPTI needed, only its headers.

#ifdef VITRINE_HAS_CUPTI

#include "profiler/gpu/cupti_records.h"

#include <gtest/gtest.h>
#include <string>

namespace vitrine::profiler {
namespace {

template <class Record> std::optional<DeviceWork> parsed(const Record& record, bool& lost) {
    return workOf(reinterpret_cast<const CUpti_Activity&>(record), lost);
}

/// A record of this kind that lasted from `start` to `end`.
template <class Record> Record timed(CUpti_ActivityKind kind, std::uint64_t start, std::uint64_t end) {
    Record record{};
    record.kind = kind;
    record.start = start;
    record.end = end;
    return record;
}

/// The work of a record that has to be one of this kind.
template <class Record> DeviceWork workOfKind(WorkKind kind, const Record& record) {
    bool lost = true;
    const std::optional<DeviceWork> work = parsed(record, lost);
    EXPECT_FALSE(lost);
    EXPECT_TRUE(work);
    EXPECT_EQ(work.value_or(DeviceWork{}).kind, kind);
    return work.value_or(DeviceWork{});
}

TEST(CuptiRecords, Kernels) {
    auto kernel = timed<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1000, 1500);
    kernel.correlationId = 42;
    kernel.graphNodeId = (std::uint64_t{9} << 32) + 3;
    kernel.name = "rms_norm";
    kernel.gridX = 132;
    kernel.gridY = 2;
    kernel.gridZ = 1;
    kernel.blockX = 256;
    kernel.blockY = kernel.blockZ = 1;
    kernel.registersPerThread = 64;
    kernel.staticSharedMemory = 1024;
    kernel.dynamicSharedMemory = 98304;
    kernel.clusterX = 2;
    const DeviceWork work = workOfKind(WorkKind::Kernel, kernel);
    EXPECT_EQ(work.begin, 1000);
    EXPECT_EQ(work.end, 1500);
    EXPECT_EQ(work.correlation, 42U);
    EXPECT_EQ(work.node, (std::uint64_t{9} << 32) + 3);
    EXPECT_STREQ(work.name, "rms_norm");
    EXPECT_EQ(work.shape.grid, (std::array<std::uint32_t, 3>{132, 2, 1}));
    EXPECT_EQ(work.shape.sharedBytes, 99328U);
    EXPECT_EQ(work.shape.registers, 64U);
    kernel.name = nullptr;
    EXPECT_STREQ(workOfKind(WorkKind::Kernel, kernel).name, "kernel");
}

TEST(CuptiRecords, RecordsWithoutTimesAreLost) {
    auto kernel = timed<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0, 0);
    bool lost = false;
    EXPECT_FALSE(parsed(kernel, lost));
    EXPECT_TRUE(lost);
    kernel.start = 100;
    kernel.end = 99;
    EXPECT_FALSE(parsed(kernel, lost));
    EXPECT_TRUE(lost);
    CUpti_ActivityDevice5 device{};
    device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    EXPECT_FALSE(parsed(device, lost));
    EXPECT_FALSE(lost) << "nobody asked for it";
}

TEST(CuptiRecords, CopiesFillsWaitsAndGraphs) {
    auto copy = timed<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, 5, 9);
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.bytes = 4096;
    DeviceWork work = workOfKind(WorkKind::Copy, copy);
    EXPECT_EQ(work.bytes, 4096U);
    EXPECT_STREQ(work.name, "host to device");

    auto fill = timed<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 5, 5);
    fill.bytes = 77;
    EXPECT_EQ(workOfKind(WorkKind::Memset, fill).bytes, 77U);

    auto wait = timed<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 1, 2);
    wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    EXPECT_STREQ(workOfKind(WorkKind::Sync, wait).name, "wait for a stream");

    auto graph = timed<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 10, 30);
    graph.correlationId = 8;
    work = workOfKind(WorkKind::Graph, graph);
    EXPECT_EQ(work.correlation, 8U);
    EXPECT_EQ(laneName(work.kind), "Graphs");

    auto overhead = timed<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD, 10, 30);
    overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    EXPECT_EQ(laneName(workOfKind(WorkKind::Overhead, overhead).kind), "Profiler overhead");
}

TEST(CuptiRecords, WhatStandsAtTheBorderOfAWindowIsNotLost) {
    bool lost = true;
    auto node = timed<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1500, 1000);
    node.graphNodeId = 7;
    EXPECT_FALSE(workOf(reinterpret_cast<const CUpti_Activity&>(node), lost));
    EXPECT_FALSE(lost) << "the end of one launch of a graph and the begin of the next";
    const auto graph = timed<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 0, 0);
    EXPECT_FALSE(workOf(reinterpret_cast<const CUpti_Activity&>(graph), lost));
    EXPECT_FALSE(lost);
    node.graphNodeId = 0;
    EXPECT_FALSE(workOf(reinterpret_cast<const CUpti_Activity&>(node), lost));
    EXPECT_TRUE(lost) << "a kernel of its own";
}

} // namespace
} // namespace vitrine::profiler

#endif
