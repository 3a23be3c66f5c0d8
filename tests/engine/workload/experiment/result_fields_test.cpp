// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/result_fields.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/resource_path.h"
#include "base/stop.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

TEST(ResultFields, AreCalledWhatPeopleRead) {
    EXPECT_EQ(resultWords("decode_tokens_per_second"), "decode rate");
    EXPECT_EQ(resultWords("roofline.parts.head"), "a token reads: head");
    EXPECT_EQ(resultWords("peak_by_category.kv_cache"), "at the peak: kv_cache");
    EXPECT_EQ(resultWords("ttft.p95"), "time to first token: p95");
    EXPECT_EQ(resultWords("variants.quantized.peak_bytes"), "quantized: peak memory");
    EXPECT_EQ(resultWords("variants.quantized.peak_by_category.weights"), "quantized: at the peak: weights");
    EXPECT_EQ(resultWords("acceptance_rate.top_k"), "acceptance rate, top k");
}

TEST(ResultFields, WhatAnswersFirstComesFirst) {
    EXPECT_LT(resultRank("peak_bytes"), resultRank("decode_tokens_per_second"));
    EXPECT_LT(resultRank("decode_tokens_per_second"), resultRank("steps"));
    EXPECT_LT(resultRank("steps"), resultRank("peak_by_category.kv_cache"));
    EXPECT_LT(resultRank("peak_by_category.kv_cache"), resultRank("no_such_field"));
}

TEST(ResultFields, SayWhichWayIsBetter) {
    EXPECT_EQ(findResult("peak_bytes")->better, Better::Less);
    EXPECT_EQ(findResult("peak_by_category.weights")->better, Better::Less);
    EXPECT_EQ(findResult("tokens_per_second")->better, Better::More);
    EXPECT_EQ(findResult("budget_bytes")->better, Better::Neither);
    EXPECT_EQ(findResult("no_such_field"), nullptr);
}

TEST(ResultFields, ListsAndDataAreNotCompared) {
    for (const char* path : {"ids.3", "requests.0.prompt_tokens", "kv_cache.groups.full.window", "error.budget",
                             "rows.0.value", "kernels.0.calls", "seed"}) {
        EXPECT_FALSE(isComparable(path)) << path;
    }
    for (const char* path :
         {"peak_bytes", "ttft.p50", "roofline.ratio", "variants.quantized.seconds", "of_a_later_version"}) {
        EXPECT_TRUE(isComparable(path)) << path;
    }
}

TEST(ResultFields, ValuesHaveTheirUnit) {
    EXPECT_EQ(resultValueText("peak_bytes", 3 << 20), "3.0 MiB");
    EXPECT_EQ(resultValueText("ttft.p95", 0.25), "250 ms");
    EXPECT_EQ(resultValueText("decode_tokens_per_second", 12345.4), "12,345 tok/s");
    EXPECT_EQ(resultValueText("roofline.bandwidth", 2e12), "2.0 TB/s");
    EXPECT_EQ(resultValueText("steps", 1234), "1,234");
    EXPECT_EQ(resultValueText("no_such_field", 0.5), "0.5");
    EXPECT_EQ(resultValueText("fits", true), "yes");
    EXPECT_EQ(resultValueText("peak_bytes", nullptr), "–");
    EXPECT_EQ(resultValueText("peak_bytes", 1e300), "1e+300");
}

TEST(ResultFields, ReadingMeetsAnyJson) {
    const Json metrics = Json::parse(R"({"peak_bytes": -1, "kv_bytes": 1e300, "steps": "3", "fits": 1,
                                         "roofline": {"ratio": 0.5}, "ids": {}, "ttft": 7})");
    EXPECT_EQ(countOf(metrics, result::kPeakBytes), std::nullopt);
    EXPECT_EQ(countOf(metrics, result::kKvBytes), std::nullopt);
    EXPECT_EQ(numberOf(metrics, result::kSteps), std::nullopt);
    EXPECT_EQ(flagOf(metrics, result::kFits), std::nullopt);
    EXPECT_EQ(numberOf(metrics, result::kRooflineRatio), 0.5);
    EXPECT_TRUE(rowsOf(metrics, result::kIds).empty());
    EXPECT_EQ(valueOf(metrics, result::kRooflineParts), nullptr);
    EXPECT_EQ(textOf(Json::array(), result::kModel), "");
    EXPECT_EQ(numberOf(Json(), result::kSteps), std::nullopt);
}

