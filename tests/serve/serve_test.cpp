// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The endpoint from its socket to the engine and back.

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sys/socket.h>

#include "app/runner/recording/stored_timeline.h"
#include "app/runner/runs/run_compare.h"
#include "base/resource_path.h"
#include "engine/workload/batch/batch.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/request_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "sessions/session_file.h"
#include "tests/fixture_paths.h"
#include "tests/repetitions.h"
#include "tests/serve/server_rig.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::HttpReply;
using test::ServerRig;

ServerRig::Options with(const json& more) {
    ServerRig::Options options;
    options.more = more;
    return options;
}

ServerRig::Options demoModel(const json& more = json::object()) {
    ServerRig::Options options = with(more);
    options.model = base::resourcePath("models/vitrine-demo");
    return options;
}

/// Tokens of an answer that goes on for minutes: nothing that a test does meanwhile comes too late. Needs
/// longContext().
constexpr int kEndless = 190'000;

ServerRig::Options longContext(json more) {
    more["set"] = {{"max_position_embeddings", "200000"}};
    return with(more);
}

std::vector<std::int32_t> idsOf(const json& choice) {
    return choice.at("token_ids").get<std::vector<std::int32_t>>();
}

json errorOf(const HttpReply& reply) {
    return json::parse(reply.body).at("error");
}

TEST(Serve, AnswersAsOneByOneGenerationDoes) {
    ServerRig rig;
    const auto prompt = test::promptTokens(9, 3);
    const auto expected = test::oneByOne("synthetic:tiny-llama", {prompt}, 10).at(0);
    const HttpReply reply = rig.complete(rig.body(prompt, 10));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json answer = json::parse(reply.body);
    EXPECT_EQ(answer.at("object"), "text_completion");
    EXPECT_EQ(answer.at("model"), rig.name());
    const json& choice = answer.at("choices").at(0);
    EXPECT_EQ(idsOf(choice), expected);
    EXPECT_EQ(choice.at("finish_reason"), "length");
    EXPECT_EQ(answer.at("usage").at("prompt_tokens"), 9);
    EXPECT_EQ(answer.at("usage").at("completion_tokens"), 10);
    EXPECT_EQ(answer.at("usage").at("total_tokens"), 19);
    std::string numbers;
    for (const std::int32_t id : expected) {
        numbers += (numbers.empty() ? "" : " ") + std::to_string(id);
    }
    EXPECT_EQ(choice.at("text"), numbers) << "without a tokenizer the text is the ids";
}

TEST(Serve, AnAnswerEndsWithTheContext) {
    ServerRig rig(with({{"set", {{"max_position_embeddings", "64"}}}}));
    const json answer = json::parse(rig.complete(rig.body(test::promptTokens(58, 1), 100)).body);
    EXPECT_EQ(answer.at("usage").at("completion_tokens"), 6);
    EXPECT_EQ(answer.at("choices").at(0).at("finish_reason"), "length");
    const HttpReply full = rig.complete(rig.body(test::promptTokens(64, 1), 100));
    EXPECT_EQ(full.status, 400);
    EXPECT_THAT(errorOf(full).at("message").get<std::string>(), testing::HasSubstr("64"));
}

TEST(Serve, WithoutATokenizerTextIsRefusedOrBytes) {
    ServerRig::Options options;
    options.model = test::fixture("llama");
    {
        ServerRig folder(options);
        const HttpReply refused = folder.complete(folder.body("text", 3));
        EXPECT_EQ(refused.status, 400);
        EXPECT_THAT(errorOf(refused).at("message").get<std::string>(), testing::HasSubstr("no tokenizer"));
        const json chat = {{"model", folder.name()}, {"messages", {{{"role", "user"}, {"content", "x"}}}}};
        EXPECT_EQ(errorOf(folder.chat(chat)).at("param"), "messages");
        json stop = folder.body({1, 2}, 3);
        stop["stop"] = "x";
        EXPECT_EQ(errorOf(folder.complete(stop)).at("param"), "stop");
    }
    ServerRig synthetic;
    const json bytes = json::parse(synthetic.complete(synthetic.body("AB", 5)).body);
    EXPECT_EQ(bytes.at("usage").at("prompt_tokens"), 2);
    EXPECT_EQ(idsOf(bytes.at("choices").at(0)),
              idsOf(json::parse(synthetic.complete(synthetic.body({65, 66}, 5)).body).at("choices").at(0)));
    const HttpReply chat = synthetic.chat(
        {{"model", synthetic.name()}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"max_tokens", 2}});
    EXPECT_EQ(chat.status, 200) << chat.body;
}

