// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/http_server.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <microhttpd.h>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "app/serve/http_rules.h"
#include "app/serve/served_requests.h"
#include "base/error.h"
#include "base/log.h"

namespace vitrine::app {
namespace {

using nlohmann::json;

constexpr std::size_t kMostHeldBytes = std::size_t{512} << 20; ///< of all bodies together
/// A body beyond the limit is read up to here, so that its client gets to read the answer.
constexpr std::size_t kMostReadBytes = std::size_t{64} << 20;
constexpr std::size_t kBlock = std::size_t{16} << 10;
constexpr unsigned kIdleSeconds = 30;
constexpr std::chrono::milliseconds kClosing{2000};

std::string header(MHD_Connection* connection, const char* name) {
    const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value != nullptr ? value : "";
}

} // namespace

/// One request of HTTP.
class HttpServer::Call final : public Sleeper {
public:
    explicit Call(MHD_Connection* its) : connection(its) {}
    void sleep() override { MHD_suspend_connection(connection); }
    void wake() override { MHD_resume_connection(connection); }

    MHD_Connection* connection;
    std::string url, method;
    std::optional<ApiError> error; ///< found in the headers
    std::string body;
    std::size_t bodyBytes = 0; ///< received, whether kept or not
    std::shared_ptr<Exchange> exchange;
    bool tooLong = false; ///< its body is not even read
};

/// What the library calls. Nothing may be thrown through it.
struct HttpCallbacks {
    static MHD_Result access(void* self, MHD_Connection* connection, const char* url, const char* method,
                             const char* /*version*/, const char* data, std::size_t* size, void** state) {
        auto& server = *static_cast<HttpServer*>(self);
        try {
            if (*state == nullptr) {
                *state = server.begin(connection, url, method).release();
                auto& begun = *static_cast<HttpServer::Call*>(*state);
                // A body that is too long is not read: the connection ends with the answer.
                return begun.tooLong && !server.answer(begun) ? MHD_NO : MHD_YES;
            }
            auto& call = *static_cast<HttpServer::Call*>(*state);
            if (*size > 0) {
                return upload(server, call, data, size) ? MHD_YES : MHD_NO;
            }
            return server.answer(call) ? MHD_YES : MHD_NO;
        } catch (const std::exception& failure) {
            base::logWarning(fmt::format("a request could not be answered: {}", failure.what()));
            return MHD_NO;
        }
    }

    static bool upload(HttpServer& server, HttpServer::Call& call, const char* data, std::size_t* size) {
        const std::size_t count = std::exchange(*size, 0);
        call.bodyBytes += count;
        if (call.bodyBytes > kMostReadBytes) {
            return false;
        }
        if (call.error) {
            return true;
        }
        if (call.bodyBytes > kMostBodyBytes) {
            call.error = bodyTooLarge();
        } else if (server.heldBytes_.fetch_add(count) + count > kMostHeldBytes) {
            server.heldBytes_ -= count;
            call.error = ApiError(503, "the server holds too many requests; try again");
        }
        if (call.error) {
            server.heldBytes_ -= call.body.size();
            call.body = {};
        } else {
            call.body.append(data, count);
        }
        return true;
    }

    static void completed(void* self, MHD_Connection* connection, void** state, MHD_RequestTerminationCode /*why*/) {
        auto& server = *static_cast<HttpServer*>(self);
        const std::unique_ptr<HttpServer::Call> call(static_cast<HttpServer::Call*>(std::exchange(*state, nullptr)));
        if (call == nullptr) {
            return;
        }
        {
            const std::lock_guard lock(server.mutex_);
            server.calls_.erase(call.get());
        }
        server.watch_.answered(socketOf(connection));
        server.heldBytes_ -= call->body.size();
        if (call->exchange != nullptr) {
            call->exchange->detach();
            call->exchange->abandon(); // nothing when the answer was whole
        }
    }

    static void connected(void* self, MHD_Connection* connection, void** /*context*/,
                          MHD_ConnectionNotificationCode what) {
        auto& server = *static_cast<HttpServer*>(self);
        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
            server.watch_.add(socketOf(connection));
        } else {
            server.watch_.remove(socketOf(connection));
        }
    }

