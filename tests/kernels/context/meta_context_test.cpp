// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/meta_context.h"

#include <gtest/gtest.h>
#include <memory>

#include "tests/kernels/core/plain_device.h"

namespace vitrine::kernels {
namespace {

constexpr std::string_view kMatmul = "Matmul", kRope = "Rope", kRoute = "Route";

DeviceTraits ratedDevice() {
    DeviceTraits traits = test::plainDevice();
    OpRates rates;
    rates.add(kMatmul, {1e9, 1e9, 2e-3, 1});
    rates.add(kRope, {1e6, 1e6, 5e-6, 1});
    traits.rates = std::make_shared<const OpRates>(rates);
    return traits;
}

Cost costOf(std::uint64_t bytes, std::uint64_t flops) {
    Cost cost;
    cost.bytesRead = bytes;
    cost.flops = flops;
    return cost;
}

void charge(MetaContext& device, std::string_view op, const Cost& cost) {
    device.charge(op, device.secondsOf(op, cost));
}

TEST(MetaContext, TellsMeasuredTimeFromExtrapolatedTimeAndTheDataSheet) {
    MetaContext device(ratedDevice());
    charge(device, kMatmul, costOf(1'000'000'000, 1'000'000'000));
    const base::TimeNs known = device.pricedTime().ops;
    EXPECT_NEAR(static_cast<double>(known), 2e6, 1e4);
    EXPECT_EQ(device.pricedTime().far, 0);
    charge(device, kRope, costOf(1'000'000'000, 1'000'000));
    charge(device, kRoute, costOf(1'000'000'000, 1'000'000'000));
    const PricedTime priced = device.pricedTime();
    EXPECT_GT(priced.far, 0);
    EXPECT_GT(priced.sheet, 0);
    EXPECT_EQ(priced.ops, known + priced.far + priced.sheet);
    EXPECT_EQ(priced.farOps, std::vector<std::string_view>{kRope});
    EXPECT_EQ(priced.sheetOps, std::vector<std::string_view>{kRoute});
}

TEST(MetaContext, RepeatedTimeCountsInAllParts) {
    MetaContext device(ratedDevice());
    const MetaContext::Times begin = device.times();
    charge(device, kMatmul, costOf(1'000'000'000, 1'000'000'000));
    charge(device, kRope, costOf(1'000'000'000, 1'000'000));
    const PricedTime once = device.pricedTime();
    device.passAgain(begin, 2);
    EXPECT_EQ(device.pricedTime().ops, 3 * once.ops);
    EXPECT_EQ(device.pricedTime().far, 3 * once.far);
}

TEST(MetaContext, NamesTheOpsOfTheLongestTimesFirst) {
    MetaContext device(ratedDevice());
    charge(device, kRope, costOf(1'000'000'000, 1'000'000));
    charge(device, kMatmul, costOf(1'000'000'000'000, 1'000'000));
    EXPECT_EQ(device.pricedTime().farOps, (std::vector<std::string_view>{kMatmul, kRope}));
}

TEST(MetaContext, FirstStepsTakeMoreForEachLayer) {
    DeviceTraits traits = ratedDevice();
    OpRates rates = *traits.rates;
    LaunchCost cost;
    cost.first = 10e-3;
    cost.layers = 20;
    cost.steps = 1;
    rates.addSteps(LaunchKind::Replayed, cost);
    cost.layers = 0;
    rates.addSteps(LaunchKind::Launched, cost);
    traits.rates = std::make_shared<const OpRates>(rates);
    MetaContext device(traits);
    device.passFirstUse(LaunchKind::Replayed, 40);
    EXPECT_EQ(device.now(), 20'000'000) << "twice the layers";
    device.passFirstUse(LaunchKind::Replayed, 40);
    EXPECT_EQ(device.now(), 20'000'000) << "once";
    device.passFirstUse(LaunchKind::Launched, 40);
    EXPECT_EQ(device.now(), 30'000'000) << "rates of older versions know no layers";
    device.passFirstUse(LaunchKind::Replayed, 40, 8);
    EXPECT_EQ(device.now(), 40'000'000) << "a graph for other rows, whose libraries are awake";
    EXPECT_EQ(device.onceTime(), 40'000'000) << "no later step takes it";
}

TEST(MetaContext, AnOpWakesItsLibraryOnce) {
    DeviceTraits traits = ratedDevice();
    OpRates rates = *traits.rates;
    rates.addWake(kMatmul, 5e-3);
    traits.rates = std::make_shared<const OpRates>(rates);
    MetaContext device(traits);
    device.beginStep(LaunchKind::Replayed);
    charge(device, kMatmul, costOf(900'000'000, 900'000'000));
    EXPECT_LT(device.now(), 3'000'000) << "a graph launches no op by itself";
    device.beginStep(LaunchKind::Launched);
    const base::TimeNs begin = device.now();
    charge(device, kMatmul, costOf(1'000'000'000, 1'000'000'000));
    const base::TimeNs first = device.now() - begin;
    charge(device, kMatmul, costOf(1'000'000'000, 1'000'000'000));
    charge(device, kMatmul, costOf(1'100'000'000, 1'000'000'000));
    EXPECT_EQ(device.onceTime(), 5'000'000);
    EXPECT_NEAR(static_cast<double>(first), 5e6 + 2e6, 1e5) << "a library wakes up when the ops before have ended";
    EXPECT_NEAR(static_cast<double>(device.now() - begin - first), 4.2e6, 2e5) << "awake for all sizes";
}

TEST(MetaContext, ADeviceWithoutMeasuredTimesDoubtsNothing) {
    DeviceTraits traits = ratedDevice();
    traits.rates = nullptr;
    MetaContext device(traits);
    charge(device, kRoute, costOf(1'000'000'000, 1'000'000'000));
    EXPECT_EQ(device.pricedTime().ops, 0);
    EXPECT_GT(device.now(), 0);
}

} // namespace
} // namespace vitrine::kernels
