// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Mask Lab works on: the text of a program with all that was chosen and moved around it, the sizes it is
// looked at, and both as an experiment of workload "attention" and back.

#include <QString>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/language/program_choice.h"

namespace vitrine::engine {
class Experiment;
} // namespace vitrine::engine

namespace vitrine::ui {

/// Expression that stands for no mask or no score.
inline constexpr char kNoMod[] = "None";

struct MaskSizes {
    std::int64_t batch = 1, heads = 64, kvHeads = 8, queries = 16384, keys = 16384, headDim = 64;
    std::int64_t block = 128;
    friend bool operator==(const MaskSizes&, const MaskSizes&) = default;
};
inline constexpr std::int64_t kLongestMask = std::int64_t{1} << 24; ///< queries or keys that fields take

struct MaskSource {
    std::string name;                         ///< title; empty: the chosen expressions
    std::string text;                         ///< Python
    std::string mask, score;                  ///< expressions; empty: what the text offers last; kNoMod: none
    std::map<std::string, double> parameters; ///< moved by sliders
    std::vector<std::string> captures;        ///< engine::parseCaptureText reads them
    std::string tensorsFile;                  ///< safetensors with further captured tensors, q and k; empty: none
    friend bool operator==(const MaskSource&, const MaskSource&) = default;

    /// Replaces the capture of that name or adds it.
    void setCapture(const std::string& capture, const std::string& line);
};

/// The name of a capture line: "doc_id" of "doc_id=documents:5,6".
std::string captureName(const std::string& text);
/// Lengths of a line "NAME=documents:5,6"; empty for another one.
std::vector<std::int64_t> captureLengths(const std::string& text);
/// The value of a capture line: "0.5,0.25" of "slopes=0.5,0.25".
std::string captureValue(const std::string& text);

/// Document lengths of the first example, stretched to `tokens`: nine documents of very different lengths.
std::vector<std::int64_t> exampleLengths(std::int64_t tokens);
/// `documents` lengths that are as equal as can be.
std::vector<std::int64_t> equalLengths(std::int64_t tokens, std::int64_t documents);

/// What a new laboratory shows: sliding window + documents (A), causal (B).
MaskSource exampleSource(std::int64_t tokens);
MaskSource causalSource();

/// For parsing: the source's text and choices in the engine's form.
engine::ProgramChoice programChoice(const MaskSource& source, const MaskSizes& sizes);

/// "B,H,HKV,Q,KV,D"
std::string sizesText(const MaskSizes& sizes);

/// Keys of an experiment that say what is computed and on what sizes; `mask` and `score` are the chosen expressions (""
/// or kNoMod: none).
nlohmann::json maskExperiment(const MaskSource& source, const std::string& mask, const std::string& score,
                              const MaskSizes& sizes);
/// Back from a run's experiment; `modTexts` are the texts of its files, which stand before its own.
MaskSource sourceOfExperiment(const engine::Experiment& experiment, const std::vector<std::string>& modTexts);
/// Sizes that an experiment stands for, else those of its random tensors, and its block size; the rest stays as in
/// `other`.
MaskSizes sizesOfExperiment(const engine::Experiment& experiment, MaskSizes other);

/// 16,384 of "16384", "16k", "16K", "1M" (binary), "16 384"; 0: no length.
std::int64_t parseLength(const QString& text);

} // namespace vitrine::ui
