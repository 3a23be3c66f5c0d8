// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs and prices whose course a test plays.

#include <nlohmann/json.hpp>

#include "ui/models/common/run_controller.h"

namespace vitrine::test {

/// Does nothing by itself: the test says what happens.
class PlayedRuns final : public ui::RunController {
public:
    void start(const std::string& experiment, const QString& sessionFile) override {
        asked = nlohmann::json::parse(experiment);
        session = sessionFile;
        busy = true;
        emit started(0);
    }
    void stop() override { ++stops; }
    bool running() const override { return busy; }
    quint64 price(const std::string& experiment) override {
        prices.push_back(nlohmann::json::parse(experiment));
        return prices.size();
    }
    void
    end(const QString& status, const QString& error,
        const QString& metrics = QStringLiteral(R"({"peak_bytes": 1073741824, "decode_tokens_per_second": 702})")) {
        busy = false;
        emit ended(status, error, metrics);
    }
    void say(const QString& text, int index, const QString& channel, double logprob = -0.01) {
        ui::StreamedToken token;
        token.index = index;
        token.id = 100 + index;
        token.text = text;
        token.channel = channel;
        token.logprob = logprob;
        token.seconds = 0.041 + 0.002 * index;
        token.likely = {{7, {}, -0.5}, {100, {}, -2.0}};
        emit this->token(token);
    }

    nlohmann::json asked;
    std::vector<nlohmann::json> prices;
    QString session;
    bool busy = false;
    int stops = 0;
};

} // namespace vitrine::test
