// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/device_group.h"

#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "kernels/context/context_options.h"
#include "kernels/ops/comm/all_reduce.h"
#include "tests/kernels/core/recording_sink.h"

namespace vitrine::kernels {
namespace {

std::vector<ContextOptions> cpuRanks(int ranks, base::TraceSink* sink = nullptr) {
    ContextOptions options;
    options.threads = 1;
    options.sink = sink;
    options.profile = ProfileLevel::Full;
    return std::vector<ContextOptions>(static_cast<std::size_t>(ranks), options);
}

/// Sums one value over the ranks.
float sumOver(Context& context, float value) {
    AllReduce op{{&value, DType::F32, Shape{1}, {}}, {&value, DType::F32, Shape{1}, {}}, context.communicator(), {}};
    std::vector<std::byte> room(scratch(op, context.traits()));
    op.scratch = {room.data(), DType::U8, Shape{static_cast<std::int64_t>(room.size())}, {}};
    context.run(op);
    return value;
}

std::string failureOf(DeviceGroup& group, const std::function<void(Context&)>& work) {
    try {
        group.run(work);
    } catch (const base::Error& error) {
        return error.message();
    }
    return "";
}

TEST(DeviceGroup, OfOneIsItsContextAndNothingElse) {
    DeviceGroup group(cpuRanks(1));
    EXPECT_EQ(group.size(), 1);
    EXPECT_EQ(group.leader().communicator(), nullptr);
    EXPECT_EQ(group.leader().ranks(), 1);
    const std::thread::id caller = std::this_thread::get_id();
    group.run([&](Context& context) {
        EXPECT_EQ(&context, &group.leader());
        EXPECT_EQ(std::this_thread::get_id(), caller);
    });
}

TEST(DeviceGroup, RunsEveryRankOnItsThread) {
    DeviceGroup group(cpuRanks(4));
    std::vector<std::thread::id> threads(4);
    for (int round = 0; round < 3; ++round) {
        std::atomic<int> calls = 0;
        group.run([&](Context& context) {
            const auto rank = static_cast<std::size_t>(context.rank());
            EXPECT_EQ(&context, &group.rank(context.rank()));
            EXPECT_EQ(context.ranks(), 4);
            EXPECT_TRUE(round == 0 || threads[rank] == std::this_thread::get_id());
            threads[rank] = std::this_thread::get_id();
            EXPECT_EQ(sumOver(context, static_cast<float>(context.rank() + 1)), 10);
            ++calls;
        });
        EXPECT_EQ(calls, 4);
    }
    EXPECT_EQ(threads[0], std::this_thread::get_id());
    EXPECT_EQ(std::set<std::thread::id>(threads.begin(), threads.end()).size(), 4U);
}

/// Takes the events of several threads.
class LockedSink final : public base::TraceSink {
public:
    base::StringId intern(std::string_view text) override {
        const std::lock_guard lock(mutex_);
        return events_.intern(text);
    }
    void record(const base::TraceEvent& event) override {
        const std::lock_guard lock(mutex_);
        events_.record(event);
    }
    template <class Event> std::vector<Event> all() { return events_.all<Event>(); }

private:
    std::mutex mutex_;
    RecordingSink events_;
};

TEST(DeviceGroup, OneRunHasOneTraceWithTheEventsOfAllRanks) {
    LockedSink sink;
    {
        DeviceGroup group(cpuRanks(3, &sink));
        group.run([](Context& context) { sumOver(context, 1); });
    }
    std::set<std::uint64_t> ids;
    std::set<int> devices;
    for (const base::ScopeBeginEvent& event : sink.all<base::ScopeBeginEvent>()) {
        EXPECT_TRUE(ids.insert(event.id.value).second);
        devices.insert(event.device);
    }
    EXPECT_EQ(devices, (std::set<int>{0, 1, 2}));
}

TEST(DeviceGroup, ARankThatFailsEndsAllByItsOwnErrorAndTheGroupGoesOn) {
    DeviceGroup group(cpuRanks(4));
    for (int failing = 0; failing < 4; ++failing) {
        const std::string message = failureOf(group, [&](Context& context) {
            const TraceScope phase(context.tracer(), base::ScopeKind::Phase, "decode");
            sumOver(context, 1);
            if (context.rank() == failing) {
                throw base::BadInput("planted");
            }
            for (int i = 0; i < 10; ++i) {
                sumOver(context, 1);
            }
        });
        EXPECT_EQ(message, "rank " + std::to_string(failing) + ", decode: planted");
        group.run([](Context& context) { EXPECT_EQ(sumOver(context, 1), 4); });
    }
}

TEST(DeviceGroup, KeepsTheKindOfAnError) {
    DeviceGroup group(cpuRanks(2));
    const auto throwing = [&](const auto& error) {
        group.run([&](Context& context) {
            if (context.rank() == 1) {
                throw error;
            }
            sumOver(context, 1);
        });
    };
    EXPECT_THROW(throwing(base::Unsupported("x")), base::Unsupported);
    EXPECT_THROW(throwing(base::DeviceFault("x")), base::DeviceFault);
    EXPECT_THROW(throwing(base::Cancelled()), base::Cancelled);
    EXPECT_THROW(throwing(std::runtime_error("x")), base::Internal);
    base::OutOfMemoryDetails details;
    details.what = "grad_logits";
    details.requested = 10;
    try {
        throwing(base::OutOfMemory(details));
        FAIL();
    } catch (const base::OutOfMemory& error) {
        EXPECT_EQ(error.details().what, "rank 1: grad_logits");
        EXPECT_EQ(error.details().requested, 10U);
    }
}

TEST(DeviceGroup, AContextThatCannotBeMadeEndsTheOthers) {
    std::vector<ContextOptions> ranks = cpuRanks(3);
    ranks[2].backend = Backend::Meta; // without a profile
    EXPECT_THROW(DeviceGroup group(ranks), base::Internal);
}

TEST(DeviceGroup, RanksThatDisagreeSayBothPlaces) {
    DeviceGroup group(cpuRanks(2));
    const std::string message = failureOf(group, [](Context& context) {
        float value = 0;
        std::vector<float> room(2);
        const std::vector<SentBytes> sends(2, {reinterpret_cast<const std::byte*>(&value), sizeof(value)});
        const std::vector<ReceivedBytes> receives{{reinterpret_cast<std::byte*>(room.data()), sizeof(value)},
                                                  {reinterpret_cast<std::byte*>(&room[1]), sizeof(value)}};
        Communicator* const ranks = context.communicator();
        ASSERT_NE(ranks, nullptr);
        ranks->exchange(context.rank() == 0 ? "AllReduce" : "AllGather", sends, receives);
    });
    EXPECT_NE(message.find("AllReduce"), std::string::npos) << message;
    EXPECT_NE(message.find("AllGather"), std::string::npos) << message;
}

} // namespace
} // namespace vitrine::kernels
