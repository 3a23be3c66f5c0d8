// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <atomic>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/cli/commands/commands.h"
#include "app/cli/common/interrupt.h"
#include "app/cli/common/run_experiment.h"
#include "app/serve/request_server.h"
#include "base/error.h"
#include "base/units.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// What `serve` takes beyond the experiment: the key and the address are no part of what is kept with a run.
struct ServeFlags {
    RequestServerOptions server;
    int drainSeconds = 5;
};

void addFlags(CLI::App& command, ServeFlags& flags) {
    RequestServerOptions& server = flags.server;
    server.port = 8000;
    const auto add = [&](const char* flag, auto& value, const char* type, const char* help) {
        return command.add_option(flag, value, help)
            ->type_name(type)
            ->group("Server")
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    };
    add("--host", server.host, "ADDRESS", "Address to listen at (default 127.0.0.1, this machine only)");
    add("--port", server.port, "N", "Port; 0: any that is free (default 8000)")->check(CLI::Range(0, 65535));
    add("--api-key", server.apiKey, "KEY",
        "Clients must send it as Authorization: Bearer KEY; also taken from the environment, VITRINE_API_KEY");
    command
        .add_option("--allow-origin", server.allowedOrigins,
                    "Web pages of this origin (http://localhost:3000) may call the server; * for all; repeatable")
        ->type_name("ORIGIN")
        ->group("Server")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    add("--served-name", server.servedName, "NAME", "What clients call the model; unset: its own name");
    add("--max-queue", server.maxQueue, "N", "Requests that wait for a slot at most; more get 429 (default 4096)")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
    add("--max-connections", server.maxConnections, "N", "Clients that are connected at most (default 4096)")
        ->check(CLI::Range(1, 1 << 20));
    add("--drain", flags.drainSeconds, "SECONDS",
        "What answers under way get to end when the server is stopped (default 5)")
        ->check(CLI::Range(0, 86400));
}

/// Progress while the model is loaded, then one line about what runs.
class ServeDisplay {
public:
    void take(const json& message) {
        const std::string type = message.value("type", "");
        if (type == "progress") {
            bar_.show(message.value("what", ""), message.value("done", std::uint64_t{0}),
                      message.value("total", std::uint64_t{0}));
        } else if (type == "ended") {
            bar_.clear();
        }
    }

    void ready(const std::string& text, bool toErrors) {
        bar_.clear();
        if (toErrors) {
            printErrorText(text);
        } else {
            printOut(text);
        }
    }

    void status(const engine::ServeStatus& status) {
        const auto now = std::chrono::steady_clock::now();
        const double passed = std::chrono::duration<double>(now - shown_).count();
        const bool idle = status.running + status.waiting == 0;
        if (passed < kInterval && !idle) {
            return;
        }
        const double rate = passed > 0 && !idle ? static_cast<double>(status.generated - shownTokens_) / passed : 0.0;
        shown_ = now;
        shownTokens_ = status.generated;
        bar_.show(fmt::format("{} running, {} waiting, {:.0f} tok/s", status.running, status.waiting, rate), 0, 0);
    }

private:
    static constexpr double kInterval = 0.5;
    ProgressBar bar_;
    std::int64_t shownTokens_ = 0;
    std::chrono::steady_clock::time_point shown_ = std::chrono::steady_clock::now();
};

