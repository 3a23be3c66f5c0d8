// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// A plan whose steps are priced by steps before them, against one whose steps all run because it is recorded.

#include "engine/model/step_prices.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

#include "base/trace.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

template <class T> T oneOf(std::mt19937& random, std::initializer_list<T> values) {
    return *(values.begin() + random() % values.size());
}

/// All requests are there from the beginning: where they come later, a nanosecond can decide whose turn it is.
Json randomBatch(std::mt19937& random) {
    Json out = {{"vitrine", 1},
                {"workload", "batch"},
                {"backend", "meta"},
                {"model", oneOf(random, {"synthetic:tiny-llama", "synthetic:tiny-gpt-oss"})},
                {"trace", oneOf(random, {"uniform", "fixed", "long-tail"})},
                {"requests", 1 + random() % 40},
                {"slots", 1 + random() % 17},
                {"prompt_tokens", oneOf(random, {"1-300", "700", "5-60"})},
                {"new_tokens", oneOf(random, {"1-200", "90", "3-20"})},
                {"scheduler", oneOf(random, {"fifo", "prefill-first", "longest-first"})},
                {"mode", oneOf(random, {"continuous", "continuous", "static"})},
                {"preemption", oneOf(random, {"off", "recompute", "swap"})},
                {"token_budget", oneOf(random, {17, 256, 8192})},
                {"gather_steps", oneOf(random, {0, 8})},
                {"kv_dtype", oneOf(random, {"bfloat16", "int8"})},
                {"seed", random() % 1000},
                {"device_profile", oneOf(random, {"h100-80gb", "t4"})}};
    if (random() % 3 == 0) {
        out["kv_pages"] = 16 + random() % 40; // requests take pages from each other
    }
    if (random() % 3 == 0) {
        out["share_prefixes"] = true;
    }
    return out;
}

TEST(StepPricesTest, AJumpedBatchHoldsWhatTheWholeOneHolds) {
    std::mt19937 random(5);
    for (int round = 0; round < vitrine::test::repetitions(60); ++round) {
        const Experiment experiment = Experiment::parse(randomBatch(random), "test").asPlan();
        WorkloadSinks quiet;
        quiet.quiet = true;
        const Json jumped = planExperiment(experiment, quiet, {});
        base::NullTraceSink sink;
        WorkloadSinks recorded = quiet;
        recorded.trace = &sink;
        const Json whole = planExperiment(experiment, recorded, {});
        for (const char* key : {"peak_bytes", "peak_reserved_bytes", "peak_by_category", "max_by_category", "fits",
                                "steps", "decode_steps", "generated_tokens", "prefill_tokens", "preemptions", "swaps",
                                "kv_bytes", "kv_page_bytes", "kv_pool_bytes", "refused_requests"}) {
            EXPECT_EQ(jumped[key], whole[key]) << key << " of " << experiment.jsonText();
        }
        const auto seconds = whole["seconds"].get<double>();
        EXPECT_NEAR(jumped["seconds"].get<double>(), seconds, seconds * 1e-3) << experiment.jsonText();
    }
}

} // namespace
} // namespace vitrine::engine
