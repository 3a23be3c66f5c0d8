// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The decode roofline of a run: bytes that each token must read, by who reads them, what the device's bandwidth makes of
// them, and how long a token really took. From metrics["roofline"].

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "ui/models/common/stack_model.h"

namespace vitrine::ui {

struct RooflineTerm {
    StackLayer layer; ///< name and colours
    double bytes = 0; ///< of one token
    double share = 0; ///< of all bytes, 0 to 1
    double floorSeconds = 0;
};

struct RooflineSummary {
    std::vector<RooflineTerm> parts; ///< experts, attention or layers, head, KV cache
    double bandwidth = 0;            ///< bytes/s
    QString source;                  ///< how that is known
    double bytes = 0, floorSeconds = 0;
    double seconds = 0; ///< measured, of one token
    double ratio = 0;   ///< floor / measured
    double sequences = 1;
    std::optional<double> contextTokens;
};

/// Nothing where a run has no roofline, or one with numbers that cannot be.
std::optional<RooflineSummary> rooflineSummary(const std::string& metricsJson);

/// "0.61 of what 4.23 TB/s allow; experts are 34 % of the bytes."
QString rooflineSentence(const RooflineSummary& facts);
/// How the bandwidth is known, for how many sequences and at what context.
QString rooflineFootnote(const RooflineSummary& facts);

} // namespace vitrine::ui
