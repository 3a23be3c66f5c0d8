// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Clients of all manners against a server: those that close one side, that send what is no request, that stay idle.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <vector>

#include "tests/base/eventually.h"
#include "tests/serve/server_rig.h"

namespace vitrine {
namespace {

using nlohmann::json;
using test::HttpReply;
using test::ServerRig;

TEST(HttpConnections, AClientThatClosedItsSendingSideGetsItsAnswer) {
    ServerRig rig;
    for (const bool stream : {false, true}) {
        json body = rig.body(test::promptTokens(9, 1), 400);
        body["stream"] = stream;
        test::HttpConnection client(rig.port());
        client.send(test::postText("/v1/completions", body.dump()));
        ASSERT_EQ(::shutdown(client.socket(), SHUT_WR), 0);
        const HttpReply reply = client.reply();
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_TRUE(reply.complete);
        EXPECT_THAT(reply.body, testing::HasSubstr(stream ? "data: [DONE]" : "\"completion_tokens\":400"));
    }
    test::HttpConnection two(rig.port());
    two.send(test::getText("/v1/models") + test::getText("/health"));
    ASSERT_EQ(::shutdown(two.socket(), SHUT_WR), 0);
    EXPECT_EQ(two.reply().status, 200);
    EXPECT_EQ(two.reply().status, 200) << "of both requests";
}

TEST(HttpConnections, EveryErrorIsOneOfOpenAIsForm) {
    ServerRig rig;
    const auto expect = [&](const std::string& text, int status) {
        const HttpReply reply = test::request(rig.port(), text);
        EXPECT_EQ(reply.status, status) << text.substr(0, 80);
        EXPECT_TRUE(reply.complete);
        EXPECT_THAT(reply.headers, testing::HasSubstr("Content-Type: application/json\r\n"));
        const json error = json::parse(reply.body).at("error");
        EXPECT_FALSE(error.at("message").get<std::string>().empty());
        EXPECT_TRUE(error.at("type").is_string() && error.contains("param") && error.contains("code"));
    };
    const std::string post = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    expect("what is this\r\n\r\n", 400);
    expect("GET /health HTTP/1.1\r\n\r\n", 400);
    expect(post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400);
    expect(post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400);
    expect("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", 404);
    expect("PUT /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 405);
    expect(post + "\r\n", 411);
    expect(post + "Content-Length: 9000000\r\n\r\n", 413);
    expect("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414);
    expect("GET /health HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(40'000, 'x') + "\r\n\r\n", 431);
    expect(post + "Transfer-Encoding: gzip\r\n\r\n", 501);
    expect("GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n", 505);
    EXPECT_EQ(test::request(rig.port(), test::getText("/health")).status, 200);
}

TEST(HttpConnections, IdleClientsKeepNobodyOut) {
    ServerRig::Options options;
    options.server.maxConnections = 8;
    ServerRig rig(options);
    test::HttpConnection busy(rig.port());
    json body = rig.body(test::promptTokens(9, 1), 2000);
    busy.send(test::postText("/v1/completions", body.dump()));
    std::vector<std::unique_ptr<test::HttpConnection>> idle;
    for (int i = 0; i < 300; ++i) {
        idle.push_back(std::make_unique<test::HttpConnection>(rig.port()));
        if (i % 3 == 0) {
            idle.back()->send("GET /hea"); // never whole
        }
        if (i % 50 == 0) {
            EXPECT_EQ(test::request(rig.port(), test::getText("/health")).status, 200) << "after " << i;
        }
    }
    EXPECT_EQ(test::request(rig.port(), test::getText("/health")).status, 200);
    EXPECT_EQ(idle.front()->reply().status, 0) << "the oldest one was closed";
    const HttpReply reply = busy.reply();
    EXPECT_EQ(reply.status, 200) << "who waits for an answer is not idle";
    EXPECT_TRUE(reply.complete);
}

TEST(HttpConnections, WhereAllWaitForAnswersOneMoreIsToldSo) {
    ServerRig::Options options;
    options.server.maxConnections = 2;
    options.server.drain = std::chrono::seconds(0);
    options.more = {{"set", {{"max_position_embeddings", "200000"}}}};
    ServerRig rig(options);
    json body = rig.body(test::promptTokens(9, 1), 190'000);
    body["stream"] = true;
    std::vector<std::unique_ptr<test::HttpConnection>> busy;
    for (int i = 0; i < 2; ++i) {
        busy.push_back(std::make_unique<test::HttpConnection>(rig.port()));
        busy.back()->send(test::postText("/v1/completions", body.dump()));
        ASSERT_TRUE(busy.back()->waitFor("data: "));
    }
    const HttpReply refused = test::request(rig.port(), test::getText("/health"));
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(json::parse(refused.body).at("error").at("code"), "too_many_connections");
    busy.clear();
    EXPECT_TRUE(test::eventually([&] { return test::request(rig.port(), test::getText("/health")).status == 200; }))
        << "and then there is room again";
}

TEST(HttpConnections, MetricsAreWhatTheServerDid) {
    ServerRig rig;
    EXPECT_EQ(rig.complete(rig.body({1, 2, 3}, 5)).status, 200);
    EXPECT_EQ(test::request(rig.port(), test::getText("/nowhere")).status, 404);
    ASSERT_TRUE(rig.becomesIdle());
    const HttpReply reply = test::request(rig.port(), test::getText("/metrics"));
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(reply.headers, testing::HasSubstr("Content-Type: text/plain; version=0.0.4"));
    for (const char* line : {"vitrine_http_responses_total{status=\"404\"} 1\n",
                             "vitrine_requests_total{reason=\"length\"} 1\n", "vitrine_generated_tokens_total 5\n",
                             "vitrine_prompt_tokens_total 3\n", "vitrine_time_to_first_token_seconds_count 1\n",
                             "vitrine_time_per_output_token_seconds_count 1\n", "vitrine_requests_running 0\n"}) {
        EXPECT_THAT(reply.body, testing::HasSubstr(line));
    }
}

} // namespace
} // namespace vitrine
