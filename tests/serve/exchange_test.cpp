// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/exchange.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/serve/http_client.h"

namespace vitrine::app {
namespace {

using nlohmann::json;

class CountingSleeper final : public Sleeper {
public:
    void sleep() override {
        EXPECT_FALSE(asleep);
        asleep = true;
    }
    void wake() override {
        EXPECT_TRUE(asleep) << "woken without having slept";
        asleep = false;
    }
    bool asleep = false;
};

/// A model of which only the sizes matter here.
engine::ServedModel servedModel() {
    engine::ServedModel model;
    model.slots = 2;
    model.longest = 100;
    return model;
}

class ExchangeTest : public testing::Test {
protected:
    void SetUp() override { inbox_.ready(model_); }
    void TearDown() override { inbox_.ended({}); }

    /// Submits an exchange; its listeners are what the run has.
    std::shared_ptr<Exchange> make(bool stream, std::size_t choices, Endpoint endpoint = Endpoint::Completions) {
        ReplyHead head;
        head.endpoint = endpoint;
        head.id = "id";
        head.model = "m";
        head.tokenIds = true;
        auto exchange = std::make_shared<Exchange>(head, stream, choices, nullptr, inbox_);
        exchange->setPromptTokens(4);
        std::vector<engine::FedRequest> fed;
        for (const auto& listener : exchange->listeners()) {
            fed.push_back({{}, listener, std::chrono::steady_clock::now()});
        }
        EXPECT_EQ(inbox_.submit(std::move(fed)), Inbox::Submitted::Taken);
        for (engine::FedRequest& request : inbox_.take(false).arrived) {
            listeners_.push_back(std::move(request.listener));
        }
        return exchange;
    }

    void token(std::size_t listener, std::int32_t index, std::int32_t id) {
        engine::GeneratedToken token;
        token.index = index;
        token.id = id;
        listeners_.at(listener)->token(token);
    }

    void end(std::size_t listener, engine::FinishReason finish, std::size_t tokens = 0) {
        engine::BatchResult result;
        result.result.finish = finish;
        result.result.ids.resize(tokens);
        listeners_.at(listener)->ended(result);
        listeners_.at(listener).reset();
    }

    /// All that can be read now.
    std::string readAll(Exchange& exchange, std::int64_t* last) {
        std::string out;
        std::array<char, 7> buffer{};
        for (;;) {
            *last = exchange.read(buffer.data(), buffer.size(), sleeper_);
            if (*last <= 0) {
                return out;
            }
            out.append(buffer.data(), static_cast<std::size_t>(*last));
        }
    }

