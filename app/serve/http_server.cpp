// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_server.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "app/serve/http_rules.h"
#include "app/serve/served_requests.h"

namespace vitrine::app {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostHeldBytes = std::int64_t{512} << 20; ///< of all bodies together
constexpr std::chrono::milliseconds kClosing{2000};

HttpReply jsonReply(const json& body) {
    HttpReply reply;
    reply.body = bodyText(body);
    return reply;
}

} // namespace

HttpServer::HttpServer(int listening, HttpOptions options, Inbox& inbox)
    : options_(std::move(options)), inbox_(inbox), created_(std::time(nullptr)),
      salt_((std::uint64_t{std::random_device()()} << 32) | std::random_device()()),
      loops_(std::make_unique<HttpLoops>(static_cast<HttpSite&>(*this), options_.maxConnections, options_.patience)) {
    loops_->accept(listening);
}

HttpServer::~HttpServer() {
    close();
}

void HttpServer::close() {
    if (loops_ != nullptr) {
        loops_->close(kClosing);
        loops_.reset();
    }
}

std::string HttpServer::newId(std::string_view prefix) {
    return fmt::format("{}-{:016x}{:08x}", prefix, salt_, ids_++);
}

bool HttpServer::hold(std::int64_t bytes) {
    return heldBytes_.fetch_add(bytes) + bytes <= kMostHeldBytes;
}

void HttpServer::answered(int status) {
    inbox_.metrics().answered(status);
}

void HttpServer::checkHead(const HttpRequest& request) const {
    HttpHeaders headers;
    headers.method = request.method;
    headers.url = request.path;
    headers.host = request.header("host");
    headers.contentType = request.header("content-type");
    headers.contentLength = request.header("content-length");
    headers.transferEncoding = request.header("transfer-encoding");
    headers.origin = request.header("origin");
    headers.authorization = request.header("authorization");
    headers.preflight = options_.origins.isPreflight(request);
    checkHeaders(headers, options_.apiKey, options_.loopback);
}

HttpReply HttpServer::errorReply(const ApiError& error, const HttpRequest& request) const {
    HttpReply reply;
    reply.status = error.status;
    reply.body = bodyText(errorBody(error));
    if (error.status == 401) {
        reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    } else if (error.status == 405) {
        reply.headers.emplace_back("Allow", allowedMethods(request.path));
    } else if (error.status == 429 || error.status == kUnavailable) {
        reply.headers.emplace_back("Retry-After", "1");
    }
    return reply;
}

HttpHeaderList HttpServer::headersOf(const HttpRequest& request) const {
    return options_.origins.headersFor(request.header("origin"));
}

bool HttpServer::isKnown(const std::string& name) const {
    return std::find(options_.modelNames.begin(), options_.modelNames.end(), name) != options_.modelNames.end();
}

ApiError HttpServer::unknownModel(const std::string& name) const {
    return {404,
            fmt::format("model: there is no \"{}\" here; this server has \"{}\"", name, options_.modelNames.front()),
            "model", "model_not_found"};
}

/// Of a model that is not there.
ApiError HttpServer::notThere() const {
    const bool loading = inbox_.state() == Inbox::State::Loading;
    return {503,
            loading ? "the model is being loaded; try again" : "the server is stopping",
            {},
            loading ? "loading" : "server_stopping"};
}

HttpReply HttpServer::healthReply() const {
    if (inbox_.state() != Inbox::State::Open) {
        throw notThere();
    }
    const engine::ServeStatus status = inbox_.lastStatus();
    return jsonReply(
        {{"status", "ok"},
         {"running", status.running},
         {"waiting", status.waiting},
         {"requests", status.requests},
         {"generated_tokens", status.generated},
         {"out_of_memory_steps", status.outOfMemorySteps},
         {"kv_pages", {{"used", status.pages.used}, {"cached", status.pages.cached}, {"free", status.pages.free}}}});
}

HttpReply HttpServer::modelsReply(const std::string& path) const {
    std::int64_t longest = 0;
    if (!inbox_.withModel([&](const engine::ServedModel& model) { longest = model.longest; })) {
        throw notThere();
    }
    const json one = modelObject(options_.modelNames.front(), created_, longest);
    if (path == kModelsPath) {
        return jsonReply({{"object", "list"}, {"data", json::array({one})}});
    }
    const std::string name = path.substr(kModelsPath.size() + 1);
    if (!isKnown(name)) {
        throw unknownModel(name);
    }
    return jsonReply(one);
}

/// Also while the model is loaded: a scraper sees the server from its beginning.
HttpReply HttpServer::metricsReply() const {
    HttpReply reply;
    reply.body = inbox_.metrics().text(inbox_.lastStatus(), loops_->connections());
    reply.type = ServeMetrics::kType;
    return reply;
}

HttpAnswer HttpServer::answer(const HttpRequest& request) {
    if (request.method == "OPTIONS") {
        HttpReply reply;
        reply.status = kNoContent;
        reply.headers = AllowedOrigins::preflightHeaders(request, allowedMethods(request.path));
        return reply;
    }
    if (request.path == kHealthPath) {
        return healthReply();
    }
    if (request.path == kMetricsPath) {
        return metricsReply();
    }
    if (request.method != "POST") {
        return modelsReply(request.path);
    }
    return submit(request);
}

std::shared_ptr<Exchange> HttpServer::submit(const HttpRequest& call) {
    const ApiRequest request =
        parseApiRequest(call.body, call.path == kChatPath ? Endpoint::Chat : Endpoint::Completions);
    if (!isKnown(request.model)) {
        throw unknownModel(request.model);
    }
    std::vector<engine::FedRequest> fed;
    std::shared_ptr<Exchange> exchange;
    const auto make = [&](const engine::ServedModel& model) {
        ServedRequests made = servedRequests(model, request);
        ReplyHead head;
        head.endpoint = request.endpoint;
        head.id = newId(request.endpoint == Endpoint::Chat ? "chatcmpl" : "cmpl");
        head.model = request.model;
        head.created = std::time(nullptr);
        head.includeUsage = request.includeUsage;
        head.logprobs = request.logprobs;
        head.topLogprobs = request.topLogprobs;
        head.tokenIds = model.tokenizer == nullptr;
        head.onlyPrompt = request.maxTokens == 0;
        exchange =
            std::make_shared<Exchange>(std::move(head), request.stream, made.requests.size(), model.tokenizer, inbox_);
        exchange->setPromptTokens(made.promptTokens);
        exchange->setEchoes(std::move(made.echoes));
        const auto listeners = exchange->listeners();
        for (std::size_t i = 0; i < listeners.size(); ++i) {
            fed.push_back({std::move(made.requests[i]), listeners[i], std::chrono::steady_clock::now()});
        }
    };
    if (!inbox_.withModel(make)) {
        throw notThere();
    }
    switch (inbox_.submit(std::move(fed))) {
    case Inbox::Submitted::Closed:
        throw notThere();
    case Inbox::Submitted::QueueFull:
        throw ApiError(429, fmt::format("{} requests wait already; try again later", inbox_.maxQueue()), {},
                       "queue_full");
    case Inbox::Submitted::Taken:
        break;
    }
    return exchange;
}

} // namespace vitrine::app
