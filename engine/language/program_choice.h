// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A user's choice of programs: texts from files and an editor, the sizes that the texts read as globals, moved
// parameters and small captured tensors. Commands, runs and the Mask Lab share it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/language/module.h"

namespace vitrine::engine {

/// The name under which errors speak of ProgramChoice::program.
inline constexpr std::string_view kProgramTextName = "program";

struct ProgramChoice {
    std::vector<std::string> files;              ///< read in order, later ones win
    std::string program;                         ///< a text that is read after the files; empty: none
    std::map<std::string, std::int64_t> defines; ///< NAME=INTEGER that the texts read as globals
    std::map<std::string, double> parameters;    ///< NAME=NUMBER in place of a constant or of a factory's argument
    std::vector<std::string> captures;           ///< as parseCaptureText reads them
    std::int64_t batch = 1, heads = 1, kvHeads = 1, queries = 0, keys = 0, headDim = 0;
};

/// Files and text of the choice. Throws BadInput, PyError.
PyModule parseModule(const ProgramChoice& choice);
/// B, H, S, Q_LEN, KV_LEN, ... and the defines, which win; `tensors` and the choice's captures, which win; parameters.
/// Throws BadInput.
ProgramOptions programOptions(const ProgramChoice& choice, const CapturedTensors& tensors);

/// A small captured tensor in one line: "NAME=5,9" (int32), "NAME=0.5,0.25" (float32), "NAME=documents:1250,2900,640"
/// (int32: the number of its document for each position, from the documents' lengths). Throws BadInput that names what
/// is wrong.
std::pair<std::string, CapturedTensor> parseCaptureText(std::string_view text);
/// The line that parseCaptureText reads as documents of these lengths.
std::string documentsText(std::string_view name, const std::vector<std::int64_t>& lengths);

/// "NAME=NUMBER". Throws BadInput that begins with `option`.
std::pair<std::string, double> parseParameter(std::string_view option, std::string_view text);
/// "NAME=INTEGER". Throws BadInput that begins with `option`.
std::pair<std::string, std::int64_t> parseDefine(std::string_view option, std::string_view text);

} // namespace vitrine::engine