    Inbox inbox_{8, std::chrono::seconds(0)};
    engine::ServedModel model_ = servedModel();
    std::vector<std::shared_ptr<engine::RequestListener>> listeners_;
    CountingSleeper sleeper_;
};

TEST_F(ExchangeTest, StreamsWhatComesAndSleepsBetween) {
    const auto exchange = make(true, 2, Endpoint::Chat);
    std::int64_t last = 0;
    std::string stream = readAll(*exchange, &last);
    EXPECT_EQ(last, 0);
    EXPECT_TRUE(sleeper_.asleep);
    EXPECT_EQ(test::events(stream, nullptr).size(), 2U) << "the role of each choice";
    token(1, 0, 7);
    EXPECT_FALSE(sleeper_.asleep);
    token(1, 1, 8);
    end(1, engine::FinishReason::StopToken, 2);
    stream += readAll(*exchange, &last);
    EXPECT_EQ(last, 0) << "one choice is open";
    token(0, 0, 9);
    end(0, engine::FinishReason::Length, 1);
    stream += readAll(*exchange, &last);
    EXPECT_EQ(last, Exchange::kEnd);
    bool done = false;
    std::string texts[2];
    std::string finish[2];
    for (const json& event : test::events(stream, &done)) {
        const json& choice = event.at("choices").at(0);
        const auto index = choice.at("index").get<std::size_t>();
        texts[index] += choice.at("delta").value("content", "");
        if (choice.at("finish_reason").is_string()) {
            finish[index] = choice.at("finish_reason").get<std::string>();
        }
    }
    EXPECT_TRUE(done);
    EXPECT_EQ(texts[0], "9");
    EXPECT_EQ(texts[1], "7 8");
    EXPECT_EQ(finish[0], "length");
    EXPECT_EQ(finish[1], "stop");
}

TEST_F(ExchangeTest, AWholeAnswerWaitsForAllChoices) {
    const auto exchange = make(false, 2);
    EXPECT_FALSE(exchange->reply(sleeper_).has_value());
    token(0, 0, 5);
    end(0, engine::FinishReason::Length, 1);
    EXPECT_TRUE(sleeper_.asleep);
    token(1, 0, 6);
    end(1, engine::FinishReason::StopText, 1);
    EXPECT_FALSE(sleeper_.asleep);
    const auto reply = exchange->reply(sleeper_);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status, 200);
    const json body = json::parse(reply->body);
    EXPECT_EQ(body.at("choices").at(1).at("text"), "6");
    EXPECT_EQ(body.at("choices").at(1).at("finish_reason"), "stop");
    EXPECT_EQ(body.at("usage").at("total_tokens"), 6);
}

TEST_F(ExchangeTest, AReaderThatIsTooSlowLosesItsAnswer) {
    const auto exchange = make(true, 1);
    std::int64_t last = 0;
    readAll(*exchange, &last);
    for (std::int32_t i = 0; i < 20'000; ++i) {
        token(0, i, 1000 + i);
    }
    EXPECT_TRUE(exchange->abandoned());
    readAll(*exchange, &last);
    EXPECT_EQ(last, Exchange::kBroken);
    const engine::FedWork work = inbox_.take(false);
    ASSERT_EQ(work.left.size(), 1U) << "its request is cancelled";
    EXPECT_EQ(work.left[0], listeners_[0]);
    end(0, engine::FinishReason::Cancelled);
}

TEST_F(ExchangeTest, AnAbandonedOneIsCancelledAndWoken) {
    const auto exchange = make(false, 2);
    EXPECT_FALSE(exchange->reply(sleeper_).has_value());
    end(0, engine::FinishReason::Length);
    exchange->abandon();
    exchange->abandon();
    EXPECT_FALSE(sleeper_.asleep);
    EXPECT_EQ(inbox_.take(false).left.size(), 1U) << "the choice that had not ended";
    token(1, 0, 1);
    end(1, engine::FinishReason::Cancelled);
}

TEST_F(ExchangeTest, AFailureIsReported) {
    const auto stream = make(true, 1);
    end(0, engine::FinishReason::OutOfMemory);
    std::int64_t last = 0;
    EXPECT_THAT(readAll(*stream, &last), testing::HasSubstr("out_of_memory"));
    EXPECT_EQ(last, Exchange::kEnd);
    const auto whole = make(false, 2);
    end(1, engine::FinishReason::Failed);
    const auto reply = whole->reply(sleeper_);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status, 500);
    EXPECT_EQ(inbox_.take(false).left.size(), 1U) << "the other choice is cancelled";
    end(2, engine::FinishReason::Cancelled);
    const auto stopped = make(false, 1);
    end(3, engine::FinishReason::Cancelled);
    EXPECT_EQ(stopped->reply(sleeper_)->status, 503);
}

TEST_F(ExchangeTest, ADetachedSleeperIsNotWoken) {
    const auto exchange = make(true, 1);
    std::int64_t last = 0;
    readAll(*exchange, &last);
    EXPECT_TRUE(sleeper_.asleep);
    exchange->detach();
    token(0, 0, 1);
    EXPECT_TRUE(sleeper_.asleep);
    end(0, engine::FinishReason::Length);
}

} // namespace
} // namespace vitrine::app
