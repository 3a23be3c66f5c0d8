// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How long ops took on a device, so that plans price an op by what calls like it took instead of by the data sheet.
//
// A family is all calls of one op ("Matmul"). A call is placed by the bytes it moves and the FLOPs it computes, both in
// octaves (log2). Its time is the roofline time of those two numbers, times the measured time over roofline time of the
// measured calls nearest to it. The roofline time has a fixed latency in it, so that the factor changes slowly between
// tiny calls, which only wait, and large ones, which move bytes or compute.

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::kernels {

struct DeviceTraits;

/// Calls of one op that moved and computed about the same.
struct OpCalls {
    double bytes = 0, flops = 0; ///< of one call, mean
    double seconds = 0;          ///< of one call, mean, without the wait before it
    double calls = 1;            ///< how many stand behind the mean
};

/// How the ops of a step reach the device.
enum class LaunchKind : std::uint8_t {
    Launched, ///< the host launches each op: prefill, and every step on a CPU
    Replayed, ///< the whole step is one launch: decode steps on a GPU
    Trained,  ///< as Launched, of a training step
};
inline constexpr std::array<std::string_view, 3> kLaunchKindNames{"launched", "replayed", "trained"};

/// What a step costs beside its ops, seconds.
struct LaunchCost {
    double gap = 0;    ///< the device waits so long between two ops that are ready
    double host = 0;   ///< the host needs so long to launch one op; 0 where a step is one launch
    double step = 0;   ///< of every step, beside its ops and what is between them
    double first = 0;  ///< what the first steps of a run take more than later ones: libraries wake up, graphs are made
    double steps = 0;  ///< how many measured steps stand behind these numbers; 0: nothing was measured
    double layers = 0; ///< of the models behind `first`, which grows with their layers; 0: it does not
};

/// What rates say of one call.
struct RatedSeconds {
    double seconds = 0;
    bool far = false; ///< no measured call is within a factor of four, or the family was borrowed from another device
};

/// Immutable once it stands in DeviceTraits: any thread may ask it.
class OpRates {
public:
    bool empty() const { return families_.empty(); }
    std::size_t families() const { return families_.size(); }

    /// Joins `calls` with those that lie less than a quarter of an octave away; old measurements fade slowly.
    void add(std::string_view op, const OpCalls& calls);
    void addSteps(LaunchKind kind, const LaunchCost& cost);
    /// Takes `cost` instead of what addSteps() joined.
    void setSteps(LaunchKind kind, const LaunchCost& cost) { launches_[static_cast<std::size_t>(kind)] = cost; }
    /// The first launches of calls of a family took the host so many seconds more than later ones, in one run.
    void addWake(std::string_view op, double seconds);
    /// add() and addSteps() of all that `other` has.
    void join(const OpRates& other);
    /// Makes the times of a device with the traits `from` those of `to`, by their roofline times.
    void scale(const DeviceTraits& from, const DeviceTraits& to);
    /// Takes the calls of `newer` instead of its own that lie within an octave of them.
    void overlay(const OpRates& newer);
    /// Takes the families and the costs of launches that it lacks itself from `other`, the rates of another device.
    void borrow(const OpRates& other);

    /// The time of a call; nothing where no call of this op was measured.
    std::optional<RatedSeconds> seconds(std::string_view op, std::uint64_t bytes, std::uint64_t flops,
                                        const DeviceTraits& traits) const;
    /// What the first launch of such a call takes the host more than later ones, seconds; 0: nothing, or not measured.
    double wake(std::string_view op) const;
    const LaunchCost& launch(LaunchKind kind) const { return launches_[static_cast<std::size_t>(kind)]; }

    /// {"format": 1, "launch": {"launched": {gap, host, step, first, steps, layers}, ..}, "ops": {NAME: [[bytes, flops,
    /// seconds, calls], ..]}, "wake": {NAME: [seconds, runs]}}
    nlohmann::json toJson() const;
    /// Throws BadInput that names `file` and the field.
    static OpRates fromJson(const nlohmann::json& value, const std::string& file);
    /// As above; empty rates where there is no such file.
    static OpRates read(const std::string& file);

private:
    std::map<std::string, std::vector<OpCalls>, std::less<>> families_;
    std::set<std::string, std::less<>> borrowed_; ///< of families_: those of another device
    std::array<LaunchCost, kLaunchKindNames.size()> launches_;
    struct Wake {
        double seconds = 0, runs = 0; ///< a mean, and how many runs stand behind it
    };
    using Wakes = std::map<std::string, Wake, std::less<>>;
    static void readWakes(const nlohmann::json& value, const std::string& file, Wakes& wakes);
    Wakes wakes_;
};

/// Where the rates stand that runs on this machine measured on a device with these traits: "/op-rates/NAME.json" in
/// base::userCacheFolder(). NAME is the profile's id, for a CPU "cpu-THREADS". Empty: there is no such folder.
std::string ownRatesFile(const DeviceTraits& traits);

/// Reads rates into `traits`: those of traits.ratesFile, else those shipped with the profile
/// (resources/device-profiles/rates/NAME.json), what they lack from traits.ratesOf, scaled, and over them those of
/// ownRatesFile. A damaged file of one's own is named in the log and not used. Throws BadInput for traits.ratesFile.
void addOpRates(DeviceTraits& traits);

} // namespace vitrine::kernels
