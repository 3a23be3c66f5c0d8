// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/result_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(ResultText, NamesRecordsThatTheSessionDoesNotHold) {
    const std::string sentence = "lost      12,345 records: they came faster than the session could keep them, so its "
                                 "timeline has gaps\n";
    // A workload whose streamed text is its result, and one whose results are listed.
    for (const json& spec :
         {json{{"workload", "generate"}, {"prompt_length", 4}}, json{{"workload", "synthesize"}, {"output", "x"}}}) {
        json whole = spec;
        whole.update({{"vitrine", 1}, {"model", "synthetic:tiny-llama"}});
        const Experiment experiment = Experiment::parse(whole, "experiment");
        json metrics{{"peak_bytes", 1024}};
        EXPECT_THAT(resultText(experiment, metrics), Not(HasSubstr("lost"))) << spec;
        metrics["lost_records"] = 12345;
        const std::string text = resultText(experiment, metrics);
        EXPECT_THAT(text, EndsWith(sentence)) << spec;
        EXPECT_THAT(text, Not(HasSubstr("lost_records"))) << spec;
    }
}

TEST(ResultText, BeginsWithASentenceAndLeavesOutWhatSaysNothing) {
    const auto text = [](json spec, const json& metrics) {
        spec.update({{"vitrine", 1}, {"model", "synthetic:tiny-llama"}});
        return resultText(Experiment::parse(spec, "experiment"), metrics);
    };
    const json plan{{"workload", "generate"}, {"prompt_length", 4}, {"plan", true}};
    const json held{{"peak_reserved_bytes", 3 << 20}, {"budget_bytes", 4 << 20}};
    json fits = held;
    fits.update({{"fits", true}, {"cut_lines", json::array()}, {"swaps", 0}, {"aux_losses", {0.0, 0.0}}});
    EXPECT_THAT(text(plan, fits), testing::StartsWith("It fits: it needs 3.0 MiB of 4.0 MiB, so 1.0 MiB stay free.\n"));
    for (const char* nothing : {"cut_lines", "swaps", "aux_losses"}) {
        EXPECT_THAT(text(plan, fits), Not(HasSubstr(nothing)));
    }
    json lacking = {{"fits", false}, {"peak_reserved_bytes", 6 << 20}, {"budget_bytes", 4 << 20}};
    lacking["out_of_memory"] = {{"arena", ""}, {"arena_bytes", 7}, {"message", "weights: out of memory"}};
    EXPECT_THAT(text(plan, lacking), testing::StartsWith("It does not fit: it needs 6.0 MiB of 4.0 MiB, so 2.0 MiB are "
                                                         "missing; what would fit stands at the end.\n"));
    EXPECT_THAT(text(plan, lacking), Not(HasSubstr("arena")));
    EXPECT_THAT(text(plan, lacking), HasSubstr("weights: out of memory"));
    EXPECT_THAT(text({{"workload", "synthesize"}, {"output", "x"}},
                     {{"bytes", 1024}, {"files", {"config.json"}}, {"seconds", 2.0}}),
                testing::StartsWith("1.0 KiB were written to x in 2.00 s.\n"));
    EXPECT_THAT(
        text({{"workload", "finetune"}, {"prompt_length", 8}}, {{"losses", {3.0, 2.0}}, {"tokens_per_second", 10.0}}),
        testing::StartsWith("Trained 2 steps: the loss went from 3 to 2, at "));
}

