// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/core/device_traits.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/resource_path.h"
#include "kernels/core/op_rates.h"

namespace vitrine::kernels {
namespace {

TEST(DeviceTraits, EveryShippedProfileLoads) {
    const auto names = deviceProfileNames();
    for (const char* wanted :
         {"h200", "h100-80gb", "a100-80gb", "a100-40gb", "b200", "l4", "t4", "rtx-4090", "rtx-5090"}) {
        EXPECT_NE(std::find(names.begin(), names.end(), wanted), names.end()) << wanted;
    }
    for (const std::string& name : names) {
        const DeviceTraits traits = loadDeviceProfile(name);
        EXPECT_EQ(traits.id, name);
        EXPECT_GT(traits.memoryBytes, std::uint64_t{10} << 30) << name;
        EXPECT_LT(traits.untrackedBytes, traits.memoryBytes) << name;
        EXPECT_GT(traits.flops(DType::BF16), 1e12) << name;
    }
}

TEST(DeviceTraits, FeaturesFollowTheArchitecture) {
    const DeviceFeatures gpu = loadDeviceProfile("h200").features;
    EXPECT_TRUE(gpu.kernelScratch);
    EXPECT_TRUE(gpu.fewStepSizes);
    EXPECT_FALSE(gpu.floatsForByteKeys);
    EXPECT_EQ(gpu.prefillTokens, 8192);
    const DeviceFeatures cpu = cpuTraits(2).features;
    EXPECT_FALSE(cpu.kernelScratch);
    EXPECT_FALSE(cpu.fewStepSizes);
    EXPECT_TRUE(cpu.floatsForByteKeys);
    EXPECT_EQ(cpu.prefillTokens, 512);
    EXPECT_EQ(featuresOf("y").prefillTokens, 8192);
    EXPECT_FALSE(featuresOf("y").kernelScratch);
}

TEST(DeviceTraits, ADeviceIsKnownByTheWordsOfItsName) {
    EXPECT_EQ(profileOfDevice("NVIDIA H200"), "h200");
    EXPECT_EQ(profileOfDevice("NVIDIA H100 80GB HBM3"), "h100-80gb");
    EXPECT_EQ(profileOfDevice("NVIDIA A100-SXM4-80GB"), "a100-80gb");
    EXPECT_EQ(profileOfDevice("NVIDIA A100-PCIE-40GB"), "a100-40gb");
    EXPECT_EQ(profileOfDevice("Tesla T4"), "t4");
    EXPECT_EQ(profileOfDevice("NVIDIA L4"), "l4");
    for (const char* other : {"", "NVIDIA", "NVIDIA H100 PCIe", "NVIDIA L40S", "NVIDIA GeForce RTX 4080"}) {
        EXPECT_EQ(profileOfDevice(other), "") << other;
    }
}

TEST(DeviceTraits, BadProfilesNameFileAndField) {
    const std::string path = testing::TempDir() + "/bad-profile.json";
    std::ofstream(path) << R"({"name": "x", "arch": "y", "memory_bytes": "much"})";
    try {
        loadDeviceProfile(path);
        FAIL();
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find(path), std::string::npos);
        EXPECT_NE(error.message().find("memory_bytes"), std::string::npos);
    }
    EXPECT_THROW(loadDeviceProfile("no-such-card"), base::BadInput);
}

TEST(DeviceTraits, SharesOfExpertProductsMayBeLeftOut) {
    EXPECT_EQ(loadDeviceProfile("a100-80gb").expertShareDense, kGpuExpertShareDense);
    EXPECT_EQ(cpuTraits(1).expertShareDense, 1);
    std::ifstream shipped(base::resourcePath("device-profiles/h200.json"));
    nlohmann::json profile = nlohmann::json::parse(shipped);
    const std::string path = testing::TempDir() + "/shares.json";
    for (const double share : {0.5, 0.0, 1.5}) {
        profile["expert_share_dense"] = share;
        std::ofstream(path) << profile;
        if (share == 0.5) {
            EXPECT_EQ(loadDeviceProfile(path).expertShareDense, 0.5);
            continue;
        }
        try {
            loadDeviceProfile(path);
            FAIL() << share;
        } catch (const base::BadInput& error) {
            EXPECT_NE(error.message().find("expert_share_dense"), std::string::npos);
        }
    }
}

TEST(DeviceTraits, AProfileOfOnesOwnNamesItsRatesBesideIt) {
    const std::string folder = testing::TempDir() + "/own-profile";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::ifstream shipped(base::resourcePath("device-profiles/t4.json"));
    nlohmann::json profile = nlohmann::json::parse(shipped);
    profile["rates"] = "rates.json";
    const std::string path = folder + "/card.json";
    std::ofstream(path) << profile;
    try {
        loadDeviceProfile(path);
        FAIL() << "the rates are not there";
    } catch (const base::BadInput& error) {
        EXPECT_NE(error.message().find("rates: there is no file"), std::string::npos) << error.message();
    }
    OpRates rates;
    rates.add("Rope", {1e6, 1e6, 1e-4, 1});
    std::ofstream(folder + "/rates.json") << rates.toJson();
    const DeviceTraits traits = loadDeviceProfile(path);
    ASSERT_NE(traits.rates, nullptr);
    EXPECT_EQ(traits.rates->families(), 1U);
    EXPECT_EQ(traits.ratesFrom, RatesFrom::Shipped);
}

TEST(DeviceTraits, AttentionHasItsOwnRate) {
    const DeviceTraits gpu = loadDeviceProfile("h200");
    EXPECT_EQ(gpu.attentionShare(DType::BF16, 64, false), gpu.attentionShareNarrow);
    EXPECT_EQ(gpu.attentionShare(DType::F16, 128, false), gpu.attentionShareWide);
    EXPECT_EQ(gpu.attentionShare(DType::BF16, 32, true), gpu.attentionBackwardShareNarrow);
    EXPECT_EQ(gpu.attentionShare(DType::BF16, 128, true), gpu.attentionBackwardShareWide);
    EXPECT_EQ(gpu.attentionShare(DType::F32, 128, false), 1);
    EXPECT_LT(gpu.attentionShareNarrow, gpu.attentionShareWide);
    EXPECT_EQ(cpuTraits(1).attentionShare(DType::BF16, 128, false), 1);
    EXPECT_EQ(loadDeviceProfile("a100-80gb").attentionShareWide, kGpuAttentionShareWide);
}

TEST(DeviceTraits, CpuHasMemory) {
    const DeviceTraits traits = cpuTraits(3);
    EXPECT_EQ(traits.multiprocessors, 3);
    EXPECT_GT(traits.memoryBytes, std::uint64_t{1} << 28);
}

TEST(DeviceLinks, BothLinksCarryAtTheSameTime) {
    DeviceLinks links{100, 1, 10, 2, 4, 4};
    EXPECT_DOUBLE_EQ(links.exchangeSeconds(400), 100.0 * 3 / 100 + 1);
    links.ranks = 8; // half of it leaves the node
    EXPECT_DOUBLE_EQ(links.exchangeSeconds(400), 50.0 * 4 / 10 + 2);
    links.nodeBandwidth = 1000;
    EXPECT_DOUBLE_EQ(links.exchangeSeconds(4000), 500.0 * 3 / 100 + 1);
    links.ranks = 1;
    EXPECT_DOUBLE_EQ(links.exchangeSeconds(400), 0);
    EXPECT_FALSE(DeviceLinks{}.known());
}

} // namespace
} // namespace vitrine::kernels
