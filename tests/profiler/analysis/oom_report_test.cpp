// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/oom_report.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/profiler/analysis/scripted_run.h"

namespace vitrine::profiler {
namespace {

using base::MemoryCategory;
using testing::kGiB;
using testing::ScriptedRun;

std::shared_ptr<const MemoryTimeline> run() {
    ScriptedRun run;
    run.begin(base::ScopeKind::Phase, "load");
    run.allocate("model.embed_tokens.weight", MemoryCategory::Weights, 12 * kGiB);
    run.time = 100;
    run.end();
    for (int step = 2; step <= 3; ++step) {
        const std::uint64_t scale = step == 2 ? 1 : 2;
        run.begin(base::ScopeKind::Step, "train", step, step == 2 ? 65'536 : 98'304);
        run.begin(base::ScopeKind::Phase, "forward");
        const std::uint64_t inputs = run.allocate("layer_input", MemoryCategory::Activations, scale * 6 * kGiB);
        run.time += 100;
        run.end();
        run.begin(base::ScopeKind::Phase, "loss");
        run.begin(base::ScopeKind::Op, "LmHead");
        const std::uint64_t logits = run.allocate("logits", MemoryCategory::Logits, scale * 18 * kGiB);
        run.time += 100;
        if (step == 2) {
            const std::uint64_t gradient = run.allocate("grad_logits", MemoryCategory::Logits, 18 * kGiB);
            run.time += 10;
            run.free(gradient);
        } else {
            run.outOfMemory("grad_logits", MemoryCategory::Logits, 36 * kGiB, 80 * kGiB, 60 * kGiB, 20 * kGiB);
        }
        run.end();
        run.end();
        run.free(logits);
        run.free(inputs);
        run.end();
        run.time += 100;
    }
    return run.timeline();
}

TEST(OomReport, SaysWhatHeldTheMemoryAndWhatChanged) {
    const auto timeline = run();
    const OomReport report = oomReport(*timeline, 0);
    EXPECT_EQ(report.sentence,
              "Step 3 asked for 36.00 GiB to hold grad_logits. Only 20.00 GiB of the 80.00 GiB budget were free.");
    EXPECT_EQ(report.cause,
              "Logits hold the most: 36.00 GiB, 60.0 % of what is held. With this request logits would need "
              "36.00 GiB more than in step 2, for 98,304 tokens instead of 65,536.");
    EXPECT_EQ(report.held, 60 * kGiB);
    EXPECT_EQ(report.free, 20 * kGiB);
    EXPECT_EQ(report.missing, 16 * kGiB);
    EXPECT_EQ(report.heldBy[static_cast<std::size_t>(MemoryCategory::Activations)], 12 * kGiB);
    EXPECT_EQ(report.step, "step 3");
    EXPECT_EQ(report.previousStep, "step 2");
    ASSERT_EQ(report.byCategory.children.size(), 3U);
    EXPECT_EQ(report.byCategory.children[0].name, "logits");
    EXPECT_EQ(report.byOp.children[0].name, "LmHead");
    ASSERT_EQ(report.changes.size(), 3U);
    EXPECT_EQ(report.changes[0].category, MemoryCategory::Logits);
    EXPECT_EQ(report.changes[0].before, 36 * kGiB);
    EXPECT_EQ(report.changes[0].now, 72 * kGiB);
    ASSERT_EQ(report.phases.size(), 2U);
    EXPECT_EQ(report.phases[0].words,
              "forward: peak 24.00 GiB, 18.00 GiB in step 2 (+6.00 GiB, most of it activations)");
    EXPECT_EQ(report.phases[1].before, 54 * kGiB);
    EXPECT_EQ(report.phases[1].now, 60 * kGiB);
    const std::string text = oomText(report);
    EXPECT_NE(text.find(report.sentence), std::string::npos);
    EXPECT_NE(text.find("What changed since step 2"), std::string::npos);
}

TEST(OomReport, FragmentationAndRunsWithoutSteps) {
    ScriptedRun run;
    run.begin(base::ScopeKind::Phase, "load");
    run.allocate("w", MemoryCategory::Weights, 4 * kGiB);
    run.outOfMemory("", MemoryCategory::Workspace, 3 * kGiB, 8 * kGiB, 4 * kGiB, 1 * kGiB);
    const OomReport report = oomReport(*run.timeline(), 0);
    EXPECT_EQ(report.sentence,
              "Load asked for 3.00 GiB to hold workspace. 4.00 GiB of the 8.00 GiB budget were free, but "
              "the largest free block was 1.00 GiB.");
    EXPECT_EQ(report.missing, 0U);
    EXPECT_TRUE(report.changes.empty());
    EXPECT_TRUE(report.phases.empty());
    EXPECT_THROW(oomReport(*run.timeline(), 5), base::Internal);
}

} // namespace
} // namespace vitrine::profiler
