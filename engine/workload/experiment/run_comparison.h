// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What two saved runs may be compared in, and which of their differences are more than noise. The desktop program and
// `vitrine session compare` ask here, so that they never judge the same pair differently. Changes are B − A. Pure
// functions; any thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// What a session keeps of a run, as far as comparing needs it. JSON texts may come from another version.
struct ComparedRun {
    std::int64_t number = 0; ///< "#12"
    std::string spec, environment, metrics;
    bool done = false;        ///< it came to its end
    bool outOfMemory = false; ///< it ended because memory did not suffice
    std::string status = {};  ///< as sessions name it: "cancelled", "failed"; empty: only what the flags say is known
    /// The spec with its files named by where they are now (stored_files.h); empty: as `spec` has them. A run that was
    /// started again from its session names the same files in another way.
    std::string foundSpec = {};
};

/// What of two runs must not be compared.
enum class Incomparable : std::uint8_t { All, Times, Answers };
struct Incomparability {
    Incomparable what = Incomparable::All;
    std::string why;      ///< "#7 ran on a T4, #5 on an H100"
    bool planned = false; ///< of times: those of one run are planned, so they are no times of a device at all
};
/// Empty when everything may be compared. What makes all incomparable stands first.
std::vector<Incomparability> whyIncomparable(const ComparedRun& a, const ComparedRun& b);
/// One sentence for all of it: "#7 and #5 cannot be compared: ..." or "Not comparable: times (...); answers (...)."
/// Empty when everything may be compared.
std::string incomparableSentence(const ComparedRun& a, const ComparedRun& b);
bool allIncomparable(const std::vector<Incomparability>& reasons);

/// A value of the machine, driver or program.
struct SurroundingDifference {
    std::string key;   ///< "driver"
    std::string words; ///< "driver version"
    std::string a, b;  ///< with their units; "–" where unknown
    bool differs = true;
};
/// Measured surroundings that are known of at least one run: what a session keeps under "environment". Command lines
/// differ only in options that are no settings of the experiment and name no session.
std::vector<SurroundingDifference> allSurroundings(const ComparedRun& a, const ComparedRun& b);
/// Those that differ.
std::vector<SurroundingDifference> diffSurroundings(const ComparedRun& a, const ComparedRun& b);

/// The settings that differ. A file that both runs read is the same setting, however each of them names it.
std::vector<SpecDifference> diffSettings(const ComparedRun& a, const ComparedRun& b);

/// Runs with the settings of `run` on the same machine and build that came to their end: they differ by noise alone.
bool areRepeats(const ComparedRun& a, const ComparedRun& b);

enum class Verdict : std::uint8_t { Same, Better, Worse, Differs };
struct ChangeJudgement {
    Verdict verdict = Verdict::Same;
    double change = 0;        ///< B − A, in the unit of the field
    double noise = 0;         ///< half width of the band around A, in the unit of the field
    bool fromRepeats = false; ///< the band has the spread of repeats; else it is only what such values usually have
};
/// Judges a result of work that both runs did whole. `repeatsA` and `repeatsB` are the values of repeats, those of A
/// and B among them. `clockShare` is the share of a time that other clocks explain (see clockShare below).
ChangeJudgement judge(std::string_view path, double a, double b, std::span<const double> repeatsA,
                      std::span<const double> repeatsB, double clockShare = 0);
/// |clock of A / clock of B − 1| of GPUs; 0 where one is unknown.
double clockShare(const ComparedRun& a, const ComparedRun& b);

/// The run with fewer tokens, where its answer ended by itself: totals then differ for that reason.
struct EarlyStop {
    bool isA = false;
    std::int64_t tokens = 0, of = 0;
    std::string reason; ///< "stop"; may be empty
};
std::optional<EarlyStop> earlyStop(const ComparedRun& a, const ComparedRun& b);
/// Whether the result grows with the number of tokens, so that it says nothing when one run stopped early.
bool growsWithTokens(std::string_view path);

/// A result of two runs. Prefill is without the time that it waited for kernels to compile, which has its own row.
struct ResultChange {
    std::string path;  ///< "peak_bytes"
    std::string words; ///< "peak memory"
    std::optional<double> a, b;
    std::vector<double> repeatsA, repeatsB;   ///< values of repeats, the run itself among them
    std::optional<ChangeJudgement> judgement; ///< where both runs have it; Differs where one did a part of the work
};
/// Results that may be compared, what answers a question first in front. `all` are the runs among which repeats are
/// looked for; they may contain A and B.
std::vector<ResultChange> compareResults(const ComparedRun& a, const ComparedRun& b, std::span<const ComparedRun> all);
/// "▼ −1.40 GiB": B − A with its unit; "=" inside the noise.
std::string changeText(std::string_view path, const ChangeJudgement& judgement);
/// "−1.40 GiB"
std::string signedValueText(std::string_view path, double value);

} // namespace vitrine::engine
