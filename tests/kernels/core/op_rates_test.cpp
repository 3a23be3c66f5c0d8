// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/op_rates.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "kernels/core/device_traits.h"
#include "kernels/core/op.h"
#include "tests/kernels/core/plain_device.h"

namespace vitrine::kernels {
namespace {

using nlohmann::json;
using test::plainDevice;

TEST(OpRates, ACallThatWasMeasuredTakesItsTime) {
    OpRates rates;
    rates.add("Matmul", {1e9, 1e12, 0.02, 5});
    rates.add("Matmul", {1e6, 1e6, 5e-6, 5});
    EXPECT_NEAR(rates.seconds("Matmul", 1'000'000'000, 1'000'000'000'000, plainDevice())->seconds, 0.02, 1e-5);
    EXPECT_NEAR(rates.seconds("Matmul", 1'000'000, 1'000'000, plainDevice())->seconds, 5e-6, 1e-7);
    EXPECT_FALSE(rates.seconds("Rope", 1, 1, plainDevice()));
    EXPECT_FALSE(rates.empty());
}

TEST(OpRates, TimesGrowWithTheWorkBetweenAndBeyondWhatWasMeasured) {
    // A device that reaches half of its rates, after 4 microseconds.
    const DeviceTraits traits = plainDevice();
    const auto real = [](double bytes, double flops) { return 4e-6 + 2 * std::max(bytes / 1e12, flops / 1e14); };
    OpRates rates;
    for (double bytes = 1e4; bytes < 1e9; bytes *= 16) {
        rates.add("Matmul", {bytes, 100 * bytes, real(bytes, 100 * bytes), 1});
    }
    std::mt19937 random(5);
    std::uniform_real_distribution<double> exponent(3, 10.5);
    for (int i = 0; i < 200; ++i) {
        const double bytes = std::pow(10.0, exponent(random));
        const double planned =
            rates.seconds("Matmul", static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(100 * bytes), traits)
                ->seconds;
        EXPECT_NEAR(planned / real(bytes, 100 * bytes), 1, 0.25) << bytes;
    }
}

TEST(OpRates, CallsThatAreAlikeBecomeOneMean) {
    OpRates rates;
    rates.add("Rope", {1000, 10, 1e-6, 1});
    rates.add("Rope", {1010, 10, 3e-6, 1});
    const json value = rates.toJson();
    ASSERT_EQ(value["ops"]["Rope"].size(), 1U);
    EXPECT_NEAR(value["ops"]["Rope"][0][2].get<double>(), 2e-6, 1e-9);
    EXPECT_EQ(value["ops"]["Rope"][0][3], 2);
}

TEST(OpRates, NewerCallsReplaceWhatLiesNearThem) {
    OpRates shipped, own;
    shipped.add("Rope", {1000, 10, 1e-6, 1});
    shipped.add("Rope", {1e8, 1e6, 1e-3, 1});
    shipped.addSteps(LaunchKind::Replayed, {1e-6, 0, 1e-5, 1e-2, 3});
    own.add("Rope", {1200, 10, 9e-6, 1});
    own.addSteps(LaunchKind::Launched, {2e-6, 1e-5, 0, 0, 1});
    shipped.overlay(own);
    const json value = shipped.toJson();
    EXPECT_EQ(value["ops"]["Rope"].size(), 2U);
    EXPECT_NEAR(shipped.seconds("Rope", 1200, 10, plainDevice())->seconds, 9e-6, 1e-8);
    EXPECT_EQ(shipped.launch(LaunchKind::Replayed).first, 1e-2) << "the newer ones have none of that kind";
    EXPECT_EQ(shipped.launch(LaunchKind::Launched).host, 1e-5);
}

TEST(OpRates, ScaledTimesFollowTheRatesOfTheOtherDevice) {
    DeviceTraits faster = plainDevice();
    faster.memoryBandwidth *= 2;
    OpRates rates;
    rates.add("Copy", {1e10, 0, 0.02, 1});
    rates.scale(plainDevice(), faster);
    EXPECT_NEAR(rates.seconds("Copy", 10'000'000'000, 0, faster)->seconds, 0.01, 1e-4);
}

TEST(OpRates, ACallThatIsFarFromEveryMeasuredOneSaysSo) {
    OpRates rates;
    rates.add("Matmul", {1e6, 1e9, 1e-4, 1});
    rates.add("Matmul", {1e8, 1e11, 1e-2, 1});
    const auto isFar = [&](std::uint64_t bytes, std::uint64_t flops) {
        return rates.seconds("Matmul", bytes, flops, plainDevice())->far;
    };
    EXPECT_FALSE(isFar(1'000'000, 1'000'000'000));
    EXPECT_FALSE(isFar(3'000'000, 1'000'000'000)) << "less than a factor of four";
    EXPECT_TRUE(isFar(10'000'000, 1'000'000'000));
    EXPECT_TRUE(isFar(1'000'000, 100'000'000'000));
    EXPECT_TRUE(isFar(1'000'000'000, 1'000'000'000'000)) << "beyond the largest";
}

TEST(OpRates, WhatADeviceLacksItBorrowsAndSaysSo) {
    OpRates own, others;
    own.add("Matmul", {1e6, 1e9, 1e-4, 1});
    own.addSteps(LaunchKind::Replayed, {1e-6, 0, 1e-5, 1e-2, 3});
    others.add("Matmul", {1e9, 1e12, 9, 1});
    others.add("Rope", {1e6, 1e6, 1e-5, 1});
    others.addSteps(LaunchKind::Replayed, {2e-6, 0, 2e-5, 2e-2, 3});
    others.addSteps(LaunchKind::Trained, {2e-6, 0, 2e-5, 0, 3});
    own.borrow(others);
    EXPECT_EQ(own.families(), 2U);
    EXPECT_EQ(own.toJson()["ops"]["Matmul"].size(), 1U) << "its own family stays its own";
    EXPECT_FALSE(own.seconds("Matmul", 1'000'000, 1'000'000'000, plainDevice())->far);
    EXPECT_TRUE(own.seconds("Rope", 1'000'000, 1'000'000, plainDevice())->far);
    EXPECT_EQ(own.launch(LaunchKind::Replayed).first, 1e-2);
    EXPECT_EQ(own.launch(LaunchKind::Trained).step, 2e-5);
    OpRates measured;
    measured.add("Rope", {1e6, 1e6, 2e-5, 1});
    own.overlay(measured);
    EXPECT_FALSE(own.seconds("Rope", 1'000'000, 1'000'000, plainDevice())->far) << "measured since";
}

TEST(OpRates, WakesAreMeansOfRuns) {
    OpRates rates, other;
    rates.addWake("DenseMlp", 2e-3);
    rates.addWake("DenseMlp", 4e-3);
    other.addWake("DenseMlp", 9e-3);
    other.addWake("LmHead", 1e-3);
    EXPECT_NEAR(rates.wake("DenseMlp"), 3e-3, 1e-9);
    EXPECT_EQ(rates.wake("LmHead"), 0);
    rates.join(other);
    EXPECT_NEAR(rates.wake("DenseMlp"), 5e-3, 1e-9) << "three runs";
    EXPECT_NEAR(rates.wake("LmHead"), 1e-3, 1e-9);
    const json damaged = {{"format", 1}, {"launch", json::object()}, {"ops", json::object()}, {"wake", {{"Rope", 3}}}};
    EXPECT_THROW(OpRates::fromJson(damaged, "f"), base::BadInput);
}

TEST(OpRates, AreTheSameAfterWritingAndReading) {
    OpRates rates;
    rates.addWake("Matmul", 1.5e-3);
    rates.add("Matmul", {1e9, 1e12, 0.0213, 5});
    rates.addSteps(LaunchKind::Trained, {1e-6, 2e-5, 3e-3, 0, 7});
    rates.addSteps(LaunchKind::Replayed, {1e-6, 0, 3e-6, 2e-2, 7, 150});
    const json value = rates.toJson();
    EXPECT_EQ(OpRates::fromJson(value, "rates.json").toJson(), value);
    EXPECT_EQ(OpRates::fromJson(value, "rates.json").launch(LaunchKind::Replayed).layers, 150);
}

TEST(OpRates, DamagedFilesNameFileAndField) {
    const json good = {{"format", 1}, {"launch", json::object()}, {"ops", {{"Rope", {{1, 2, 3e-6, 1}}}}}};
    EXPECT_NO_THROW(OpRates::fromJson(good, "f"));
    const auto refused = [&](const char* pointer, const json& value, const char* field) {
        json bad = good;
        bad[json::json_pointer(pointer)] = value;
        try {
            OpRates::fromJson(bad, "rates.json");
            FAIL() << pointer;
        } catch (const base::BadInput& error) {
            EXPECT_NE(error.message().find("rates.json"), std::string::npos);
            EXPECT_NE(error.message().find(field), std::string::npos) << error.message();
        }
    };
    refused("/format", 2, "format");
    refused("/ops", 3, "ops");
    refused("/ops/Rope", 3, "ops.Rope");
    refused("/ops/Rope/0", json::array({1, 2}), "ops.Rope");
    refused("/ops/Rope/0/2", -1, "ops.Rope");
    refused("/ops/Rope/0/2", 0, "ops.Rope");
    refused("/launch", json{{"replayed", {{"gap", "x"}}}}, "launch.replayed.gap");
    refused("/launch", json{{"replayed", {{"gap", 1}}}}, "launch.replayed.host");
}

/// Seconds of a call of a gigabyte and a GFLOP.
double secondsOfClass(const char* op, RateClass rateClass, const OpRates& rates) {
    DeviceTraits traits = plainDevice();
    traits.rates = std::make_shared<const OpRates>(rates);
    Cost cost;
    cost.bytesRead = cost.flops = 1'000'000'000;
    cost.rateClass = rateClass;
    const OpSeconds out = opSeconds(op, cost, traits);
    EXPECT_TRUE(out.measured || out.seconds == rooflineSeconds(cost, traits));
    return out.measured ? out.seconds : -1;
}

TEST(OpRates, PlansTakeTheTimeOfTheClass) {
    OpRates rates;
    double seconds = 0.01;
    for (const char* family : {"ExpertMlp.mxfp4", "ExpertMlp.dense", "ExpertMlp.mxfp4.copies", "ExpertMlp.dense.copies",
                               "Attention.wide", "Attention.wide.fp8", "Attention.wide.int8", "Attention.narrow",
                               "Attention.narrow.fp8", "Attention.narrow.int8"}) {
        rates.add(family, {1e9, 1e9, seconds, 1});
        seconds += 0.01;
    }
    seconds = 0.01;
    for (const RateClass experts :
         {expertRateClass(WeightFormat::Mxfp4, false), expertRateClass(WeightFormat::Dense, false),
          expertRateClass(WeightFormat::Mxfp4, true), expertRateClass(WeightFormat::Dense, true)}) {
        EXPECT_NEAR(secondsOfClass("ExpertMlp", experts, rates), seconds, 1e-4);
        seconds += 0.01;
    }
    for (const std::int64_t headDim : {128, 64}) {
        for (const DType cache : {DType::BF16, DType::F8E4M3, DType::I8}) {
            EXPECT_NEAR(secondsOfClass("Attention", attentionRateClass(headDim, cache), rates), seconds, 1e-4);
            seconds += 0.01;
        }
    }
}

TEST(OpRates, ProductsAreClassedByTheFormatOfTheirWeights) {
    OpRates rates;
    rates.add("DenseMlp", {1e9, 1e9, 0.01, 1});
    rates.add("DenseMlp.int4", {1e9, 1e9, 0.02, 1});
    rates.add("DenseMlp.nf4", {1e9, 1e9, 0.5, 1});
    rates.add("ExpertMlp.packed", {1e9, 1e9, 0.03, 1});
    rates.add("ExpertMlp.int4", {1e9, 1e9, 0.04, 1});
    rates.add("ExpertMlp.int4.copies", {1e9, 1e9, 0.05, 1});
    EXPECT_NEAR(secondsOfClass("DenseMlp", weightRateClass(WeightFormat::Dense), rates), 0.01, 1e-4);
    EXPECT_NEAR(secondsOfClass("DenseMlp", weightRateClass(WeightFormat::Int4), rates), 0.02, 1e-4);
    EXPECT_NEAR(secondsOfClass("DenseMlp", weightRateClass(WeightFormat::Nf4), rates), 0.5, 1e-4);
    EXPECT_NEAR(secondsOfClass("DenseMlp", weightRateClass(WeightFormat::Fp8), rates), 0.01, 1e-4) << "none of its own";
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Int4, false), rates), 0.04, 1e-4);
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Int4, true), rates), 0.05, 1e-4);
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Fp8, true), rates), 0.03, 1e-4);
    EXPECT_EQ(rateClassOfCopies(expertRateClass(WeightFormat::Int4, false)), expertRateClass(WeightFormat::Int4, true));
    EXPECT_EQ(rateClassOfCopies(weightRateClass(WeightFormat::Int4)), weightRateClass(WeightFormat::Int4));
    EXPECT_EQ(rateFamily("DenseMlp", weightRateClass(WeightFormat::Q5K)), "DenseMlp.q5_k");
}

TEST(OpRates, AClassThatWasNotMeasuredTakesTheRatesOfAnotherForItsOwnBytes) {
    OpRates rates;
    rates.add("ExpertMlp.mxfp4", {5e8, 1e9, 0.01, 1});
    const double packedFactor = 0.01 / (5e8 / 1e12 + 2.5e-6); // over the roofline time of the plain device
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Dense, false), rates),
                packedFactor * (1e9 / 1e12 + 2.5e-6), 1e-4);
    EXPECT_EQ(secondsOfClass("Rope", RateClass(), rates), -1) << "no family stands in for another op";
    rates.add("ExpertMlp.mxfp4.copies", {5e8, 1e9, 0.002, 1});
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Dense, false), rates),
                packedFactor * 0.0010025, 1e-4)
        << "copies say nothing of requests that differ";
}

TEST(OpRates, RatesOfOlderVersionsStandInForTheClassesThatTheyDidNotTellApart) {
    OpRates rates;
    rates.add("ExpertMlp", {1e9, 1e9, 0.01, 1});
    rates.add("ExpertMlp.copies", {1e9, 1e9, 0.004, 1});
    rates.add("Attention.wide", {1e9, 1e9, 0.02, 1});
    rates.add("Attention.wide.bytes", {1e9, 1e9, 0.03, 1});
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Mxfp4, false), rates), 0.01, 1e-4);
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Dense, false), rates), 0.01, 1e-4);
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Mxfp4, true), rates), 0.004, 1e-4);
    EXPECT_NEAR(secondsOfClass("ExpertMlp", expertRateClass(WeightFormat::Dense, true), rates), 0.004, 1e-4);
    EXPECT_NEAR(secondsOfClass("Attention", RateClass::WideHeadsFp8, rates), 0.03, 1e-4);
    EXPECT_NEAR(secondsOfClass("Attention", RateClass::WideHeadsInt8, rates), 0.03, 1e-4);
    rates.add("Attention.wide.int8", {1e9, 1e9, 0.04, 1});
    EXPECT_NEAR(secondsOfClass("Attention", RateClass::WideHeadsInt8, rates), 0.04, 1e-4);
    EXPECT_NEAR(secondsOfClass("Attention", RateClass::WideHeads, rates), 0.02, 1e-4);
}