/// What a person needs to know first: where, what, within which limits, how to call it and how to end it.
std::string readyText(const RequestServer& server, const RequestServerOptions& options,
                      const engine::ServedModel& model, const engine::Experiment& experiment,
                      const std::string& sessionFile) {
    const bool chats = model.whyNoChat.empty();
    const std::string key = options.apiKey.empty() ? "" : " -H 'Authorization: Bearer KEY'";
    const json question = {{"role", "user"}, {"content", "Hello"}};
    json body = {{"model", server.modelName()}, {"max_tokens", 32}};
    if (chats) {
        body["messages"] = json::array({question});
    } else {
        body["prompt"] = model.tokenizer != nullptr ? json("Hello") : json({1, 2, 3});
    }
    std::string text = fmt::format("Serving {} at {}/v1\n", options.model, server.url());
    text += fmt::format("{} slots; a request may have {} tokens ({}); {} requests may wait; {}\n", model.slots,
                        base::formatGrouped(model.longest), model.whyNotLonger, base::formatGrouped(options.maxQueue),
                        options.apiKey.empty() ? "no API key is asked for" : "clients must send the API key");
    text += fmt::format("curl {}/v1/{}{} -H 'Content-Type: application/json' -d '{}'\n", server.url(),
                        chats ? "chat/completions" : "completions", key, body.dump());
    if (!sessionFile.empty()) {
        const std::uint64_t limit = experiment.bytes("session_limit");
        text += fmt::format("Recording to {} ({}); open it in vitrine-gui to watch\n", sessionFile,
                            limit > 0 ? fmt::format("the newest {}", base::formatBytes(limit)) : "everything");
    }
    return text +
           fmt::format("Ctrl-C gives answers under way {} s to end; once more ends at once\n", options.drain.count());
}

int serve(const engine::Experiment& experiment, const std::string& sessionFile, ServeFlags flags, bool keyGiven,
          const GlobalOptions& options) {
    if (const char* key = std::getenv("VITRINE_API_KEY"); key != nullptr && !keyGiven) {
        flags.server.apiKey = key;
        keyGiven = true;
    }
    if (keyGiven && flags.server.apiKey.empty()) {
        throw base::BadInput("api_key: is empty; give a key with --api-key or VITRINE_API_KEY, or leave it out");
    }
    requireUtf8("--served-name", flags.server.servedName);
    flags.server.model = experiment.text("model");
    flags.server.drain = std::chrono::seconds(flags.drainSeconds);
    std::atomic<bool> ready = false;
    std::unique_ptr<RequestServer> server;
    std::unique_ptr<RunHost> host;
    std::atomic<bool> started = false;
    // The guard is made before any thread of the server, so that all threads leave the signals to it.
    const InterruptGuard interrupt([&] {
        if (started) {
            server->stop();
            if (!ready) {
                host->stop(); // loading takes no notice of clients
            }
        }
    });
    server = RequestServer::make(flags.server);
    ServeDisplay display;
    server->onReady([&](const engine::ServedModel& model) {
        ready = true;
        display.ready(readyText(*server, flags.server, model, experiment, sessionFile), options.json);
    });
    server->onStatus([&](const engine::ServeStatus& status) { display.status(status); });
    host = RunHost::inProcess(false, &server->feed());
    host->start(experiment, sessionFile, [&display](const json& message) { display.take(message); });
    started = true;
    if (interrupt.interrupted()) {
        server->stop();
        host->stop();
    }
    const RunOutcome outcome = host->wait();
    server->close();
    return printOutcome(outcome, experiment, sessionFile, options);
}

} // namespace

void addServe(CLI::App& app, CommandLine& line) {
    CLI::App* command =
        addCommand(app, "serve", "Answer OpenAI's clients: an HTTP endpoint with continuous batching",
                   "vitrine serve --model ./my-model --slots 16 --port 8000 --session serve.vitrine\n"
                   "  curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' "
                   "-d '{\"model\": \"my-model\", \"messages\": [{\"role\": \"user\", \"content\": "
                   "\"Hello\"}]}'");
    const auto flags = std::make_shared<ServeFlags>();
    addFlags(*command, *flags);
    const auto experiment = std::make_shared<ExperimentOptions>(*command, "serve", false);
    command->callback([&line, command, experiment, flags] {
        line.action = [&line, command, experiment, flags] {
            const engine::Experiment value = experiment->experiment();
            if (experiment->dumpSpec()) {
                printOut(value.toJson().dump(2, ' ', false, json::error_handler_t::replace) + "\n");
                return 0;
            }
            return serve(value, experiment->sessionFile(), *flags, command->count("--api-key") > 0, line.options);
        };
    });
}

} // namespace vitrine::app
