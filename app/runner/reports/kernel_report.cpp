// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/reports/kernel_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/jit/cubin_cache.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/cuda/jit/kernel_pack.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0}; ///< looking evicts nothing

/// What is known of an arch without a device of it.
kernels::DeviceArch namedArch(const std::string& name) {
    kernels::DeviceArch arch;
    arch.name = name;
    arch.number = kernels::archNumber(name);
    return arch;
}

json variantRow(const kernels::KernelLibrary::Listing& item) {
    const kernels::KernelVariant& variant = *item.variant;
    json files = json::array();
    for (const kernels::KernelFile& file : variant.files) {
        files.push_back(file.path);
    }
    return {{"family", variant.family},
            {"variant", variant.name},
            {"pack", item.pack->name()},
            {"priority", variant.priority},
            {"abi", variant.abi},
            {"runs", item.runs},
            {"chosen", item.chosen},
            {"examples", item.examples},
            {"archs", variant.archs},
            {"when", variant.when.text()},
            {"specialize", variant.specialize},
            {"files", std::move(files)},
            {"launches", variant.launches.size()}};
}

} // namespace

json kernelReport(const KernelQuestion& question) {
    const std::vector<kernels::CudaDeviceInfo> devices = kernels::cudaDevices();
    const bool here = question.arch.empty() && !devices.empty();
    kernels::KernelLibraryOptions options;
    options.packs = question.packs;
    options.overrides = question.overrides;
    const kernels::KernelLibrary library(
        here ? kernels::archOf(devices.front()) : namedArch(question.arch.empty() ? "sm_90a" : question.arch), options);
    json report = {{"arch", library.arch().name}, {"device", here ? json(devices.front().name) : json()}};
    std::vector<const kernels::KernelPack*> packs;
    json rows = json::array();
    for (const kernels::KernelLibrary::Listing& item : library.list()) {
        if (std::find(packs.begin(), packs.end(), item.pack) == packs.end()) {
            packs.push_back(item.pack);
        }
        rows.push_back(variantRow(item));
    }
    report["packs"] = json::array();
    for (const kernels::KernelPack* pack : packs) {
        report["packs"].push_back({{"name", pack->name()},
                                   {"description", pack->description()},
                                   {"place", pack->place()},
                                   {"variants", pack->variants().size()}});
    }
    report["rows"] = std::move(rows);
    return report;
}

json cubinCacheReport() {
    const kernels::CubinCache cache("", kNoLimit);
    std::uint64_t bytes = 0;
    int damaged = 0;
    json rows = json::array();
    for (const kernels::CubinCache::File& file : cache.list()) {
        bytes += file.bytes;
        damaged += file.intact ? 0 : 1;
        rows.push_back({{"key", file.key}, {"label", file.label}, {"bytes", file.bytes}, {"intact", file.intact}});
    }
    return {{"folder", cache.folder()}, {"bytes", bytes}, {"damaged", damaged}, {"rows", std::move(rows)}};
}

json clearCubinCache() {
    kernels::CubinCache cache("", kNoLimit);
    const int removed = cache.clear();
    return {{"folder", cache.folder()}, {"removed", removed}};
}

} // namespace vitrine::app
