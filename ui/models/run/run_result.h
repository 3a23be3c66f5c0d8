// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Run view says of a run that has ended, from the fields of `--json`. Pure function.

#include <QString>
#include <cstdint>
#include <optional>
#include <string>

namespace vitrine::ui {

struct RunResult {
    std::optional<std::uint64_t> peakBytes, tokens, kvBytes;
    std::optional<double> tokensPerSecond; ///< of decode, where that is known
    QString errorDetails;                  ///< JSON in lines; empty: there was no error
};

/// Why an answer ended: "ended at a stop token", "ended: 3 at a stop token, 1 at the limit of new tokens"; empty where
/// that is not known.
QString endingText(const std::string& metricsJson, const std::string& experimentJson);

/// Nothing where the text is no JSON object.
std::optional<RunResult> runResult(const std::string& metricsJson);

} // namespace vitrine::ui
