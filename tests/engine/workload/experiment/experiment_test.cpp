// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/experiment.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "engine/workload/experiment/option_value.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Json minimal() {
    return {{"vitrine", 1}, {"workload", "generate"}, {"model", "synthetic:tiny-llama"}, {"tokens", {1, 2, 3}}};
}

std::string errorOf(const Json& experiment) {
    try {
        Experiment::parse(experiment, "spec.json");
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return "";
}

TEST(OptionTable, DefaultsParseAndKeysAreUnique) {
    std::set<std::string_view> keys;
    for (const OptionSpec& option : optionTable()) {
        EXPECT_TRUE(keys.insert(option.key).second) << option.key;
        EXPECT_TRUE(std::any_of(workloadTable().begin(), workloadTable().end(), [&](const Workload* workload) {
            return optionApplies(option, workload->name, true);
        })) << option.key;
        EXPECT_FALSE(option.group.empty()) << option.key;
        EXPECT_FALSE(option.help.empty()) << option.key;
        if (!option.defaultText.empty()) {
            EXPECT_NO_THROW(parseOption(option, option.defaultText)) << option.key;
        }
        EXPECT_EQ(optionFlag(optionFlag(option.key)), option.key);
    }
}

TEST(OptionTable, TextBecomesValues) {
    EXPECT_EQ(parseOption(*findOption("vram_budget"), "16 GiB"), Json(std::uint64_t{16} << 30));
    EXPECT_EQ(parseOption(*findOption("tokens"), "1, 2,3"), Json({1, 2, 3}));
    EXPECT_EQ(parseOption(*findOption("set"), "a=b=c"), Json({{"a", "b=c"}}));
    EXPECT_THROW(parseOption(*findOption("tokens"), "1,,2"), base::BadInput);
    EXPECT_THROW(parseOption(*findOption("tokens"), "-1"), base::BadInput);
    EXPECT_THROW(parseOption(*findOption("top_p"), "nan"), base::BadInput);
    EXPECT_THROW(parseOption(*findOption("top_p"), "1.5"), base::BadInput);
    EXPECT_THROW(parseOption(*findOption("max_new_tokens"), "0"), base::BadInput);
    EXPECT_THROW(parseOption(*findOption("max_new_tokens"), "99999999999999999999"), base::BadInput);
    EXPECT_THROW(parseOption(*findOption("backend"), "tpu"), base::BadInput);
}

TEST(ParseExperiment, FillsDefaults) {
    const Json out = Experiment::parse(minimal(), "spec.json").toJson();
    EXPECT_EQ(out["max_new_tokens"], 128);
    EXPECT_EQ(out["weights"], "quantized");
    EXPECT_EQ(out["temperature"], 0.0);
    EXPECT_FALSE(out.contains("top_k")) << "unset lets the model's generation_config decide";
    EXPECT_EQ(Experiment::parse(out, "spec.json").toJson(), out) << "canonical form is a fixed point";
}

TEST(ParseExperiment, UnknownKeyIsNamedWithTheNearest) {
    Json experiment = minimal();
    experiment["max_new_token"] = 3;
    EXPECT_THAT(errorOf(experiment),
                HasSubstr("spec.json: max_new_token: unknown key; the nearest known one is max_new_tokens"));
    experiment.erase("max_new_token");
    experiment[std::string(100000, 'x')] = 3;
    EXPECT_THAT(errorOf(experiment), HasSubstr("unknown key"));
}

TEST(ParseExperiment, RefusesWhatDoesNotFit) {
    const auto with = [](const char* key, const Json& value) {
        Json experiment = minimal();
        experiment[key] = value;
        return errorOf(experiment);
    };
    EXPECT_THAT(with("vitrine", 2), HasSubstr("vitrine"));
    EXPECT_THAT(with("workload", "dance"), HasSubstr("workload"));
    EXPECT_THAT(with("jsonl", "x"), HasSubstr("generate does not take it"));
    EXPECT_THAT(with("prompt", "hi"), HasSubstr("give one of them"));
    EXPECT_THAT(with("weights", "both"), HasSubstr("load only"));
    EXPECT_THAT(with("max_context", true), HasSubstr("does not take it"));
    EXPECT_THAT(with("top_k", 1.5), HasSubstr("whole number"));
    EXPECT_THAT(with("seed", std::uint64_t{1} << 63), HasSubstr("seed"));
    EXPECT_THAT(with("stop", Json::array({""})), HasSubstr("none empty"));
    EXPECT_THAT(with("vram_budget", -1), HasSubstr("size"));
    EXPECT_THAT(errorOf(Json::array()), HasSubstr("object"));
}

TEST(ParseExperiment, ANameOfAFileIsNotEmpty) {
    EXPECT_THAT(errorOf({{"vitrine", 1}, {"workload", "finetune"}, {"model", "m"}, {"data", ""}}),
                HasSubstr("data: is empty; name a file"));
}

TEST(OptionTable, BoundsArePrintedAsPeopleReadThem) {
    for (const OptionSpec& option : optionTable()) {
        if (option.type == OptionType::Integer || option.type == OptionType::Real) {
            try {
                valueFromText(option, "x", "");
                ADD_FAILURE() << option.key;
            } catch (const base::BadInput& error) {
                EXPECT_LT(error.message().size(), 120U) << error.message();
            }
        }
    }
}

TEST(ParseExperiment, APlanTakesEveryOptionOfItsRun) {
    Json experiment = Experiment::parse(minimal(), "spec.json").toJson();
    experiment["plan"] = true;
    experiment["max_context"] = true;
    EXPECT_EQ(errorOf(experiment), "");
}

TEST(DiffExperiments, NamesBothValues) {
    Json b = minimal();
    b["vram_budget"] = std::uint64_t{16} << 30;
    b["tokens"] = {1, 2};
    const auto differences = diffExperiments(minimal(), b);
    ASSERT_EQ(differences.size(), 2U);
    EXPECT_EQ(differences[0].key, "vram_budget");
    EXPECT_EQ(differences[0].a, "–");
    EXPECT_EQ(differences[0].b, "16.00 GiB");
    EXPECT_EQ(differences[1].a, "1,2,3");
    EXPECT_EQ(differences[1].b, "1,2");
}

} // namespace
} // namespace vitrine::engine
