// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The serve command as a user runs it: its address line, its key, its end, what it leaves in the session.

#include <algorithm>
#include <csignal>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sessions/session_file.h"
#include "tests/app/program.h"
#include "tests/base/eventually.h"
#include "tests/serve/http_client.h"
#include "tests/sessions/temp_folder.h"

namespace vitrine {
namespace {

using nlohmann::json;

std::vector<std::string> serve(const std::vector<std::string>& more) {
    std::vector<std::string> words{"serve", "--model", "synthetic:tiny-gpt-oss", "--backend", "cpu", "--port", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

/// The port in "... at http://127.0.0.1:PORT/v1".
int portIn(const std::string& line) {
    const std::size_t at = line.find("http://127.0.0.1:");
    return at == std::string::npos ? 0 : std::stoi(line.substr(at + 17));
}

TEST(ServeCommand, ServesUntilItIsInterruptedAndKeepsTheRun) {
    const test::TempFolder folder;
    const std::string file = folder.file("serve.vitrine");
    test::Program program(serve({"--session", file, "--api-key", "k", "--served-name", "tiny"}));
    ASSERT_TRUE(program.waitForOutput("/v1\n"));
    const int port = portIn(program.output());
    ASSERT_GT(port, 0) << program.output();
    ASSERT_TRUE(program.waitForOutput("ends at once\n")) << program.output();
    EXPECT_THAT(program.output(), testing::HasSubstr("16 slots; a request may have "));
    EXPECT_THAT(program.output(), testing::HasSubstr("clients must send the API key"));
    EXPECT_THAT(program.output(), testing::HasSubstr("-H 'Authorization: Bearer KEY'"));
    EXPECT_THAT(program.output(), testing::HasSubstr("\"model\":\"tiny\""));
    EXPECT_THAT(program.output(), testing::HasSubstr("(the newest 512 MiB)"));
    const json body = {{"model", "tiny"}, {"prompt", {1, 2, 3}}, {"max_tokens", 5}, {"temperature", 0}};
    EXPECT_EQ(test::post(port, "/v1/completions", body).status, 401);
    const test::HttpReply reply = test::post(port, "/v1/completions", body, "Authorization: Bearer k\r\n");
    EXPECT_EQ(reply.status, 200) << reply.body;
    program.signal(SIGINT);
    const test::ProgramResult result = program.wait();
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_THAT(result.out, testing::HasSubstr("finished_requests"));
    const auto session = sessions::SessionFile::open(file, sessions::OpenMode::ReadOnly);
    const sessions::RunInfo run = session->run(1);
    EXPECT_EQ(run.workload, "serve");
    EXPECT_EQ(run.status, sessions::RunStatus::Done);
    EXPECT_EQ(run.specJson.find("\"k\""), std::string::npos) << "the key is nobody's business";
    EXPECT_EQ(json::parse(run.metricsJson).at("finished_requests"), 1);
    bool tokens = false;
    for (const sessions::RunText& text : session->texts(1)) {
        tokens = tokens || text.kind == "tokens.000000";
    }
    EXPECT_TRUE(tokens);
}

TEST(ServeCommand, TheSecondInterruptEndsAtOnce) {
    const test::TempFolder folder;
    const std::string file = folder.file("serve.vitrine");
    // An answer that goes on for minutes, and no stream: a client that reads nothing for a while would lose it.
    test::Program program(
        serve({"--session", file, "--drain", "600", "--ignore-eos", "--set", "max_position_embeddings=200000"}));
    ASSERT_TRUE(program.waitForOutput("ends at once\n"));
    const int port = portIn(program.output());
    test::HttpConnection client(port);
    const json body = {{"model", "synthetic:tiny-gpt-oss"}, {"prompt", {1, 2, 3}}, {"max_tokens", 190'000}};
    client.send(test::postText("/v1/completions", body.dump()));
    const auto health = [&] { return test::request(port, test::getText("/health")); };
    ASSERT_TRUE(test::eventually([&] { return json::parse(health().body).value("running", 0) == 1; }));
    program.signal(SIGINT);
    ASSERT_TRUE(test::eventually([&] { return health().status == 503; }))
        << "new ones are turned away, those under way go on";
    program.signal(SIGINT);
    EXPECT_EQ(program.wait().exitCode, 130);
    const auto session = sessions::SessionFile::open(file, sessions::OpenMode::ReadWrite);
    EXPECT_EQ(session->run(1).status, sessions::RunStatus::Interrupted);
}

TEST(ServeCommand, JsonIsTheMetricsAlone) {
    test::Program program(serve({"--json"}));
    ASSERT_TRUE(program.waitForError("/v1\n"));
    program.signal(SIGTERM);
    const test::ProgramResult result = program.wait();
    EXPECT_EQ(result.exitCode, 0) << result.err;
    EXPECT_EQ(json::parse(result.out).at("requests"), 0);
}

TEST(ServeCommand, MistakesAreOneLineEach) {
    const auto expect = [](const std::vector<std::string>& more, const std::string& reason) {
        const test::ProgramResult result = test::vitrine(serve(more));
        EXPECT_EQ(result.exitCode, 2) << result.err;
        EXPECT_THAT(result.err, testing::StartsWith("vitrine: error: "));
        EXPECT_THAT(result.err, testing::HasSubstr(reason));
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    };
    expect({"--host", "203.0.113.1"}, "203.0.113.1");
    expect({"--host", "no such name."}, "no such name.");
    expect({"--port", "70000"}, "70000");
    expect({"--slots", "0"}, "slots");
    expect({"--api-key", ""}, "api_key: is empty");
    expect({"--stop", "x"}, "tokenizer");
    expect({"--allow-origin", "*", "--allow-origin", "localhost:3000"}, "allow_origin: \"localhost:3000\"");
    test::Program first(serve({}));
    ASSERT_TRUE(first.waitForOutput("/v1\n"));
    expect({"--port", std::to_string(portIn(first.output()))}, "cannot be had");
    const test::TempFolder folder;
    std::ofstream(folder.file("spec.json"))
        << R"({"vitrine": 1, "workload": "serve", "model": "synthetic:tiny-llama"})";
    const test::ProgramResult run = test::vitrine({"run", folder.file("spec.json")});
    EXPECT_EQ(run.exitCode, 2);
    EXPECT_THAT(run.err, testing::HasSubstr("vitrine serve"));
}

} // namespace
} // namespace vitrine
