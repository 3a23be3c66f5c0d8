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

TEST(CuptiRecords, Kernels) {
    CUpti_ActivityKernel10 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    kernel.start = 1000;
    kernel.end = 1500;
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
    bool lost = true;
    const std::optional<DeviceWork> work = parsed(kernel, lost);
    ASSERT_TRUE(work);
    EXPECT_FALSE(lost);
    EXPECT_EQ(work->kind, WorkKind::Kernel);
    EXPECT_EQ(work->begin, 1000);
    EXPECT_EQ(work->end, 1500);
    EXPECT_EQ(work->correlation, 42U);
    EXPECT_EQ(work->node, (std::uint64_t{9} << 32) + 3);
    EXPECT_STREQ(work->name, "rms_norm");
    EXPECT_EQ(work->shape.grid, (std::array<std::uint32_t, 3>{132, 2, 1}));
    EXPECT_EQ(work->shape.sharedBytes, 99328U);
    EXPECT_EQ(work->shape.registers, 64U);
    kernel.name = nullptr;
    EXPECT_STREQ(parsed(kernel, lost)->name, "kernel");
}

TEST(CuptiRecords, RecordsWithoutTimesAreLost) {
    CUpti_ActivityKernel10 kernel{};
    kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
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
    bool lost = false;
    CUpti_ActivityMemcpy6 copy{};
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.bytes = 4096;
    copy.start = 5;
    copy.end = 9;
    copy.correlationId = 3;
    auto work = parsed(copy, lost);
    ASSERT_TRUE(work);
    EXPECT_EQ(work->kind, WorkKind::Copy);
    EXPECT_EQ(work->bytes, 4096U);
    EXPECT_STREQ(work->name, "host to device");

    CUpti_ActivityMemset4 fill{};
    fill.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    fill.bytes = 77;
    fill.start = 5;
    fill.end = 5;
    work = parsed(fill, lost);
    ASSERT_TRUE(work);
    EXPECT_EQ(work->kind, WorkKind::Memset);
    EXPECT_EQ(work->bytes, 77U);

    CUpti_ActivitySynchronization2 wait{};
    wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    wait.start = 1;
    wait.end = 2;
    work = parsed(wait, lost);
    ASSERT_TRUE(work);
    EXPECT_STREQ(work->name, "wait for a stream");

    CUpti_ActivityGraphTrace2 graph{};
    graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    graph.start = 10;
    graph.end = 30;
    graph.correlationId = 8;
    work = parsed(graph, lost);
    ASSERT_TRUE(work);
    EXPECT_EQ(work->kind, WorkKind::Graph);
    EXPECT_EQ(work->correlation, 8U);
    EXPECT_EQ(laneName(work->kind), "Graphs");

    CUpti_ActivityOverhead3 overhead{};
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    overhead.start = 10;
    overhead.end = 30;
    work = parsed(overhead, lost);
    ASSERT_TRUE(work);
    EXPECT_EQ(laneName(work->kind), "Profiler overhead");
}

} // namespace
} // namespace vitrine::profiler

#endif