TEST(ResultFields, EachKeyIsDeclaredOnce) {
    std::set<std::string_view> keys;
    std::set<const ResultField*> seen;
    for (const Workload* workload : workloadTable()) {
        EXPECT_FALSE(workload->results.empty()) << workload->name;
        for (const ResultSet set : workload->results) {
            for (const ResultField* field : set) {
                EXPECT_TRUE(!seen.insert(field).second || keys.insert(field->key).second) << field->key;
                EXPECT_FALSE(field->words.empty()) << field->key;
            }
        }
    }
}

/// Whether the value has the type that the unit says.
bool fits(const ResultField& field, const Json& value) {
    if (value.is_null()) {
        return true; // not known
    }
    if (field.each) {
        return value.is_object();
    }
    switch (field.unit) {
    case ResultUnit::Text:
        return value.is_string();
    case ResultUnit::Flag:
        return value.is_boolean();
    case ResultUnit::List:
    case ResultUnit::Rows:
        return value.is_array();
    case ResultUnit::Data:
        return value.is_structured();
    case ResultUnit::Count:
        return value.is_number_integer() || value.is_array();
    default:
        return value.is_number();
    }
}

void expectDeclared(const Workload& workload, const Json& object, const std::string& parent) {
    for (const auto& [key, value] : object.items()) {
        const std::string path = parent + key;
        const ResultField* field = nullptr;
        for (const ResultSet set : workload.results) {
            const auto found = std::ranges::find(set, path, [](const ResultField* one) { return one->key; });
            field = found == set.end() ? field : *found;
        }
        if (field == nullptr && value.is_object()) {
            expectDeclared(workload, value, path + ".");
            continue;
        }
        ASSERT_NE(field, nullptr) << workload.name << " reports " << path << ", which its row does not declare";
        EXPECT_TRUE(fits(*field, value)) << workload.name << ": " << path << " = " << value.dump().substr(0, 100);
        if (field->unit == ResultUnit::Rows) {
            for (const Json& row : value) {
                expectDeclared(workload, row, "");
            }
        }
    }
}

class ReportedFields : public ::testing::TestWithParam<const char*> {};

TEST_P(ReportedFields, AreAllDeclaredByTheRow) {
    Json spec = Json::parse(GetParam());
    spec["vitrine"] = 1;
    if (spec["workload"] != "attention") {
        spec["model"] = base::resourcePath("models/vitrine-demo");
    }
    const Experiment experiment = Experiment::parse(spec, "test");
    Json metrics = runExperiment(experiment, WorkloadSinks(), base::StopToken());
    expectDeclared(experiment.workload(), metrics, "");
}

INSTANTIATE_TEST_SUITE_P(
    Workloads, ReportedFields,
    ::testing::Values(
        R"({"workload": "generate", "backend": "cpu", "prompt": "a b", "max_new_tokens": 3, "logprobs": 2})",
        R"({"workload": "generate", "backend": "cpu", "prompt": "a b", "max_new_tokens": 3, "batch": 2})",
        R"({"workload": "generate", "plan": true, "prompt": "a b", "max_new_tokens": 3, "max_context": true,
            "max_batch": true})",
        R"({"workload": "load", "backend": "cpu", "weights": "both", "prompt": "a", "max_new_tokens": 2})",
        R"({"workload": "load", "plan": true, "weights": "both"})",
        R"({"workload": "batch", "backend": "cpu", "trace": "uniform", "requests": 3, "new_tokens": "2-4",
            "prompt_tokens": "4-8"})",
        R"({"workload": "batch", "plan": true, "trace": "uniform", "requests": 3, "new_tokens": "2-4"})",
        R"({"workload": "finetune", "backend": "cpu", "prompt_length": 8, "steps": 1, "batch": 1})",
        R"({"workload": "finetune", "plan": true, "prompt_length": 8, "batch": 1, "max_context": true,
            "techniques": true})",
        R"({"workload": "attention", "backend": "cpu", "random": "1,2,2,64,16", "backward": true,
            "compare_full": true, "mask": "causal"})",
        R"({"workload": "tokenize", "text": "a b"})"));

} // namespace
} // namespace vitrine::engine
