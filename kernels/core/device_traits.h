// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What ops and planners may know of a device. From the device itself, or from a profile file in
// resources/device-profiles/NAME.json, so that Meta with a profile allocates as the device does.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/dtype.h"

namespace vitrine::kernels {

/// What devices of one kind do, beyond their numbers. Sizes of allocations depend on it, so every backend that was
/// given a device's traits follows it.
struct DeviceFeatures {
    bool kernelScratch = false; ///< ops are several launches that leave results for each other in scratch
    bool int4Tiles = false;     ///< INT4 weights multiply many BF16 rows as they are stored (int4_gemm)
    bool fewStepSizes = false;  ///< steps of single tokens are filled up to a few sizes, whose graphs are replayed
    bool floatsForByteKeys =
        true; ///< a step's own keys are F32 where the cache will hold bytes, else as other activations
    std::int64_t prefillTokens = 8192; ///< tokens of one prefill step; few where activations should stay in caches
    /// Asked for by a run, not a matter of the device: what an op makes of a row depends on that row alone, to the bit,
    /// however many rows there are and whether it runs for inference or for training. Forward ops only.
    bool exactRows = false;
};

/// By the name of the architecture: "sm_90a" is a GPU, "cpu-avx512" a CPU. The one place that reads such names.
DeviceFeatures featuresOf(std::string_view arch);

/// How devices of this kind reach each other, for plans of several: inside a node, and from node to node.
struct DeviceLinks {
    double bandwidth = 0, seconds = 0;         ///< bytes/s that a device sends, and what an exchange takes beside them
    double nodeBandwidth = 0, nodeSeconds = 0; ///< the same to devices of other nodes
    int nodeDevices = 8;                       ///< of a node
    int ranks = 1;                             ///< asked for by a plan: devices among which experts are divided

    bool known() const { return bandwidth > 0 && nodeBandwidth > 0; }
    /// The time in which each rank sends `bytes` to all ranks evenly, itself included. REQUIRES known().
    double exchangeSeconds(double bytes) const;
};

class OpRates;

/// Where the times of a device's ops come from.
enum class RatesFrom : std::uint8_t {
    Profile,     ///< the rates below: nothing was measured op by op
    Shipped,     ///< measured on a device of this kind and shipped with the profile
    Scaled,      ///< measured on a device of the same architecture, shipped, and scaled by the rates below
    ThisMachine, ///< measured by runs on this machine
    Both         ///< measured by runs on this machine where they had the op, shipped where not
};

struct DeviceTraits {
    std::string id;   ///< "h200"
    std::string name; ///< "NVIDIA H200"
    std::string arch; ///< "sm_90a", "cpu-avx512"
    DeviceFeatures features;
    std::uint64_t memoryBytes = 0;
    std::uint64_t untrackedBytes = 0; ///< context and libraries, before the first tensor
    std::uint64_t workspaceBytes = 0; ///< what dense products ask for, per context
    int multiprocessors = 0;          ///< or CPU threads
    std::uint64_t sharedMemoryPerBlock = 0;
    double memoryBandwidth = 0;                     ///< bytes/s, read
    double hostToDeviceBandwidth = 0;               ///< bytes/s over PCIe from pinned memory; a CPU's copy rate
    double diskBandwidth = 0;                       ///< bytes/s, files from page cache
    double launchSeconds = 0;                       ///< cost of starting one kernel
    std::uint64_t mapUnit = std::uint64_t{2} << 20; ///< memory that grows where it lies does so by whole units
    double mapSeconds = 0;                          ///< what a growth costs, by any number
    DeviceLinks links;
    double flopsF32 = 0; ///< FLOP/s by compute type
    double flopsBf16 = 0;
    double flopsF16 = 0;
    double flopsF8 = 0;
    /// The share of the rate of dense products that grouped expert products of dense weights reach on tensor cores.
    /// That of packed weights stands with their format (kernels/formats/packed_format.h).
    double expertShareDense = 1;
    /// The same of attention forward and backward, by head dim: up to 64 (narrow) and above (wide). BF16 and F16 only.
    double attentionShareNarrow = 1, attentionShareWide = 1;
    double attentionBackwardShareNarrow = 1, attentionBackwardShareWide = 1;
    std::vector<std::string> variants; ///< variants in use, "ExpertMlp=fused"
    std::shared_ptr<const OpRates>
        rates; ///< times of ops that were measured; null: none were (kernels/core/op_rates.h)
    RatesFrom ratesFrom = RatesFrom::Profile;
    std::string ratesOf;   ///< id of the profile whose shipped rates, scaled, stand for what it has not; empty: none
    std::string ratesFile; ///< of a profile that is a file: its own rates; empty: none

    double flops(DType dtype) const;
    /// The time of `exchanges` rounds in which this rank sends so many bytes in all to the other ones of `ranks`.
    /// Within a node over its links, beyond it over the slower ones; where the profile has none, through the host.
    double linkSeconds(double bytes, std::uint32_t exchanges, int ranks) const;
    /// Of the rate of dense products in this type.
    double attentionShare(DType dtype, std::int64_t headDim, bool backward) const;
};

/// Those shares on an H200 (docs/performance.md, "Expert products of prefill"); they stand for every GPU whose profile
/// has none of its own.
inline constexpr double kGpuExpertShareDense = 0.41;
/// Likewise those of causal attention ("Attention programs on one H200").
inline constexpr double kGpuAttentionShareNarrow = 0.60;
inline constexpr double kGpuAttentionShareWide = 0.85;
inline constexpr double kGpuAttentionBackwardShareNarrow = 0.54;
inline constexpr double kGpuAttentionBackwardShareWide = 0.67;

/// Seconds of a growth in place, however large, likewise ("KV caches that grow where they lie").
extern const double kGpuMapSeconds;

/// Reads a profile; `nameOrPath` is a shipped name ("h200") or a file. Throws BadInput that names the field.
DeviceTraits loadDeviceProfile(const std::string& nameOrPath);

/// Shipped names, sorted.
std::vector<std::string> deviceProfileNames();

/// The shipped profile of a device that the driver gives this name; empty: there is none. The name has all words of the
/// profile's: "NVIDIA H100 80GB HBM3" and "NVIDIA A100-SXM4-80GB" have profiles, "NVIDIA H100 PCIe" has none.
std::string profileOfDevice(std::string_view deviceName);

/// Traits of this machine's CPU: SIMD level, threads, measured-once memory bandwidth is left at a default.
DeviceTraits cpuTraits(int threads);

} // namespace vitrine::kernels