TEST(OpRates, ClassesOfARunAreThoseOfItsAttentionAndItsExperts) {
    RunRateClasses classes{RateClass::WideHeadsFp8, expertRateClass(WeightFormat::Dense, true)};
    EXPECT_EQ(classes.of("Attention"), RateClass::WideHeadsFp8);
    EXPECT_EQ(classes.of("FlexAttentionBackward"), RateClass::WideHeadsFp8);
    EXPECT_EQ(classes.of("ExpertMlp"), expertRateClass(WeightFormat::Dense, true));
    EXPECT_EQ(classes.of("Matmul"), RateClass());
    classes.projections = weightRateClass(WeightFormat::Int4);
    EXPECT_EQ(classes.of("OutProject"), weightRateClass(WeightFormat::Int4));
    EXPECT_EQ(classes.of("DenseMlp"), RateClass());
    EXPECT_EQ(classes.of("Matmul"), RateClass()) << "it multiplies by either";
    classes.mlp = weightRateClass(WeightFormat::Int4);
    EXPECT_EQ(classes.of("DenseMlp"), weightRateClass(WeightFormat::Int4));
    EXPECT_EQ(classes.of("MatmulInputGradient"), weightRateClass(WeightFormat::Int4));
    EXPECT_EQ(classes.of("LmHead"), RateClass());
    EXPECT_EQ(rateClassOfCopies(expertRateClass(WeightFormat::Mxfp4, false)),
              expertRateClass(WeightFormat::Mxfp4, true));
    EXPECT_EQ(rateClassOfCopies(RateClass::WideHeads), RateClass::WideHeads);
}

