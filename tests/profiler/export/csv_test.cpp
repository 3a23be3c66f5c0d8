// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/export/csv.h"

#include <gtest/gtest.h>
#include <sstream>

#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;

std::shared_ptr<const RunTimeline> run() {
    testing::ScriptedRun run;
    run.time = 10;
    run.begin(base::ScopeKind::Phase, "load, \"quoted\"");
    base::AllocationEvent event;
    event.time = 10;
    event.id = 50;
    event.address = 4096;
    event.bytes = 600;
    event.scope.value = 1;
    event.name = run.intern("w");
    event.category = MemoryCategory::Weights;
    event.dtype = static_cast<std::uint8_t>(kernels::DType::BF16);
    event.dimensions = 2;
    event.shape = {10, 30};
    event.format = run.intern("INT4, groups of 32");
    run.record(event);
    event.format = {};
    event.id = 51;
    event.space = base::MemorySpace::PinnedHost;
    event.dimensions = 0;
    event.dtype = 0;
    run.record(event);
    run.time = 30;
    run.free(51);
    run.counter("x", 0.1);
    run.span("Read", "w", 10, 30, 600);
    return run.timeline();
}

template <class Write> std::string text(Write write) {
    std::ostringstream out;
    write(out);
    return out.str();
}

TEST(Csv, WritesWhereRecordsWereLost) {
    testing::ScriptedRun script;
    script.record(base::GapEvent{5, 60, 10, 3});
    const auto timeline = script.timeline();
    EXPECT_EQ(text([&](std::ostream& out) { writeGapsCsv(*timeline, out); }),
              "begin_ns,end_ns,records,memory_records\n5,60,10,3\n");
}

TEST(Csv, WritesAllocationsScopesCountersSpansAndTotals) {
    const auto timeline = run();
    EXPECT_EQ(text([&](std::ostream& out) { writeAllocationsCsv(*timeline, out); }),
              "id,name,category,space,bytes,address,born_ns,freed_ns,dtype,shape,scope,path,format\n"
              "50,w,weights,device,600,4096,10,,bfloat16,10x30,1,\"load, \"\"quoted\"\"\",\"INT4, groups of 32\"\n"
              "51,w,weights,pinned_host,600,4096,10,30,,,1,\"load, \"\"quoted\"\"\",\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeScopesCsv(*timeline, out); }),
              "id,parent,kind,name,index,tokens,begin_ns,end_ns,bytes,flops,path\n"
              "1,0,phase,\"load, \"\"quoted\"\"\",,0,10,,0,0,\"load, \"\"quoted\"\"\"\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeCountersCsv(*timeline, out); }), "time_ns,name,value\n30,x,0.1\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeSpansCsv(*timeline, out); }),
              "lane,name,begin_ns,end_ns,bytes,flops,scope\nRead,w,10,30,600,0,0\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeKernelsCsv(*timeline, out); }),
              "name,op,launches,total_ns,mean_ns,min_ns,max_ns,share,bytes,flops,bytes_per_second\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeTotalsCsv(*timeline, 2, out); }),
              "begin_ns,end_ns,events,min_total,max_total,max_time_ns,untracked,weights,optimizer,kv_cache,gradients,"
              "activations,logits,workspace,block_mask,comm,other\n"
              "0,15,2,0,600,10,0,600,0,0,0,0,0,0,0,0,0\n"
              "15,31,1,600,600,15,0,600,0,0,0,0,0,0,0,0,0\n");
}

TEST(Csv, WritesWhatABatchDid) {
    testing::ScriptedRun run;
    run.record(base::BatchStepEvent{10, 20, 0, 3, 1, 2, 40, 5, 4, 6, 5, 1, 12, 2, 3, 20});
    run.record(base::SlotSpanEvent{10, 20, 0, 1, 2, 7, base::SlotState::Prefill, 40, 5});
    run.record(base::SlotSpanEvent{10, 20, 0, 1, 3, -1, base::SlotState::Idle, 0, 0});
    run.record(base::RequestEvent{-5, 7, base::RequestChange::Arrived, -1, -1, 40, {}});
    run.record(base::RequestEvent{10, 7, base::RequestChange::Admitted, 2, 0, 0, run.intern("1, \"x\"")});
    run.record(base::KvPageEvent{10, 0, 9, base::PageState::Used, 1, 2});
    run.record(base::KvPageEvent{20, 0, 9, base::PageState::Cached, -1, 0});
    const auto timeline = run.timeline();
    EXPECT_EQ(
        text([&](std::ostream& out) { writeBatchStepsCsv(*timeline, out); }),
        "index,begin_ns,end_ns,decode_rows,prefill_rows,padding_rows,prefill_tokens,padding_tokens,sampled,queued,"
        "running,preempted,used_pages,shared_pages,cached_pages,free_pages\n"
        "0,10,20,3,1,2,40,5,4,6,5,1,12,2,3,20\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeBatchSlotsCsv(*timeline, out); }),
              "slot,state,request,begin_ns,end_ns,first_step,steps,tokens,padding\n"
              "2,prefill,7,10,20,0,1,40,5\n"
              "3,idle,,10,20,0,1,0,0\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeBatchRequestsCsv(*timeline, out); }),
              "request,phase,time_ns,slot,step,tokens,reason\n"
              "7,arrived,-5,,,40,\n"
              "7,admitted,10,2,0,0,\"1, \"\"x\"\"\"\n");
    EXPECT_EQ(text([&](std::ostream& out) { writeKvPagesCsv(*timeline, out); }),
              "time_ns,group,page,state,owner,sequences\n"
              "10,0,9,used,1,2\n"
              "20,0,9,cached,,0\n");
}

} // namespace
} // namespace vitrine::profiler