TEST(ResultText, SaysFirstWhetherItFitsAndWhatWouldChangeIt) {
    const auto text = [](json spec, const json& metrics) {
        spec.update({{"vitrine", 1}, {"model", "synthetic:tiny-llama"}});
        return resultText(Experiment::parse(spec, "experiment"), metrics);
    };
    json small{{"weights", "quantized"},
               {"seconds", 2.0},
               {"peak_reserved_bytes", 3 << 20},
               {"budget_bytes", 4 << 20},
               {"bytes_read", 0},
               {"short_by_bytes", 0},
               {"peak_by_category", {{"weights", 2 << 20}, {"untracked", 3 << 20}, {"kv_cache", 0}}}};
    const std::string one = text({{"workload", "load"}}, {{"variants", json::array({small})}});
    EXPECT_THAT(one, testing::StartsWith(
                         "Loaded in 2.00 s: it needs 3.0 MiB of 4.0 MiB, so 1.0 MiB stay free; the largest part is "
                         "weights (2.0 MiB), so weights of fewer bits would change it first.\n\nweights"));
    EXPECT_THAT(one, Not(HasSubstr("bytes_read"))) << "a column of zeros says nothing";
    small["fits"] = true;
    json large = small;
    large.update({{"weights", "dequantized"}, {"fits", false}, {"peak_reserved_bytes", 6 << 20}});
    large.erase("short_by_bytes");
    EXPECT_THAT(
        text({{"workload", "load"}, {"plan", true}, {"weights", "both"}}, {{"variants", json::array({small, large})}}),
        testing::StartsWith("Quantized fits: it needs 3.0 MiB of 4.0 MiB, so 1.0 MiB stay free; dequantized does not "
                            "fit: it needs 6.0 MiB of 4.0 MiB, so 2.0 MiB are missing; what would fit stands at the "
                            "end.\n"));
    json plan = small;
    plan["peak_by_category"] = {{"weights", 1 << 20}, {"kv_cache", 2 << 20}};
    EXPECT_THAT(text({{"workload", "generate"}, {"prompt_length", 4}, {"plan", true}}, plan),
                testing::StartsWith("It fits: it needs 3.0 MiB of 4.0 MiB, so 1.0 MiB stay free; the largest part is "
                                    "the KV cache (2.0 MiB), so a shorter context or a smaller kv_dtype would change "
                                    "it first.\n"));
}

TEST(ResultText, LeavesWhatIsForProgramsToJson) {
    const json spec{{"vitrine", 1}, {"workload", "finetune"}, {"model", "some/model"}, {"prompt_length", 8}};
    const std::string text = resultText(Experiment::parse(spec, "experiment"), {{"losses", {3.0, 2.0}},
                                                                                {"step_seconds", {0.5, 0.6}},
                                                                                {"time_base", "monotonic"},
                                                                                {"kv_cache", {{"groups", {1, 2}}}},
                                                                                {"steps", 2}});
    EXPECT_THAT(text, HasSubstr("steps"));
    for (const char* key : {"losses  ", "step_seconds", "time_base", "groups"}) {
        EXPECT_THAT(text, Not(HasSubstr(key))) << text;
    }
}

TEST(ResultText, SaysFirstWhatWasWritten) {
    const auto text = [](json spec, const json& metrics) {
        spec.update({{"vitrine", 1}, {"model", "some/model"}, {"output", "x.safetensors"}});
        return resultText(Experiment::parse(spec, "experiment"), metrics);
    };
    EXPECT_THAT(text({{"workload", "logits"}, {"tokens_file", "t"}},
                     {{"output", "x.safetensors"}, {"shape", {2, 4, 512}}, {"seconds", 2.0}}),
                testing::StartsWith("The logits of 8 tokens were written to x.safetensors in 2.00 s.\n"));
    const json role{{"name", "mlp"}, {"snr_db", 20.5}};
    const json better{{"name", "attention"}, {"snr_db", 30.5}};
    EXPECT_THAT(text({{"workload", "convert"}, {"to", "int8"}},
                     {{"roles", {better, role}}, {"bytes_read", 4096}, {"bytes", 2048}, {"seconds", 2.0}}),
                testing::StartsWith("4.0 KiB became 2.0 KiB of int8, written to x.safetensors in 2.00 s; mlp kept "
                                    "least of its values, with a signal to noise of 20.5 dB.\n\nrole"));
}

} // namespace
} // namespace vitrine::engine
