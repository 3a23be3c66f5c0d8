// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/serve/inbox.h"

#include <gtest/gtest.h>
#include <thread>

namespace vitrine::app {
namespace {

class Listener final : public engine::RequestListener {
public:
    void token(const engine::GeneratedToken& /*token*/) override {}
    void ended(const engine::BatchResult& result) override { finish = result.result.finish; }
    engine::FinishReason finish = engine::FinishReason::None;
};

std::vector<engine::FedRequest> requests(const std::vector<std::shared_ptr<Listener>>& listeners) {
    std::vector<engine::FedRequest> out;
    out.reserve(listeners.size());
    for (const auto& listener : listeners) {
        out.push_back({{}, listener, std::chrono::steady_clock::now()});
    }
    return out;
}

engine::ServedModel modelWith(std::int64_t slots) {
    engine::ServedModel model;
    model.slots = slots;
    return model;
}

TEST(Inbox, TakesAllChoicesOrNone) {
    Inbox inbox(1, std::chrono::seconds(0));
    const auto a = std::make_shared<Listener>();
    EXPECT_EQ(inbox.submit(requests({a})), Inbox::Submitted::Closed) << "nothing is loaded";
    const engine::ServedModel model = modelWith(2);
    inbox.ready(model);
    const auto b = std::make_shared<Listener>();
    const auto c = std::make_shared<Listener>();
    const auto d = std::make_shared<Listener>();
    EXPECT_EQ(inbox.submit(requests({a, b})), Inbox::Submitted::Taken);
    EXPECT_EQ(inbox.submit(requests({c, d})), Inbox::Submitted::QueueFull);
    EXPECT_EQ(inbox.submit(requests({c})), Inbox::Submitted::Taken);
    EXPECT_EQ(inbox.take(true).arrived.size(), 3U);
    EXPECT_EQ(inbox.lastStatus().waiting, 3);
    inbox.done(a.get());
    EXPECT_EQ(inbox.submit(requests({d})), Inbox::Submitted::Taken);
    inbox.ended({});
    EXPECT_EQ(d->finish, engine::FinishReason::Cancelled) << "the run never saw it";
    EXPECT_EQ(b->finish, engine::FinishReason::None) << "the run ends what it has itself";
    EXPECT_FALSE(inbox.withModel([](const engine::ServedModel&) {}));
}

TEST(Inbox, WaitsForWorkAndForTheStop) {
    Inbox inbox(8, std::chrono::seconds(100));
    const engine::ServedModel model = modelWith(1);
    inbox.ready(model);
    const auto a = std::make_shared<Listener>();
    std::thread client([&] {
        inbox.submit(requests({a}));
        inbox.leave({a});
    });
    std::size_t arrived = 0;
    std::size_t left = 0;
    while (left == 0) {
        const engine::FedWork work = inbox.take(true);
        arrived += work.arrived.size();
        left += work.left.size();
    }
    client.join();
    EXPECT_EQ(arrived, 1U);
    inbox.done(a.get());
    inbox.leave({a});
    EXPECT_TRUE(inbox.take(false).left.empty()) << "it has ended";
    std::thread stopper([&] { inbox.stop(); });
    EXPECT_TRUE(inbox.take(true).over);
    stopper.join();
    EXPECT_EQ(inbox.submit(requests({a})), Inbox::Submitted::Closed);
    inbox.ended({});
}

TEST(Inbox, AStopCancelsWhatDoesNotEndInTime) {
    Inbox inbox(8, std::chrono::seconds(0));
    const engine::ServedModel model = modelWith(1);
    inbox.ready(model);
    const auto a = std::make_shared<Listener>();
    inbox.submit(requests({a}));
    inbox.stop();
    const engine::FedWork work = inbox.take(true);
    EXPECT_TRUE(work.over);
    EXPECT_EQ(work.arrived.size(), 1U);
    ASSERT_EQ(work.left.size(), 1U);
    EXPECT_EQ(work.left[0], a);
    inbox.done(a.get());
    inbox.ended({});
}

} // namespace
} // namespace vitrine::app
