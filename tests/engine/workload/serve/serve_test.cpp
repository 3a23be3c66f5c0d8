// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The workload serve with requests that come from the test instead of from HTTP.

#include "engine/workload/serve/serve.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/model/model_test_support.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

struct Listener : RequestListener {
    void token(const GeneratedToken&) override { ++tokens; }
    void ended(const BatchResult& final) override {
        ++ends;
        result = final;
    }

    std::int64_t tokens = 0;
    int ends = 0;
    BatchResult result;
};

/// Sends `count` requests, a few at each look; some are as long as the server says that they may be, some longer, and
/// some leave before their end.
class RandomFeed : public RequestFeed {
public:
    RandomFeed(int count, unsigned seed) : count_(count), random_(seed) {}

    void ready(const ServedModel& model) override {
        model_ = model;
        isReady = true;
    }
    FedWork take(bool) override {
        FedWork work;
        for (int now = below(4); now > 0 && static_cast<int>(listeners.size()) < count_; --now) {
            const std::int64_t longest = below(25) == 0 ? model_.longest : std::min<std::int64_t>(model_.longest, 120);
            const std::int64_t prompt = 1 + below(static_cast<int>(std::max<std::int64_t>(longest - 1, 1)));
            FedRequest& fed = work.arrived.emplace_back();
            fed.request = model_.maker->fromTokens(std::vector<std::int32_t>(static_cast<std::size_t>(prompt), 7));
            fed.request.prompt.front() = below(200);
            const std::int64_t room = longest - prompt;
            fed.request.maxNewTokens = std::max<std::int64_t>(std::min<std::int64_t>(room, 1 + below(40)), 1);
            fed.request.maxNewTokens += below(20) == 0 ? 100'000 : 0;
            fed.request.sampling.temperature = static_cast<double>(below(2));
            fed.request.sampling.repetitionPenalty = below(2) == 0 ? 1.0F : 1.2F;
            fed.received = std::chrono::steady_clock::now();
            fed.listener = listeners.emplace_back(std::make_shared<Listener>());
        }
        if (!listeners.empty() && below(30) == 0) {
            work.left.push_back(listeners[static_cast<std::size_t>(below(static_cast<int>(listeners.size())))]);
        }
        const bool allEnded =
            std::all_of(listeners.begin(), listeners.end(), [](const auto& one) { return one->ends > 0; });
        work.over =
            static_cast<int>(listeners.size()) == count_ && allEnded && ++quiet_ > 2; // its pages were reported by then
        return work;
    }
    void status(const ServeStatus& status) override { last = status; }
    void ended(const std::string& error) noexcept override { why = error; }

    bool isReady = false;
    std::string why;
    ServeStatus last;
    std::vector<std::shared_ptr<Listener>> listeners;

private:
    int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

    int count_;
    int quiet_ = 0;
    std::mt19937 random_;
    ServedModel model_;
};

/// Whatever the budget: the server says at its start that it is too small, or everybody gets an answer or a reason.
TEST(WorkloadServe, NoBudgetFailsInTheMiddle) {
    int served = 0;
    int refused = 0;
    for (unsigned round = 0; round < 60; round += vitrine::test::kCaseStride) {
        const bool rehearses = round % 3 == 2; // a GPU's allocations, on the CPU
        const std::uint64_t untracked = rehearses ? test::testTraits().untrackedBytes : 0;
        const std::uint64_t budget = untracked + 380'000 + std::uint64_t{round} * round * 1500;
        const Json experiment = {{"vitrine", 1},
                                 {"workload", "serve"},
                                 {"model", round % 2 == 0 ? "synthetic:tiny-llama" : test::fixture("gpt-oss-mxfp4")},
                                 {"backend", "cpu"},
                                 {"threads", 1},
                                 {"slots", 1 + round % 9},
                                 {"token_budget", round % 5 == 0 ? 64 : 8192},
                                 {"preemption", round % 4 == 0   ? "swap"
                                                : round % 4 == 1 ? "off"
                                                                 : "recompute"},
                                 {"share_prefixes", round % 7 == 0},
                                 {"ignore_eos", round % 2 == 0},
                                 {"vram_budget", budget}};
        Json spec = experiment;
        if (rehearses) {
            spec["device_profile"] = "h100-80gb";
        }
        RandomFeed feed(25, round);
        WorkloadSinks sinks;
        sinks.feed = &feed;
        try {
            const Json metrics = runExperiment(Experiment::parse(spec, "experiment"), sinks, {});
            EXPECT_EQ(metrics["out_of_memory_steps"], 0) << spec << metrics.value("last_out_of_memory", "");
            EXPECT_EQ(metrics["failed_requests"], 0) << spec;
            EXPECT_LE(metrics["peak_reserved_bytes"], budget) << spec;
            EXPECT_EQ(metrics["requests"], 25) << spec;
            ++served;
        } catch (const base::OutOfMemory& error) {
            EXPECT_FALSE(feed.isReady) << error.message() << "\n" << spec;
            EXPECT_TRUE(feed.listeners.empty());
            EXPECT_NE(error.message().find("raise the memory budget"), std::string::npos) << error.message();
            ++refused;
            continue;
        }
        EXPECT_EQ(feed.why, "");
        EXPECT_LE(feed.last.pages.used, rehearses ? 2 : 0) << "those of rows that fill steps up";
        for (const auto& listener : feed.listeners) {
            const BatchResult& result = listener->result;
            EXPECT_EQ(listener->ends, 1);
            EXPECT_TRUE(!result.refusal.empty() || result.result.finish != FinishReason::None);
            EXPECT_TRUE(result.result.finish != FinishReason::Length || listener->tokens > 0);
        }
    }
    EXPECT_GT(served, vitrine::test::moreThan(35));
    EXPECT_GT(refused, vitrine::test::moreThan(3));
}

} // namespace
} // namespace vitrine::engine