TEST(Serve, AThousandStreamsAtOnceAreAllThereAndNoneIsMixedUp) {
    constexpr int kClients = test::repetitions(1000);
    constexpr int kTokens = 24;
    ServerRig rig(with({{"slots", 64}}));
    std::vector<std::vector<std::int32_t>> prompts;
    std::vector<std::string> requests;
    for (int i = 0; i < kClients; ++i) {
        prompts.push_back(test::promptTokens(2 + i % 9, i));
        json body = rig.body(prompts.back(), kTokens);
        body["stream"] = true;
        body["stream_options"] = {{"include_usage", true}};
        requests.push_back(test::postText("/v1/completions", body.dump()));
    }
    const auto expected = test::oneByOne("synthetic:tiny-llama", prompts, kTokens);
    const auto replies = test::manyRequests(rig.port(), requests, std::chrono::seconds(120));
    std::set<std::vector<std::int32_t>> different;
    std::set<std::string> ids;
    for (std::size_t i = 0; i < replies.size(); ++i) {
        ASSERT_EQ(replies[i].status, 200) << "client " << i << ": " << replies[i].body;
        ASSERT_TRUE(replies[i].complete) << "client " << i;
        bool done = false;
        std::vector<std::int32_t> got;
        for (const json& event : test::events(replies[i].body, &done)) {
            ids.insert(event.at("id"));
            for (const json& choice : event.at("choices")) {
                const auto more = choice.value("token_ids", std::vector<std::int32_t>());
                got.insert(got.end(), more.begin(), more.end());
            }
            if (event.at("choices").empty()) {
                EXPECT_EQ(event.at("usage").at("completion_tokens"), kTokens);
                EXPECT_EQ(event.at("usage").at("prompt_tokens"), prompts[i].size());
            }
        }
        EXPECT_TRUE(done) << "client " << i;
        ASSERT_EQ(got, expected[i]) << "client " << i;
        different.insert(got);
    }
    EXPECT_EQ(ids.size(), static_cast<std::size_t>(kClients)) << "every answer has an id of its own";
    EXPECT_GT(different.size(), static_cast<std::size_t>(kClients) / 2) << "a mix-up would be seen";
    EXPECT_TRUE(rig.becomesIdle());
    const json metrics = json::parse(rig.end().metricsJson);
    EXPECT_EQ(metrics.at("finished_requests"), kClients);
    EXPECT_EQ(metrics.at("generated_tokens"), kClients * kTokens);
}

TEST(Serve, AClientThatGoesAwayFreesItsPages) {
    ServerRig rig(longContext({{"slots", 2}}));
    // One that runs, one that has not sent its first token, one that waits; streams and not.
    json body = rig.body(test::promptTokens(40, 1), kEndless);
    body["stream"] = true;
    test::HttpConnection running(rig.port());
    running.send(test::postText("/v1/completions", body.dump()));
    ASSERT_TRUE(running.waitFor("data: "));
    body["stream"] = false;
    test::HttpConnection silent(rig.port());
    silent.send(test::postText("/v1/completions", body.dump()));
    test::HttpConnection waiting(rig.port());
    waiting.send(test::postText("/v1/completions", body.dump()));
    // Each step that admits somebody is reported.
    ASSERT_TRUE(rig.becomes([](const json& now) { return now.at("running") == 2 && now.at("waiting") == 1; }));
    EXPECT_GT(rig.health().at("kv_pages").at("used"), 0);
    waiting.close();
    running.close();
    silent.close();
    EXPECT_TRUE(rig.becomesIdle());
    EXPECT_LT(rig.health().at("generated_tokens"), kEndless) << "they were not served to their ends";
    EXPECT_EQ(rig.complete(rig.body({1, 2, 3}, 2)).status, 200) << "others are served on";
    const json metrics = json::parse(rig.end().metricsJson);
    EXPECT_EQ(metrics.at("cancelled_requests"), 3);
}

