// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The decode roofline of a run: bytes that each token must read, by who reads them, what the device's bandwidth makes
// of them, and how long a token really took. From metrics["roofline"].

#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"

namespace vitrine::profiler {

struct RooflineTerm {
    std::string name;                                              ///< "KV cache"
    base::MemoryCategory category = base::MemoryCategory::Weights; ///< whose colour it has
    int tone = 0;                                                  ///< of that colour: 0 itself, 1 .. 4 steps of it
    double bytes = 0;                                              ///< of one token
    double share = 0;                                              ///< of all bytes, 0 to 1
    double floorSeconds = 0;
};

struct RooflineSummary {
    std::vector<RooflineTerm> parts; ///< experts, attention or layers, head, KV cache
    double bandwidth = 0;            ///< bytes/s
    std::string source;              ///< how that is known
    double bytes = 0, floorSeconds = 0;
    double seconds = 0; ///< measured, of one token
    double ratio = 0;   ///< floor / measured
    double sequences = 1;
    std::optional<double> contextTokens;
};

/// Nothing where a run has no roofline, or one with numbers that cannot be.
std::optional<RooflineSummary> rooflineSummary(const std::string& metricsJson);

/// "4.23 TB/s": what the texts of rooflines call the bandwidth of a machine, with two digits after the point.
std::string bandwidthText(double bytesPerSecond);
/// "0.61 of what 4.23 TB/s allow; experts are 34 % of the bytes."
std::string rooflineSentence(const RooflineSummary& roofline);
/// How the bandwidth is known, for how many sequences and at what context.
std::string rooflineFootnote(const RooflineSummary& roofline);

} // namespace vitrine::profiler
