// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What could stay in BF16, what that would cost and save, and the experiments that find out or do it. Pure functions;
// any thread.

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "ui/models/precision/precision_data.h"

namespace vitrine::ui {

/// A row of the list of what could stay BF16.
struct KeepRow {
    QString name;                  ///< "down, all layers"
    std::string pattern;           ///< for the ignore lists of `precision` and `convert`; empty: it is kept anyway
    std::uint64_t bytes = 0;       ///< that it adds
    std::optional<double> klSaved; ///< nats; nothing: it is in A already
    engine::KeepPart part = {};    ///< empty: it is in A already
    std::optional<double> secondsAdded = {}; ///< to a token's decoding, as planned; nothing: unknown
};
/// What is kept anyway, then what saves anything, largest KL for each byte first, at most kMostKeepRows rows.
inline constexpr std::size_t kMostKeepRows = 9;
std::vector<KeepRow> keepRows(const engine::PrecisionResult& result, std::size_t format);

/// The whole model with the checked rows in BF16; KL and time are sums of single effects. A row that lies within
/// another checked one counts once.
struct KeepSum {
    std::uint64_t bytes = 0;
    std::optional<double> kl;
    std::optional<double> rate;   ///< planned tokens/s of decoding; nothing: unknown
    std::optional<double> change; ///< of the rate, against nothing checked: -0.009
};
KeepSum keepSum(const engine::PrecisionResult& result, std::size_t format, const std::vector<KeepRow>& rows,
                const std::vector<bool>& checked);

// Experiments as JSON, for the form of the Run view.

/// The lab for a model, with its default formats.
QString labExperiment(const std::string& model);
/// The lab again with more patterns on its ignore list. `options` are those of the run that the lab shows.
QString measureExperiment(const std::string& options, const std::vector<std::string>& ignored);
/// The lab again, with so many tokens of its text scored.
QString scoreExperiment(const std::string& options, int tokens);
/// The lab again, and what keeping each role would save.
QString keepEffectsExperiment(const std::string& options);
/// The conversion to this format.
QString convertExperiment(const PrecisionData& data, std::size_t format, const std::vector<std::string>& ignored);

} // namespace vitrine::ui