TEST(Serve, AReaderThatStallsLosesItsAnswersAndFreesTheirPages) {
    constexpr int kAnswers = 8;
    constexpr int kTokens = 3000;
    ServerRig rig(with({{"slots", kAnswers}}));
    json body = rig.body(test::promptTokens(5, 1), kTokens);
    body["stream"] = true;
    body["n"] = kAnswers;
    body["temperature"] = 1;
    body["logprobs"] = 1;
    test::HttpConnection stalled(rig.port());
    const int least = 1;
    ASSERT_EQ(::setsockopt(stalled.socket(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least), 0);
    stalled.send(test::postText("/v1/completions", body.dump()));
    ASSERT_TRUE(stalled.waitFor("data: "));
    // It stays connected and reads no more: all of it would be some 15 MB, of which the server keeps a little.
    EXPECT_TRUE(rig.becomesIdle());
    EXPECT_LT(rig.health().at("generated_tokens"), kAnswers * kTokens) << "they were not served to their ends";
    EXPECT_EQ(rig.complete(rig.body({1, 2, 3}, 2)).status, 200) << "others are served on";
    EXPECT_EQ(json::parse(rig.end().metricsJson).at("cancelled_requests"), kAnswers);
}

TEST(Serve, WhatIsMalformedIsRefusedWithAReason) {
    ServerRig rig(demoModel());
    const json good = {{"model", rig.name()}, {"prompt", "Hello"}, {"max_tokens", 1}};
    const auto expect = [&](const HttpReply& reply, int status, const std::string& reason) {
        EXPECT_EQ(reply.status, status) << reply.body;
        ASSERT_TRUE(reply.complete) << reason;
        const json error = errorOf(reply);
        EXPECT_THAT(error.at("message").get<std::string>(), testing::HasSubstr(reason));
        EXPECT_TRUE(error.at("type").is_string());
        EXPECT_TRUE(error.contains("param"));
        EXPECT_TRUE(error.contains("code"));
    };
    const auto broken = [&](const std::string& body) {
        return test::request(rig.port(), test::postText("/v1/completions", body));
    };
    expect(broken(""), 400, "body");
    expect(broken("{"), 400, "body: line 1");
    expect(broken("[1]"), 400, "must be a JSON object");
    expect(broken("{\"model\": \"\xFF\"}"), 400, "UTF-8");
    expect(broken(std::string(100'000, '[')), 400, "body");
    json wrong = good;
    wrong["model"] = "another";
    expect(rig.complete(wrong), 404, "another");
    EXPECT_EQ(errorOf(rig.complete(wrong)).at("code"), "model_not_found");
    wrong = good;
    wrong["prompt"] = json::array({1, 1'000'000});
    expect(rig.complete(wrong), 400, "1000000");
    wrong["prompt"] = std::string(40'000, 'x');
    expect(rig.complete(wrong), 400, "4096");
    EXPECT_EQ(errorOf(rig.complete(wrong)).at("code"), "context_length_exceeded");
    wrong["prompt"] = "";
    expect(rig.complete(wrong), 400, "no tokens");
    expect(rig.chat({{"model", rig.name()}, {"messages", json::array()}}), 400, "messages");
    expect(rig.chat({{"model", rig.name()}, {"messages", {{{"role", 1}, {"content", "x"}}}}}), 400, "role");
    expect(test::request(rig.port(), test::getText("/v1/completions")), 405, "POST");
    expect(test::request(rig.port(), test::getText("/v2/models")), 404, "/v2/models");
    expect(test::request(rig.port(), test::getText("/v1/models/another")), 404, "another");
    expect(test::request(rig.port(), "DELETE /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"), 405, "GET");
    expect(test::request(rig.port(), "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
                                     "Content-Length: 2\r\n\r\n{}"),
           415, "text/plain");
    expect(test::request(rig.port(), "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 403, "evil.example");
    expect(test::request(rig.port(), test::postText("/v1/completions", std::string(std::size_t{9} << 20, ' '))), 413,
           "MiB");
    expect(test::request(rig.port(),
                         "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n"
                         "Content-Type: application/json\r\n\r\n{"),
           413, "MiB");
    expect(test::request(rig.port(), "complete nonsense\r\n\r\n"), 400, "METHOD PATH HTTP/1.1");
    EXPECT_EQ(rig.complete(good).status, 200) << "and goes on serving";
    EXPECT_TRUE(rig.becomesIdle());
}

TEST(Serve, AKeyIsAskedFor) {
    ServerRig::Options options;
    options.server.servedName = "tiny";
    ServerRig open(options);
    EXPECT_EQ(open.name(), "tiny");
    options.server.apiKey = "s3cret";
    std::unique_ptr<app::RequestServer> server = app::RequestServer::make(options.server);
    const int port = std::stoi(server->url().substr(server->url().rfind(':') + 1));
    EXPECT_EQ(test::request(port, test::getText("/v1/models")).status, 401);
    EXPECT_EQ(test::request(port, test::getText("/v1/models", "Authorization: Bearer s3cre\r\n")).status, 401);
    EXPECT_EQ(test::request(port, test::getText("/v1/models", "Authorization: Basic s3cret\r\n")).status, 401);
    EXPECT_EQ(test::request(port, test::getText("/v1/models", "Authorization: Bearer s3cret\r\n")).status, 503)
        << "the key is right, and nothing is loaded";
    EXPECT_EQ(test::request(port, test::getText("/health")).status, 503);
    server->close();
}

TEST(Serve, MoreThanTheQueueHoldsIsTurnedAway) {
    ServerRig::Options options = longContext({{"slots", 1}});
    options.server.maxQueue = 2;
    ServerRig rig(options);
    std::vector<std::unique_ptr<test::HttpConnection>> clients;
    json body = rig.body(test::promptTokens(5, 1), kEndless);
    body["stream"] = true;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(std::make_unique<test::HttpConnection>(rig.port()));
        clients.back()->send(test::postText("/v1/completions", body.dump()));
        ASSERT_TRUE(clients.back()->waitFor("200 OK"));
    }
    const HttpReply refused = rig.complete(rig.body({1, 2}, 1));
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(errorOf(refused).at("code"), "queue_full");
    EXPECT_THAT(refused.headers, testing::HasSubstr("Retry-After"));
    clients.clear();
    ASSERT_TRUE(rig.becomesIdle());
    EXPECT_EQ(rig.complete(rig.body({1, 2}, 1)).status, 200);
}

TEST(Serve, ARunsEndReachesEveryStream) {
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    ServerRig::Options options = longContext({{"slots", 2}});
    options.session = folder.file("serve.vitrine");
    options.server.drain = std::chrono::seconds(0);
    ServerRig rig(options);
    json body = rig.body(test::promptTokens(5, 1), kEndless);
    body["stream"] = true;
    std::vector<std::unique_ptr<test::HttpConnection>> clients;
    for (int i = 0; i < 5; ++i) {
        clients.push_back(std::make_unique<test::HttpConnection>(rig.port()));
        clients.back()->send(test::postText("/v1/completions", body.dump()));
        ASSERT_TRUE(clients.back()->waitFor("200 OK"));
    }
    ASSERT_TRUE(clients[0]->waitFor("data: "));
    const app::RunOutcome outcome = rig.end();
    EXPECT_EQ(outcome.status, app::RunOutcome::Status::Done) << outcome.error;
    for (const auto& client : clients) {
        const HttpReply reply = client->reply();
        EXPECT_EQ(reply.status, 200);
        EXPECT_TRUE(reply.complete);
        EXPECT_THAT(reply.body, testing::HasSubstr("server_stopping"));
    }
    const auto session = sessions::SessionFile::open(options.session, sessions::OpenMode::ReadOnly);
    EXPECT_EQ(session->run(1).status, sessions::RunStatus::Done);
    const auto streams = session->streams(1);
    EXPECT_TRUE(std::any_of(streams.begin(), streams.end(),
                            [](const std::string& name) { return name.starts_with("batch."); }));
    EXPECT_EQ(json::parse(session->run(1).metricsJson).at("cancelled_requests"), 5);
}

TEST(Serve, ASmallBudgetFailsAtTheStartOrIsEnoughForAllThatIsTaken) {
    std::uint64_t needed = 0;
    {
        ServerRig rig;
        needed = json::parse(rig.end().metricsJson).at("peak_by_category").at("weights");
    }
    try {
        const ServerRig rig(with({{"vram_budget", needed + 8192}})); // no room for a page of the cache
        ADD_FAILURE() << "it serves nobody";
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr(": out of memory: "));
        EXPECT_THAT(error.what(), testing::HasSubstr("raise the memory budget"));
    }
    ServerRig rig(with({{"vram_budget", needed + (400 << 10)}}));
    const HttpReply large = rig.complete(rig.body(test::promptTokens(2000, 1), 3));
    EXPECT_EQ(large.status, 400);
    EXPECT_THAT(std::string(errorOf(large).at("message")), testing::HasSubstr("the KV cache holds"));
    const std::string message = errorOf(large).at("message");
    const auto longest = std::stoi(message.substr(message.find("may have ") + 9));
    EXPECT_GE(longest, 64);
    std::vector<std::string> requests;
    for (int i = 0; i < 30; ++i) {
        const int prompt = i % 5 == 0 ? longest - 1 : 1 + i * 3;
        requests.push_back(
            test::postText("/v1/completions", rig.body(test::promptTokens(prompt, i), longest - prompt).dump()));
    }
    for (const HttpReply& reply : test::manyRequests(rig.port(), requests, std::chrono::seconds(120))) {
        EXPECT_EQ(reply.status, 200) << reply.body;
    }
    ASSERT_TRUE(rig.becomesIdle()) << "no page stays in use";
    EXPECT_EQ(rig.health().at("out_of_memory_steps"), 0);
    const json metrics = json::parse(rig.end().metricsJson);
    EXPECT_EQ(metrics.at("failed_requests"), 0);
    EXPECT_LE(metrics.at("peak_reserved_bytes"), needed + (400 << 10));
    EXPECT_LT(metrics.at("step_tokens"), 8192);
}

/// Who ends in a part has an arrival, an admission and a first token in it, and they are what the part's numbers say.
void expectWholeRequests(const profiler::RunTimeline& timeline, const json& metrics, bool last) {
    using base::RequestChange;
    std::map<std::int32_t, std::map<RequestChange, base::TimeNs>> requests;
    for (const base::RequestEvent& event : timeline.requests().events()) {
        requests[event.request].emplace(event.phase, event.time);
    }
    std::vector<double> ttft;
    std::vector<double> whole;
    for (const auto& [number, times] : requests) {
        if (const auto end = times.find(RequestChange::Finished); end != times.end()) {
            ASSERT_TRUE(times.contains(RequestChange::Arrived) && times.contains(RequestChange::Admitted) &&
                        times.contains(RequestChange::FirstToken))
                << "request " << number;
            const base::TimeNs arrived = times.at(RequestChange::Arrived);
            EXPECT_LE(arrived, times.at(RequestChange::Admitted));
            EXPECT_LT(times.at(RequestChange::Admitted), times.at(RequestChange::FirstToken));
            ttft.push_back(static_cast<double>(times.at(RequestChange::FirstToken) - arrived) * 1e-9);
            whole.push_back(static_cast<double>(end->second - arrived) * 1e-9);
        }
    }
    if (last) {
        return; // its metrics are those of all parts together
    }
    EXPECT_EQ(metrics.at("finished_requests"), ttft.size());
    EXPECT_EQ(metrics.at("ttft"), engine::percentilesJson(ttft));
    EXPECT_EQ(metrics.at("e2e"), engine::percentilesJson(whole));
}

TEST(Serve, TheSessionGoesOnInPartsWhileAnswersRun) {
    // How large parts become depends on what waits to be written: not on a disk that stands still.
    const test::TempFolder folder(test::TempFolder::Place::Memory);
    ServerRig::Options options = with({{"slots", 4}, {"session_limit", 1 << 20}});
    options.session = folder.file("serve.vitrine");
    ServerRig rig(options);
    const auto expected = test::oneByOne("synthetic:tiny-llama", {test::promptTokens(5, 1)}, 60).at(0);
    for (int round = 0; round < 60; ++round) {
        const std::vector<std::string> requests(
            16, test::postText("/v1/completions", rig.body(test::promptTokens(5, 1), 60).dump()));
        for (const HttpReply& reply : test::manyRequests(rig.port(), requests, std::chrono::seconds(60))) {
            ASSERT_EQ(reply.status, 200);
            ASSERT_EQ(json::parse(reply.body).at("choices").at(0).at("token_ids"), json(expected));
        }
    }
    const app::RunOutcome outcome = rig.end();
    EXPECT_EQ(outcome.status, app::RunOutcome::Status::Done) << outcome.error;
    const auto session = sessions::SessionFile::open(options.session, sessions::OpenMode::ReadOnly);
    const auto runs = session->runs();
    EXPECT_GT(runs.size(), 1U);
    EXPECT_LT(runs.size(), 6U);
    EXPECT_EQ(outcome.run, runs.back().id);
    EXPECT_GT(runs.back().id, 5) << "older ones are gone";
    for (const sessions::RunInfo& run : runs) {
        EXPECT_EQ(run.status, sessions::RunStatus::Done);
        const auto timeline = app::loadTimeline(*session, run.id);
        EXPECT_TRUE(timeline->memory().complete());
        const base::CategoryBytes end = timeline->memory().at(timeline->end());
        EXPECT_GT(
            timeline->memory().peak(0, timeline->end()).atMax[static_cast<std::size_t>(base::MemoryCategory::Weights)],
            0U)
            << "every part knows the weights";
        EXPECT_EQ(end[static_cast<std::size_t>(base::MemoryCategory::Activations)], 0U);
        ASSERT_FALSE(timeline->requests().steps().empty());
        std::int64_t index = 0;
        for (const base::BatchStepEvent& step : timeline->requests().steps()) {
            ASSERT_EQ(step.index, index++);
        }
        expectWholeRequests(*timeline, json::parse(run.metricsJson), run.id == runs.back().id);
    }
    EXPECT_LT(std::filesystem::file_size(options.session), std::size_t{3} << 19);
}

TEST(Serve, DrainingLetsAnswersEndAndTurnsNewOnesAway) {
    ServerRig rig;
    json body = rig.body(test::promptTokens(5, 1), 300);
    body["stream"] = true;
    test::HttpConnection client(rig.port());
    client.send(test::postText("/v1/completions", body.dump()));
    ASSERT_TRUE(client.waitFor("data: "));
    rig.stop();
    const HttpReply late = rig.complete(rig.body({1, 2}, 1));
    EXPECT_EQ(late.status, 503) << late.body;
    const HttpReply reply = client.reply();
    EXPECT_TRUE(reply.complete);
    EXPECT_THAT(reply.body, testing::HasSubstr("[DONE]"));
    EXPECT_EQ(json::parse(rig.end().metricsJson).at("finished_requests"), 1);
}

} // namespace
} // namespace vitrine
