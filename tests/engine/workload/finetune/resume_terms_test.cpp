// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/resume_terms.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/resource_path.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/finetune/finetune_run.h"
#include "kernels/context/context.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

class ResumeTerms : public testing::Test {
protected:
    ResumeTerms() {
        base::setLogSink([this](base::LogLevel, std::string_view text) { said_ += std::string(text) + '\n'; });
        fs::copy(test::fixture("llama"), at("model"), fs::copy_options::recursive);
        writeRows("rows.jsonl", 3);
        writeRows("eval.jsonl", 30);
    }
    ~ResumeTerms() override { base::setLogSink({}); }

    std::string at(const std::string& name) const { return folder_.file(name); }
    void writeRows(const std::string& name, int first) const {
        std::ofstream file(at(name));
        for (int row = 0; row < 4; ++row) {
            file << Json{{"tokens", {first, first + row, 9, 11, 40 + row, 2}}}.dump() << '\n';
        }
    }
    Json training(const Json& more = Json::object()) const {
        Json out = {{"vitrine", 1},    {"workload", "finetune"},        {"backend", "cpu"},
                    {"rank", 2},       {"model", at("model")},          {"data", at("rows.jsonl")},
                    {"steps", 2},      {"eval_data", at("eval.jsonl")}, {"eval_every", 2},
                    {"save_every", 2}, {"output", at("out")},           {"lr", 0.001}};
        out.update(more);
        return out;
    }
    Json further(const Json& more = Json::object()) const {
        Json out = training({{"steps", 4}, {"resume", at("out")}});
        out.update(more);
        return out;
    }
    static Json run(const Json& experiment) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
    void expectRefused(const Json& experiment, const std::vector<std::string>& parts) const {
        const std::string what = test::failure([&] { run(experiment); });
        for (const std::string& part : parts) {
            EXPECT_THAT(what, HasSubstr(part));
        }
    }

    test::TempFolder folder_;
    std::string said_;
};

TEST_F(ResumeTerms, AnOptionThatBearsOnTheTrainingIsTheSame) {
    run(training());
    const std::vector<std::pair<Json, std::vector<std::string>>> cases = {
        {{{"seed", 8}}, {"--seed 0, and this run has 8; give --seed 0"}},
        {{{"batch", 2}}, {"--batch 1, and this run has 2; give --batch 1"}},
        {{{"sequence_length", 4}}, {"--sequence-length none, and this run has 4; leave --sequence-length out"}},
        {{{"alpha", 9}}, {"--alpha 4, and this run has 9; give --alpha 4"}},
        {{{"rank", 4}}, {"--rank 2, and this run has 4; give --rank 2"}},
        {{{"method", "full"}}, {"--method lora, and this run has full"}},
        {{{"shuffle", false}}, {"--shuffle "}},
        {{{"accumulate", 2}}, {"--accumulate 1, and this run has 2"}},
        {{{"lr", 0.01}}, {"--lr 0.001, and this run has 0.01; give --lr 0.001, or another --output, as a branch"}},
        {{{"eval_data", ""}}, {"--eval-data", "and this run has none"}}};
    for (const auto& [change, parts] : cases) {
        Json experiment = further(change);
        if (change.contains("eval_data")) {
            experiment.erase("eval_data");
            experiment.erase("eval_every");
        }
        expectRefused(experiment, parts);
    }
    EXPECT_FALSE(fs::exists(at("out/checkpoint-4")));
}

TEST_F(ResumeTerms, WhatIsReadHasTheSameContents) {
    run(training());
    writeRows("other.jsonl", 5);
    expectRefused(further({{"data", at("other.jsonl")}}), {"--data", "rows.jsonl", "other.jsonl has other contents"});
    expectRefused(further({{"eval_data", at("other.jsonl")}}), {"--eval-data", "other.jsonl has other contents"});
    writeRows("rows.jsonl", 5);
    expectRefused(further(), {"--data", "rows.jsonl has other contents"});
    writeRows("rows.jsonl", 3);
    const std::string weights = at("model/model.safetensors");
    const std::string before = test::readBytes(weights);
    std::string after = before;
    after[after.size() / 2] = static_cast<char>(after[after.size() / 2] ^ 1);
    folder_.write("model/model.safetensors", after);
    expectRefused(further(), {"--model", "has other contents", "give it as it was"});
    folder_.write("model/model.safetensors", before);
    Json config = Json::parse(test::readBytes(at("model/config.json")));
    config["rms_norm_eps"] = 0.5;
    folder_.write("model/config.json", config.dump());
    expectRefused(further(), {"--model", "has another config"});
}

TEST_F(ResumeTerms, WhatMayDifferDoes) {
    const Json whole = run(training({{"steps", 4}, {"output", at("whole")}}));
    run(training());
    fs::rename(at("model"), at("moved"));
    fs::copy_file(at("rows.jsonl"), at("copy.jsonl"));
    said_.clear();
    const Json more = run(further({{"model", at("moved")},
                                   {"data", at("copy.jsonl")},
                                   {"alpha", 4},
                                   {"batch", 1},
                                   {"train", "attention"},
                                   {"threads", 1},
                                   {"keep_checkpoints", 1},
                                   {"eval_every", 1}}));
    EXPECT_EQ(more["losses"], whole["losses"]);
    EXPECT_EQ(more["eval_steps"], (Json{2, 3, 4}));
    EXPECT_THAT(said_, testing::Not(HasSubstr("checkpoint-2")));
}