    static ssize_t read(void* state, std::uint64_t /*position*/, char* out, std::size_t most) {
        auto& call = *static_cast<HttpServer::Call*>(state);
        const std::int64_t count = call.exchange->read(out, most, call);
        return count == Exchange::kEnd      ? MHD_CONTENT_READER_END_OF_STREAM
               : count == Exchange::kBroken ? MHD_CONTENT_READER_END_WITH_ERROR
                                            : static_cast<ssize_t>(count);
    }

    static int socketOf(MHD_Connection* connection) {
        const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        return info != nullptr ? info->connect_fd : -1;
    }

    static void log(void* /*self*/, const char* format, va_list arguments) {
        std::array<char, 512> text{};
        std::vsnprintf(text.data(), text.size(), format, arguments);
        base::logDebug(text.data());
    }
};

HttpServer::HttpServer(int listening, HttpOptions options, Inbox& inbox)
    : options_(std::move(options)), inbox_(inbox), watch_(options_.patience), created_(std::time(nullptr)),
      salt_((std::uint64_t{std::random_device()()} << 32) | std::random_device()()) {
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 2U, 4U);
    daemon_ = MHD_start_daemon(flags, 0, nullptr, nullptr, &HttpCallbacks::access, this, MHD_OPTION_EXTERNAL_LOGGER,
                               &HttpCallbacks::log, nullptr, MHD_OPTION_LISTEN_SOCKET, listening,
                               MHD_OPTION_THREAD_POOL_SIZE, threads, MHD_OPTION_CONNECTION_LIMIT,
                               static_cast<unsigned>(options_.maxConnections), MHD_OPTION_CONNECTION_TIMEOUT,
                               kIdleSeconds, MHD_OPTION_NOTIFY_COMPLETED, &HttpCallbacks::completed, this,
                               MHD_OPTION_NOTIFY_CONNECTION, &HttpCallbacks::connected, this, MHD_OPTION_END);
    if (daemon_ == nullptr) {
        throw base::Unsupported("serve: the HTTP library could not start its threads");
    }
}

HttpServer::~HttpServer() {
    close();
}

