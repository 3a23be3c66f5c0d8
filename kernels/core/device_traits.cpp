// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/core/device_traits.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "base/resource_path.h"
#include "base/strict_json.h"
#include "kernels/core/op_rates.h"

namespace vitrine::kernels {

namespace {

using nlohmann::json;

constexpr base::JsonLimits kProfileLimits{.maxBytes = std::size_t{1} << 20, .maxDepth = 8};

/// Of a device's name, but for its maker: "NVIDIA A100-SXM4-80GB" has A100, SXM4 and 80GB.
std::set<std::string> wordsOfName(std::string_view name) {
    std::set<std::string> words;
    std::string word;
    for (const char c : std::string(name) + ' ') {
        if (c != ' ' && c != '-') {
            word += c;
        } else if (!word.empty() && word != "NVIDIA" && word != "Tesla") {
            words.insert(std::exchange(word, {}));
        } else {
            word.clear();
        }
    }
    return words;
}

/// One profile file with errors that name it and the field.
class ProfileReader {
public:
    ProfileReader(const json& value, std::string file) : value_(value), file_(std::move(file)) {}

    double number(const char* field, double minimum) const {
        const auto it = value_.find(field);
        if (it == value_.end() || !it->is_number()) {
            throw base::BadInput(fmt::format("{}: {}: a number is expected", file_, field));
        }
        const double number = it->get<double>();
        if (!(number >= minimum) || number > 1e18) {
            throw base::BadInput(fmt::format("{}: {}: {} is not between {} and 1e18", file_, field, number, minimum));
        }
        return number;
    }
    /// Above 0 and up to 1; `otherwise` where the field is missing.
    double share(const char* field, double otherwise) const {
        if (!value_.contains(field)) {
            return otherwise;
        }
        const double share = number(field, 0.001);
        if (share > 1) {
            throw base::BadInput(fmt::format("{}: {}: {} is not between 0.001 and 1", file_, field, share));
        }
        return share;
    }
    std::uint64_t count(const char* field) const { return static_cast<std::uint64_t>(number(field, 0)); }
    std::string text(const char* field) const {
        const auto it = value_.find(field);
        if (it == value_.end() || !it->is_string()) {
            throw base::BadInput(fmt::format("{}: {}: a text is expected", file_, field));
        }
        return it->get<std::string>();
    }

private:
    const json& value_;
    std::string file_;
};

/// Total memory of this machine in bytes, or the control group's limit when that is smaller.
std::uint64_t machineMemory() {
    std::uint64_t total =
        static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
    std::ifstream limitFile("/sys/fs/cgroup/memory.max");
    std::uint64_t limit = 0;
    if (limitFile >> limit && limit > 0) {
        total = std::min(total, limit);
    }
    return total;
}

} // namespace

const double kGpuMapSeconds = 36e-6;

DeviceFeatures featuresOf(std::string_view arch) {
    DeviceFeatures features;
    if (arch.starts_with("sm_")) {
        features.kernelScratch = true;
        features.fewStepSizes = true;
        features.floatsForByteKeys = false;
        features.int4Tiles = arch == "sm_90a";
    } else if (arch.starts_with("cpu")) {
        features.prefillTokens = 512;
    }
    return features;
}

double DeviceTraits::attentionShare(DType dtype, std::int64_t headDim, bool backward) const {
    if (dtype != DType::BF16 && dtype != DType::F16) {
        return 1;
    }
    if (backward) {
        return headDim > 64 ? attentionBackwardShareWide : attentionBackwardShareNarrow;
    }
    return headDim > 64 ? attentionShareWide : attentionShareNarrow;
}

double DeviceTraits::flops(DType dtype) const {
    switch (dtype) {
    case DType::BF16:
        return flopsBf16;
    case DType::F16:
        return flopsF16;
    case DType::F8E4M3:
    case DType::F8E5M2:
        return flopsF8 > 0 ? flopsF8 : flopsBf16;
    default:
        return flopsF32;
    }
}

double DeviceTraits::linkSeconds(double bytes, std::uint32_t exchanges, int ranks) const {
    constexpr double kHostExchange = 20e-6; // two copies and what starts them
    if (exchanges == 0 || ranks <= 1) {
        return 0;
    }
    const bool inNode = ranks <= links.nodeDevices;
    const double bandwidth = inNode ? links.bandwidth : links.nodeBandwidth;
    if (bandwidth <= 0) {
        return bytes / hostToDeviceBandwidth + exchanges * kHostExchange;
    }
    return bytes / bandwidth + exchanges * (inNode ? links.seconds : links.nodeSeconds);
}

double DeviceLinks::exchangeSeconds(double bytes) const {
    const double ofRank = bytes / ranks;
    const int near = std::min(nodeDevices, ranks);
    const double inside = ofRank * (near - 1) / bandwidth + (near > 1 ? seconds : 0);
    const double outside = ranks > near ? ofRank * (ranks - near) / nodeBandwidth + nodeSeconds : 0;
    return std::max(inside, outside); // both links carry at the same time
}

DeviceTraits loadDeviceProfile(const std::string& nameOrPath) {
    const bool isPath = nameOrPath.find('/') != std::string::npos || nameOrPath.ends_with(".json");
    std::string path = nameOrPath;
    if (!isPath) {
        const std::vector<std::string> names = deviceProfileNames();
        if (std::find(names.begin(), names.end(), nameOrPath) == names.end()) {
            throw base::BadInput(fmt::format("device_profile: '{}' is not known; use one of {} or a file", nameOrPath,
                                             fmt::join(names, ", ")));
        }
        path = base::resourcePath("device-profiles/" + nameOrPath + ".json");
    }
    const json value = base::readStrictJson(path, kProfileLimits);
    if (!value.is_object()) {
        throw base::BadInput(path + ": the file: a JSON object is expected");
    }
    const ProfileReader reader(value, path);
    DeviceTraits traits;
    traits.id = std::filesystem::path(path).stem().string();
    traits.name = reader.text("name");
    traits.arch = reader.text("arch");
    traits.features = featuresOf(traits.arch);
    traits.memoryBytes = reader.count("memory_bytes");
    traits.untrackedBytes = reader.count("untracked_bytes");
    traits.workspaceBytes = reader.count("workspace_bytes");
    traits.multiprocessors = static_cast<int>(std::min<std::uint64_t>(reader.count("multiprocessors"), 65536));
    traits.sharedMemoryPerBlock = reader.count("shared_memory_per_block");
    traits.memoryBandwidth = reader.number("memory_bandwidth", 1e6);
    traits.hostToDeviceBandwidth = reader.number("host_to_device_bandwidth", 1e6);
    traits.diskBandwidth = reader.number("disk_bandwidth", 1e6);
    traits.launchSeconds = reader.number("launch_seconds", 0);
    if (value.contains("link_bandwidth")) {
        traits.links.bandwidth = reader.number("link_bandwidth", 1e6);
        traits.links.seconds = reader.number("link_seconds", 0);
        traits.links.nodeBandwidth = reader.number("node_link_bandwidth", 1e6);
        traits.links.nodeSeconds = reader.number("node_link_seconds", 0);
        traits.links.nodeDevices = static_cast<int>(std::clamp<std::uint64_t>(reader.count("node_devices"), 1, 4096));
    }
    traits.mapSeconds = value.contains("map_seconds") ? reader.number("map_seconds", 0) : kGpuMapSeconds;
    traits.flopsF32 = reader.number("flops_f32", 1e6);
    traits.flopsBf16 = reader.number("flops_bf16", 1e6);
    traits.flopsF16 = reader.number("flops_f16", 1e6);
    traits.flopsF8 = reader.number("flops_f8", 0);
    traits.expertShareDense = reader.share("expert_share_dense", kGpuExpertShareDense);
    traits.attentionShareNarrow = reader.share("attention_share_narrow", kGpuAttentionShareNarrow);
    traits.attentionShareWide = reader.share("attention_share_wide", kGpuAttentionShareWide);
    traits.attentionBackwardShareNarrow =
        reader.share("attention_backward_share_narrow", kGpuAttentionBackwardShareNarrow);
    traits.attentionBackwardShareWide = reader.share("attention_backward_share_wide", kGpuAttentionBackwardShareWide);
    if (value.contains("rates_of")) {
        traits.ratesOf = reader.text("rates_of");
    }
    if (value.contains("rates")) {
        // A path beside the profile, so that both can be moved together.
        traits.ratesFile = (std::filesystem::path(path).parent_path() / reader.text("rates")).string();
        if (!std::filesystem::exists(traits.ratesFile)) {
            throw base::BadInput(fmt::format("{}: rates: there is no file {}", path, traits.ratesFile));
        }
    }
    if (!isPath || value.contains("rates") || value.contains("rates_of")) {
        addOpRates(traits);
    }
    return traits;
}

std::vector<std::string> deviceProfileNames() {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(base::resourcePath("device-profiles"), error)) {
        if (entry.path().extension() == ".json") {
            names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string profileOfDevice(std::string_view deviceName) {
    const std::set<std::string> given = wordsOfName(deviceName);
    for (const std::string& profile : deviceProfileNames()) {
        const json value =
            base::readStrictJson(base::resourcePath("device-profiles/" + profile + ".json"), kProfileLimits);
        if (std::ranges::includes(given, wordsOfName(ProfileReader(value, profile).text("name")))) {
            return profile;
        }
    }
    return {};
}

DeviceTraits cpuTraits(int threads) {
    DeviceTraits traits;
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    traits.id = "cpu";
    traits.name = "CPU";
    traits.arch = avx512 ? "cpu-avx512" : avx2 ? "cpu-avx2" : "cpu-scalar";
    traits.features = featuresOf(traits.arch);
    traits.memoryBytes = machineMemory();
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    traits.multiprocessors = threads > 0 ? threads : cores;
    // Estimates for planning only; the benchmarks measure.
    traits.memoryBandwidth = 20e9;
    traits.hostToDeviceBandwidth = 10e9;
    traits.diskBandwidth = 5e9;
    traits.mapUnit = std::uint64_t{64} << 10; // any number of pages would do
    const double flopsPerCore = (avx512 ? 64 : avx2 ? 32 : 4) * 2.5e9;
    traits.flopsF32 = flopsPerCore * traits.multiprocessors;
    traits.flopsBf16 = traits.flopsF16 = traits.flopsF8 = traits.flopsF32;
    addOpRates(traits);
    return traits;
}

} // namespace vitrine::kernels