TEST_F(ResumeTerms, ABranchMayHaveAnotherRateAndSaysSo) {
    run(training());
    said_.clear();
    const Json more = run(further({{"output", at("branch")}, {"lr", 0.01}}));
    EXPECT_EQ(more["resumed_from_step"], 2);
    EXPECT_THAT(said_, HasSubstr("--lr 0.001; the branch goes on with 0.01"));
    expectRefused(further({{"output", at("second")}, {"seed", 8}}), {"--seed 0"});
}

TEST_F(ResumeTerms, OtherStepsOfAScheduleAreSaid) {
    run(training({{"schedule", "linear"}}));
    said_.clear();
    run(further({{"schedule", "linear"}}));
    EXPECT_THAT(said_, HasSubstr("was trained for 2 steps in all; with 4 the schedule linear has other rates"));
}

TEST_F(ResumeTerms, ACheckpointWithoutTermsIsUsedWithAWarning) {
    run(training());
    const std::string file = at("out/checkpoint-2/trainer_state.json");
    Json progress = Json::parse(test::readBytes(file));
    progress.erase("terms");
    std::ofstream(file) << progress.dump();
    said_.clear();
    EXPECT_EQ(run(further())["resumed_from_step"], 2);
    EXPECT_THAT(said_, HasSubstr("does not say what it was trained with"));
}

TEST_F(ResumeTerms, DamagedProgressIsOneSentence) {
    run(training());
    const std::string file = at("out/checkpoint-2/trainer_state.json");
    const Json good = Json::parse(test::readBytes(file));
    for (const Json& change :
         {Json{{"losses", {1, "x"}}}, Json{{"losses", {1}}}, Json{{"eval_steps", 3}}, Json{{"terms", 3}},
          Json{{"terms", {{"options", 1}, {"contents", Json::object()}}}}, Json{{"answers", 3}}, Json{{"step", 99}}}) {
        Json bad = good;
        bad.update(change);
        std::ofstream(file) << bad.dump();
        const std::string what = test::failure([&] { run(further({{"output", at("bad")}, {"overwrite", true}})); });
        EXPECT_TRUE(what == "no error" || what.starts_with("bad_input: ")) << change << what;
    }
}

TEST_F(ResumeTerms, ATrainingThatGoesOnAnotherDayHasItsPrompts) {
    std::ofstream(at("talk.jsonl")) << R"({"messages": [{"role": "user", "content": "Hi"}, )"
                                    << R"({"role": "assistant", "content": "Hello."}]})";
    std::ofstream(at("dated.jinja"))
        << "{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}<|im_start|>{{ m.role }}\n"
        << "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
        << "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}";
    const Json change = {{"model", base::resourcePath("models/vitrine-demo")},
                         {"data", at("talk.jsonl")},
                         {"chat_template", at("dated.jinja")}};
    const auto onDay = [&](Json experiment) {
        experiment.erase("eval_data");
        experiment.erase("eval_every");
        const Experiment spec = Experiment::parse(experiment, "experiment");
        kernels::ContextOptions options;
        options.backend = kernels::Backend::Cpu;
        kernels::Context context(options);
        const WorkloadSinks sinks;
        Json metrics;
        const engine::Run one{spec, sinks, {}, metrics, "2001-02-03"};
        const ModelSource source = openSource(one);
        FinetuneData data(one, source);
        FinetuneModel model(one, source, context);
        FinetuneLoop(one, source, model, data).run();
        return metrics["losses"];
    };
    Json whole = training(change);
    whole.update({{"steps", 4}, {"output", at("whole")}});
    const Json losses = onDay(whole);
    onDay(training(change));
    Json more = further(change);
    more.erase("eval_data");
    more.erase("eval_every");
    EXPECT_EQ(run(more)["losses"], losses);
    more["date"] = "2001-02-04";
    more["resume"] = at("out/checkpoint-2");
    expectRefused(more, {"--date 2001-02-03, and this run has 2001-02-04"});
}

TEST_F(ResumeTerms, EveryOptionHasARule) {
    const std::set<std::string> free = {
        "backend",      "device",         "kernel_pack",      "kernel",        "threads",
        "simd",         "device_profile", "vram_budget",      "host_budget",   "output",
        "plan",         "profile",        "profile_window",   "profile_every", "profile_counters",
        "epochs",       "steps",          "checkpoint",       "loss_chunks",   "tiled_mlp",
        "merge",        "save_gradients", "eval_every",       "save_every",    "sample_prompts",
        "sample_every", "sample_tokens",  "keep_checkpoints", "overwrite",     "resume"};
    for (const OptionSpec& option : optionTable()) {
        if (optionApplies(option, "finetune", false)) {
            EXPECT_EQ(resumeRule(option.key) == ResumeRule::Free, free.contains(std::string(option.key)))
                << option.key << ": say in resume_terms.cpp whether it bears on what is trained";
        }
    }
}

} // namespace
} // namespace vitrine::engine