void HttpServer::close() {
    if (daemon_ == nullptr) {
        return;
    }
    const int listening = MHD_quiesce_daemon(daemon_);
    const auto isIdle = [this] {
        const std::lock_guard lock(mutex_);
        return calls_.empty();
    };
    for (auto left = kClosing; left.count() > 0 && !isIdle(); left -= std::chrono::milliseconds(10)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    {
        // The library cannot be stopped while a connection is suspended.
        const std::lock_guard lock(mutex_);
        for (Call* call : calls_) {
            if (call->exchange != nullptr) {
                call->exchange->abandon();
            }
        }
    }
    MHD_stop_daemon(std::exchange(daemon_, nullptr));
    if (listening >= 0) {
        ::shutdown(listening, SHUT_RDWR);
        ::close(listening);
    }
}

std::string HttpServer::newId(const char* prefix) {
    return fmt::format("{}-{:016x}{:08x}", prefix, salt_, ids_++);
}

std::unique_ptr<HttpServer::Call> HttpServer::begin(MHD_Connection* connection, const char* url, const char* method) {
    auto call = std::make_unique<Call>(connection);
    call->url = url;
    call->method = method;
    try {
        check(*call, connection);
    } catch (const ApiError& error) {
        call->error = error;
    }
    const std::lock_guard lock(mutex_);
    calls_.insert(call.get());
    return call;
}

void HttpServer::check(Call& call, MHD_Connection* connection) const {
    HttpHeaders headers;
    headers.method = call.method;
    headers.url = call.url;
    headers.host = header(connection, MHD_HTTP_HEADER_HOST);
    headers.contentType = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
    headers.contentLength = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    headers.origin = header(connection, MHD_HTTP_HEADER_ORIGIN);
    headers.authorization = header(connection, MHD_HTTP_HEADER_AUTHORIZATION);
    call.tooLong = bodyLength(headers).value_or(kMostReadBytes + 1) > kMostReadBytes;
    checkHeaders(headers, options_.apiKey, options_.loopback);
}

/// The request is whole, or was woken.
bool HttpServer::answer(Call& call) {
    if (call.exchange == nullptr) {
        try {
            if (call.error) {
                throw ApiError(*call.error);
            }
            if (const std::optional<Exchange::Reply> reply = take(call)) {
                return sendReply(call, reply->status, reply->body);
            }
        } catch (const ApiError& error) {
            return sendReply(call, error.status, bodyText(errorBody(error)));
        }
        if (call.exchange->stream()) {
            return sendStream(call);
        }
    }
    if (call.exchange->abandoned()) {
        return false;
    }
    const std::optional<Exchange::Reply> reply = call.exchange->reply(call);
    return !reply || sendReply(call, reply->status, reply->body);
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

Exchange::Reply HttpServer::healthReply() const {
    if (inbox_.state() != Inbox::State::Open) {
        throw notThere();
    }
    const engine::ServeStatus status = inbox_.lastStatus();
    return {200,
            bodyText({{"status", "ok"},
                      {"running", status.running},
                      {"waiting", status.waiting},
                      {"requests", status.requests},
                      {"generated_tokens", status.generated},
                      {"out_of_memory_steps", status.outOfMemorySteps},
                      {"kv_pages",
                       {{"used", status.pages.used}, {"cached", status.pages.cached}, {"free", status.pages.free}}}})};
}

Exchange::Reply HttpServer::modelsReply(const std::string& url) const {
    std::int64_t longest = 0;
    if (!inbox_.withModel([&](const engine::ServedModel& model) { longest = model.longest; })) {
        throw notThere();
    }
    const json one = modelObject(options_.modelNames.front(), created_, longest);
    if (url == kModelsPath) {
        return {200, bodyText({{"object", "list"}, {"data", json::array({one})}})};
    }
    const std::string name = url.substr(kModelsPath.size() + 1);
    if (!isKnown(name)) {
        throw unknownModel(name);
    }
    return {200, bodyText(one)};
}

/// What can be answered at once; else the call has an exchange. Throws ApiError.
std::optional<Exchange::Reply> HttpServer::take(Call& call) {
    if (call.url == kHealthPath) {
        return healthReply();
    }
    if (call.method != MHD_HTTP_METHOD_POST) {
        return modelsReply(call.url);
    }
    submit(call);
    return std::nullopt;
}

void HttpServer::submit(Call& call) {
    const ApiRequest request =
        parseApiRequest(call.body, call.url == kChatPath ? Endpoint::Chat : Endpoint::Completions);
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
        exchange =
            std::make_shared<Exchange>(std::move(head), request.stream, made.requests.size(), model.tokenizer, inbox_);
        exchange->setPromptTokens(made.promptTokens);
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
    call.exchange = exchange;
    watch_.answering(HttpCallbacks::socketOf(call.connection), [weak = std::weak_ptr(exchange)] {
        if (const auto alive = weak.lock()) {
            alive->abandon();
        }
    });
}

bool HttpServer::sendReply(Call& call, int status, const std::string& body) const {
    // The library copies; its signature is older than const.
    MHD_Response* response = MHD_create_response_from_buffer(body.size(), const_cast<char*>(body.data()), // NOLINT
                                                             MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) {
        return false;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
    if (status == 401) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    } else if (status == 405) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allowedMethods(call.url));
    } else if (status == 429 || status == 503) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    const MHD_Result queued = MHD_queue_response(call.connection, static_cast<unsigned>(status), response);
    MHD_destroy_response(response);
    return queued == MHD_YES;
}

bool HttpServer::sendStream(Call& call) const {
    MHD_Response* response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlock, &HttpCallbacks::read, &call, nullptr);
    if (response == nullptr) {
        return false;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream; charset=utf-8");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    const MHD_Result queued = MHD_queue_response(call.connection, 200, response);
    MHD_destroy_response(response);
    return queued == MHD_YES;
}

} // namespace vitrine::app
