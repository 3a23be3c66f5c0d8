// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "tests/serve/server_rig.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "engine/generation/generator.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/base/eventually.h"
#include "tests/engine/model/model_test_support.h"

namespace vitrine::test {

using nlohmann::json;

ServerRig::ServerRig(Options options) {
    options.server.model = options.model;
    server_ = app::RequestServer::make(options.server);
    const std::string& url = server_->url();
    port_ = std::stoi(url.substr(url.rfind(':') + 1));
    std::promise<void> ready;
    std::promise<std::string> ended;
    server_->onReady([&ready](const engine::ServedModel&) { ready.set_value(); });
    host_ = app::RunHost::inProcess(false, &server_->feed());
    json experiment = {{"vitrine", 1}, {"workload", "serve"}, {"model", options.model}, {"backend", "cpu"},
                       {"threads", 2}, {"slots", 8},          {"ignore_eos", true}};
    experiment.update(options.more);
    auto isReady = ready.get_future();
    host_->start(engine::Experiment::parse(experiment, "experiment"), options.session, {});
    while (isReady.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
        if (!host_->running()) {
            throw std::runtime_error(host_->wait().error);
        }
    }
    name_ = json::parse(request(port_, getText("/v1/models")).body).at("data").at(0).at("id");
}

ServerRig::~ServerRig() {
    end();
}

json ServerRig::body(const json& prompt, int maxTokens) const {
    return {{"model", name_}, {"prompt", prompt}, {"max_tokens", maxTokens}, {"temperature", 0}};
}

json ServerRig::health() const {
    return json::parse(request(port_, getText("/health")).body);
}

bool ServerRig::becomes(const std::function<bool(const json& health)>& wanted) const {
    return eventually([&] { return wanted(health()); });
}

bool ServerRig::becomesIdle() const {
    return becomes([](const json& now) {
        return now.at("running") == 0 && now.at("waiting") == 0 && now.at("kv_pages").at("used") == 0;
    });
}

app::RunOutcome ServerRig::end() {
    if (!ended_) {
        ended_ = true;
        server_->stop();
        outcome_ = host_->wait();
        server_->close();
    }
    return outcome_;
}

std::vector<std::int32_t> promptTokens(int length, int salt, int vocab) {
    std::vector<std::int32_t> out;
    out.reserve(static_cast<std::size_t>(length));
    for (int i = 0; i < length; ++i) {
        out.push_back((31 * i + salt * 7 + salt / 5 + 1) % vocab);
    }
    return out;
}

std::vector<std::vector<std::int32_t>> oneByOne(const std::string& model,
                                                const std::vector<std::vector<std::int32_t>>& prompts, int newTokens) {
    const auto context = engine::test::makeContext(kernels::Backend::Cpu);
    const engine::ModelSource source = engine::openModel(model);
    engine::Model loaded(*context, source, engine::ModelOptions{}, nullptr);
    engine::GenerateOptions options;
    options.cache.dtype = kernels::DType::F32;
    engine::Generator generator(loaded, nullptr, options);
    std::vector<std::vector<std::int32_t>> out;
    for (const std::vector<std::int32_t>& prompt : prompts) {
        engine::GenerateRequest request;
        request.prompt = prompt;
        request.maxNewTokens = newTokens;
        request.forbidden = source.config.eosTokens;
        engine::GenerateReport report;
        generator.run({request}, report, {});
        out.push_back(report.results.at(0).ids);
    }
    return out;
}

} // namespace vitrine::test