TEST(OpRates, TheShippedFileTellsPackedExpertsFromDenseOnes) {
    const DeviceTraits h100 = loadDeviceProfile("h100-80gb");
    for (const char* family : {"ExpertMlp.mxfp4", "ExpertMlp.dense", "ExpertMlp.mxfp4.copies", "ExpertMlp.dense.copies",
                               "Attention.wide.fp8"}) {
        EXPECT_TRUE(h100.rates->seconds(family, 1'000'000'000, 1'000'000'000, h100)) << family;
    }
    EXPECT_FALSE(h100.rates->seconds("ExpertMlp", 1'000'000'000, 1'000'000'000, h100));
}

TEST(OpRates, ProfilesHaveTheirOwnOrThoseOfADeviceLikeThem) {
    const DeviceTraits h100 = loadDeviceProfile("h100-80gb"), h200 = loadDeviceProfile("h200");
    EXPECT_EQ(h100.ratesFrom, RatesFrom::Shipped);
    EXPECT_EQ(h200.ratesFrom, RatesFrom::Shipped);
    EXPECT_TRUE(h200.rates->seconds("EmbeddingGradient", 1'000'000, 1'000'000, h200));
    EXPECT_EQ(loadDeviceProfile("t4").ratesFrom, RatesFrom::Profile);
    ASSERT_NE(h200.rates, nullptr);
    const std::uint64_t bytes = 4'000'000'000; // bound by memory, which the H200 has more of
    EXPECT_LT(h200.rates->seconds("LmHead", bytes, bytes, h200)->seconds,
              h100.rates->seconds("LmHead", bytes, bytes, h100)->seconds);
}

TEST(OpRates, AFileOfOnesOwnIsReadAndADamagedOneIsNot) {
    const std::string folder = testing::TempDir() + "/own-rates";
    ASSERT_EQ(::setenv("VITRINE_CACHE_DIR", folder.c_str(), 1), 0);
    DeviceTraits t4 = loadDeviceProfile("t4");
    const std::string file = ownRatesFile(t4);
    EXPECT_EQ(file, folder + "/op-rates/t4.json");
    std::filesystem::create_directories(folder + "/op-rates");
    OpRates rates;
    rates.add("Rope", {1e6, 1e6, 1e-4, 1});
    std::ofstream(file) << rates.toJson();
    t4 = loadDeviceProfile("t4");
    EXPECT_EQ(t4.ratesFrom, RatesFrom::ThisMachine);
    std::ofstream(file) << "{";
    EXPECT_EQ(loadDeviceProfile("t4").ratesFrom, RatesFrom::Profile);
    std::filesystem::remove_all(folder);
    ::setenv("VITRINE_CACHE_DIR", "/dev/null/vitrine", 1);
}

} // namespace
} // namespace vitrine::kernels
